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

// longest is the longest schedule that is proposed: whoever has pods with a longer
// grace period does not mean it for a shutdown.
const longest = 24 * 60 * 60

// changes says what to change so that no pod is cut short.
func (t *Totals) changes() []Change {
	if t.summary.CutShort == 0 {
		return nil
	}
	var changes []Change
	if t.worst.seconds > 0 {
		schedule, changed := t.proposed()
		if changed {
			changes = append(changes, t.configChange(schedule))
		}
		if need := plan.NewBudget(schedule, t.settings.options).Total(); schedule != nil && t.settings.options.Limit != 0 && need > t.settings.options.Limit {
			changes = append(changes, limitChange(need))
		}
		if t.worst.pod.GrantedSeconds > 0 {
			changes = append(changes, t.podChange(len(changes) > 0))
		}
	}
	if t.hook.seconds > 0 {
		changes = append(changes, t.hookChange())
	}
	return changes
}

// proposed is the schedule in which every pod has what it asks for; nil if that is too
// long to be proposed.
func (t *Totals) proposed() (schedule plan.Schedule, changed bool) {
	schedule = slices.Clone(t.settings.schedule)
	var total int64
	for i := range schedule {
		if t.needs[i] > max(schedule[i].Seconds, 0) {
			schedule[i].Seconds, changed = t.needs[i], true
		}
		total = add(total, max(schedule[i].Seconds, 0))
	}
	if total > longest {
		return nil, false
	}
	return schedule, changed
}

// configChange writes a schedule in the form that the configuration has.
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

// limitChange raises logind's limit. The name of the file sorts behind those of others,
// the last of which wins.
func limitChange(need time.Duration) Change {
	return Change{
		Where: "the host, as root",
		Why:   fmt.Sprintf("logind then waits for all of the %d s; an agent that runs as root does it by itself.", seconds(need)),
		Lines: []string{fmt.Sprintf(
			`mkdir -p /etc/systemd/logind.conf.d && printf '[Login]\nInhibitDelayMaxSec=%d\n' > /etc/systemd/logind.conf.d/zz-kubegrace.conf && systemctl reload systemd-logind`,
			seconds(need))},
	}
}

// podChange has the pod that loses most ask for what it gets, in place of other changes
// where there are some.
func (t *Totals) podChange(instead bool) Change {
	why := fmt.Sprintf("The pod then asks for what it gets, %d s and not %d s.", t.worst.pod.GrantedSeconds, t.worst.pod.OwnSeconds)
	if instead {
		why = "In place of all that: " + strings.ToLower(why[:1]) + why[1:]
	}
	if others := t.summary.CutShort - 1; others > 0 {
		why += fmt.Sprintf(" It loses most; pods that are cut short beside it: %d.", others)
	}
	return t.worst.change(why, t.worst.pod.GrantedSeconds)
}

// hookChange gives the pod whose hook is too long for itself time for the hook.
func (t *Totals) hookChange() Change {
	enough := add(add(t.hook.pod.OwnSeconds, t.hook.seconds), 2)
	return t.hook.change("Its preStop hook is longer than the grace period of the pod: it is cut short whenever the pod is deleted.", enough)
}

// change sets the grace period of a pod, in the template that it is made from.
func (l loss) change(why string, seconds int64) Change {
	c := Change{Where: "pod " + l.pod.FullName(), Why: why}
	kind := strings.ToLower(l.read.OwnerKind)
	named := len(validation.IsDNS1123Subdomain(l.read.OwnerName)) == 0 && len(validation.IsDNS1123Label(l.read.Namespace)) == 0
	if named && slices.Contains([]string{"deployment", "statefulset", "daemonset", "replicaset"}, kind) {
		c.Lines = []string{fmt.Sprintf(
			`kubectl -n %s patch %s %s -p '{"spec":{"template":{"spec":{"terminationGracePeriodSeconds":%d}}}}'`,
			l.read.Namespace, kind, l.read.OwnerName, seconds)}
		return c
	}
	c.Lines = []string{fmt.Sprintf("terminationGracePeriodSeconds: %d", seconds)}
	return c
}
