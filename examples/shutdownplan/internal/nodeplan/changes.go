package nodeplan

import (
	"fmt"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// maxProposedSeconds is the length of the longest schedule that is proposed. A grace period of
// more than a day is not meant for a shutdown.
const maxProposedSeconds = 24 * 60 * 60

// changes returns proposals after which no pod is cut short.
func (t *Totals) changes() []Change {
	if t.summary.CutShort == 0 {
		return nil
	}
	var changes []Change
	if t.podLoss.seconds > 0 {
		schedule, changed := t.proposedSchedule()
		if changed {
			changes = append(changes, t.configChange(schedule))
		}
		if need := plan.NewBudget(schedule, t.settings.options).Total(); schedule != nil && t.settings.options.Limit != 0 && need > t.settings.options.Limit {
			changes = append(changes, limitChange(need))
		}
		if t.podLoss.pod.GrantedSeconds > 0 {
			changes = append(changes, t.podChange(len(changes) > 0))
		}
	}
	if t.hookLoss.seconds > 0 {
		changes = append(changes, t.hookChange())
	}
	return changes
}

// proposedSchedule returns the schedule in which every pod gets what it asks for, and whether
// it differs from the configured one. It returns nil if that schedule is too long.
func (t *Totals) proposedSchedule() (schedule plan.Schedule, changed bool) {
	schedule = slices.Clone(t.settings.schedule)
	var total int64
	for i := range schedule {
		if t.longest[i] > max(schedule[i].Seconds, 0) {
			schedule[i].Seconds, changed = t.longest[i], true
		}
		total = saturatingAdd(total, max(schedule[i].Seconds, 0))
	}
	if total > maxProposedSeconds {
		return nil, false
	}
	return schedule, changed
}

// configChange proposes a schedule, with the fields that the configuration uses.
func (t *Totals) configChange(schedule plan.Schedule) Change {
	c := Change{Where: "the kubelet's configuration", Why: "Every bucket then is as long as its pods ask for."}
	if len(t.settings.config.ShutdownGracePeriodByPodPriority) > 0 {
		items := make([]string, len(schedule))
		for i, b := range schedule {
			items[i] = fmt.Sprintf("{priority: %d, shutdownGracePeriodSeconds: %d}", b.Priority, b.Seconds)
		}
		c.Lines = []string{"shutdownGracePeriodByPodPriority: [" + strings.Join(items, ", ") + "]"}
		return c
	}
	critical := metav1.Duration{Duration: time.Duration(schedule[1].Seconds) * time.Second}
	c.Lines = []string{
		fmt.Sprintf("shutdownGracePeriod: %s", schedule.Total()),
		fmt.Sprintf("shutdownGracePeriodCriticalPods: %s", critical.Duration),
	}
	return c
}

// limitChange proposes to raise logind's limit. The name of the drop-in sorts after all others,
// because the last one wins.
func limitChange(need time.Duration) Change {
	return Change{
		Where: "the host, as root",
		Why:   fmt.Sprintf("logind then waits for all of the %d s; an agent that runs as root does it by itself.", ceilSeconds(need)),
		Lines: []string{fmt.Sprintf(
			`mkdir -p /etc/systemd/logind.conf.d && printf '[Login]\nInhibitDelayMaxSec=%d\n' > /etc/systemd/logind.conf.d/zz-kubegrace.conf && systemctl kill --signal=HUP systemd-logind`,
			ceilSeconds(need))},
	}
}

// podChange proposes that the pod that loses most asks only for what it gets. hasOthers says that
// it replaces other changes.
func (t *Totals) podChange(hasOthers bool) Change {
	why := fmt.Sprintf("The pod then asks for what it gets, %d s and not %d s.", t.podLoss.pod.GrantedSeconds, t.podLoss.pod.OwnSeconds)
	if hasOthers {
		why = "In place of all that: " + strings.ToLower(why[:1]) + why[1:]
	}
	if others := t.summary.CutShort - 1; others > 0 {
		why += fmt.Sprintf(" It loses most; pods that are cut short beside it: %d.", others)
	}
	return t.podLoss.graceChange(why, t.podLoss.pod.GrantedSeconds)
}

// hookChange proposes a grace period for the pod whose preStop hook exceeds its grace period
// most.
func (t *Totals) hookChange() Change {
	enough := saturatingAdd(saturatingAdd(t.hookLoss.pod.OwnSeconds, t.hookLoss.seconds), 2)
	return t.hookLoss.graceChange("Its preStop hook is longer than the grace period of the pod: it is cut short whenever the pod is deleted.", enough)
}

// graceChange proposes a grace period for a pod: as a command that patches the pod template of
// its owner if that is known, else as a line for its manifest.
func (l loss) graceChange(why string, seconds int64) Change {
	c := Change{Where: "pod " + l.pod.FullName(), Why: why}
	kind := strings.ToLower(l.source.OwnerKind)
	isValid := len(validation.IsDNS1123Subdomain(l.source.OwnerName)) == 0 && len(validation.IsDNS1123Label(l.source.Namespace)) == 0
	if isValid && slices.Contains([]string{"deployment", "statefulset", "daemonset", "replicaset"}, kind) {
		c.Lines = []string{fmt.Sprintf(
			`kubectl -n %s patch %s %s -p '{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":%d}}}}'`,
			l.source.Namespace, kind, l.source.OwnerName, seconds)}
		return c
	}
	c.Lines = []string{fmt.Sprintf("terminationGracePeriodSeconds: %d", seconds)}
	return c
}
