package nodeplan

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/kubeletconfig"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// planLosses plans all nodes and returns how many of their pods are cut short, and how many seconds these lose.
func (s Settings) planLosses(nodes []*podlist.Node) (cutShort int, lostSeconds int64) {
	for _, node := range nodes {
		n := s.Plan(node)
		cutShort += n.CutShort
		lostSeconds = saturatingAdd(lostSeconds, n.LostSeconds)
	}
	return cutShort, lostSeconds
}

// proposals returns changes that would make the plan better, the best first, each with the losses that remain.
// A proposal only raises logind's limit or lengthens buckets. It shortens no pod's grace period, because that
// would hide a loss and save nothing. current has the losses without a change.
func (s Settings) proposals(current Summary, longerBuckets plan.Schedule, nodes []*podlist.Node) (all []Proposal) {
	// offer adds a proposal to make these changes, which lead to newSettings, if that helps: fewer pods are cut short or fewer
	// seconds are lost, and neither number grows.
	offer := func(title string, newSettings Settings, changes ...Change) {
		cutShort, lostSeconds := newSettings.planLosses(nodes)
		isSame := cutShort == current.CutShort && lostSeconds == current.LostSeconds
		isWorse := cutShort > current.CutShort || lostSeconds > current.LostSeconds
		if !isSame && !isWorse {
			all = append(all, Proposal{Title: title, CutShort: cutShort, LostSeconds: lostSeconds, Changes: changes})
		}
	}
	if s.limitIsTooShort() {
		raised := s.limitedTo(s.needed())
		offer("Raise logind's limit to "+duration.Text(raised.needed()), raised, s.limitChange(raised.needed()))
	}
	if longer, isUseful := s.withSchedule(longerBuckets); isUseful {
		changes := []Change{longer.configChange()}
		if longer.limitIsTooShort() {
			if !s.canRaiseLimit { // an agent that can raise the limit does so itself
				changes = append(changes, s.limitChange(longer.needed()))
			}
			longer = longer.limitedTo(longer.needed())
		}
		offer("Lengthen the buckets", longer, changes...)
	}
	slices.SortStableFunc(all, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(a.CutShort, b.CutShort), cmp.Compare(a.LostSeconds, b.LostSeconds))
	})
	return all
}

// withSchedule returns the settings with the buckets of another schedule. The new configuration uses the same
// fields as the old one: shutdownGracePeriodByPodPriority, or the two durations. isUseful is false if there
// is nothing to propose: the schedule is the same or has no time, or a kubelet would refuse the configuration.
func (s Settings) withSchedule(schedule plan.Schedule) (other Settings, isUseful bool) {
	if slices.Equal(schedule, s.schedule) || schedule.Total() < time.Second {
		return s, false
	}
	var config plan.Config
	if len(s.config.Shutdown.ShutdownGracePeriodByPodPriority) > 0 {
		for _, b := range schedule {
			config.ShutdownGracePeriodByPodPriority = append(config.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod{Priority: b.Priority, ShutdownGracePeriodSeconds: b.Seconds})
		}
	} else {
		// The two durations make two buckets, and the second one is for critical pods.
		config.ShutdownGracePeriod.Duration = schedule.Total()
		config.ShutdownGracePeriodCriticalPods.Duration = time.Duration(schedule[1].Seconds) * time.Second
	}
	other, err := NewSettings(s.agent, kubeletconfig.Config{Shutdown: config, FeatureGates: s.config.FeatureGates}, s.options)
	return other, err == nil && !other.isOff
}

// configChange returns the change that replaces the configuration in use by the configuration of s.
func (s Settings) configChange() Change {
	c := Change{Where: "the kubelet's configuration, before its restart"}
	if s.agent == Kubegrace {
		c.Where = "the agent's configuration, before its restart"
	}
	if len(s.config.Shutdown.ShutdownGracePeriodByPodPriority) > 0 {
		items := make([]string, len(s.schedule))
		for i, b := range s.schedule {
			items[i] = fmt.Sprintf("{priority: %d, shutdownGracePeriodSeconds: %d}", b.Priority, b.Seconds)
		}
		c.Lines = []string{"shutdownGracePeriodByPodPriority: [" + strings.Join(items, ", ") + "]"}
		return c
	}
	c.Lines = []string{
		fmt.Sprintf("shutdownGracePeriod: %s", s.config.Shutdown.ShutdownGracePeriod.Duration),
		fmt.Sprintf("shutdownGracePeriodCriticalPods: %s", s.config.Shutdown.ShutdownGracePeriodCriticalPods.Duration),
	}
	return c
}

// limitChange returns the change that raises logind's limit to needed. An agent that runs as root raises the limit
// itself, with a drop-in file. So the limit is too low only if a file that sorts later overrides the agent's. If
// this file is known, it is the one to change: a new file that sorts even later would override the agent's again.
func (s Settings) limitChange(needed time.Duration) Change {
	own := map[Agent]string{Kubelet: "99-kubelet.conf", Kubegrace: "zz-kubegrace.conf"}[s.agent]
	lines := []string{"[Login]", fmt.Sprintf("InhibitDelayMaxSec=%.0f", math.Ceil(needed.Seconds()))}
	if s.overridingFile != "" {
		return Change{Where: s.overridingFile, Why: "it overrides the agent's " + own, Lines: lines}
	}
	return Change{Where: "the last file of systemd-analyze cat-config systemd/logind.conf", Lines: lines}
}

// longestBucket is the length in seconds that a proposed bucket has at most, unless it is already longer. Pods with a longer
// grace period are not expected to need it in a shutdown.
const longestBucket = 10 * 60

// longerSchedule returns the schedule of a proposed configuration. Each bucket becomes as long as the longest
// grace period that counts in it, and never shorter than it was. A grace period of more than longestBucket
// does not count. Of the pods that are not critical, the 1 % with the longest grace periods do not count
// either, so that one odd pod does not delay every shutdown; of fewer than 100 pods all count.
func (s Settings) longerSchedule(podCounts map[podGroup]int) plan.Schedule {
	longer := slices.Clone(s.schedule)
	lengthen := func(bucket int, graceSeconds int64) { // so that the bucket has at least this time
		if graceSeconds <= longestBucket {
			longer[bucket].Seconds = max(longer[bucket].Seconds, graceSeconds)
		}
	}
	ordinary := make([][]int64, len(longer)) // by bucket: the grace period of each pod that is not critical
	for group, count := range podCounts {
		if group.isCritical {
			lengthen(group.bucket, group.graceSeconds)
		} else {
			ordinary[group.bucket] = append(ordinary[group.bucket], slices.Repeat([]int64{group.graceSeconds}, count)...)
		}
	}
	for bucket, graces := range ordinary {
		slices.Sort(graces)
		for _, graceSeconds := range graces[:len(graces)-len(graces)/100] { // without the longest 1 %
			lengthen(bucket, graceSeconds)
		}
	}
	return longer
}

// outliers returns the workloads with pods whose grace period is longer than their bucket in the schedule. The
// longest grace period comes first.
func outliers(podCounts map[podGroup]int, schedule plan.Schedule) (all []Outlier) {
	found := map[string]Outlier{} // by workload
	for group, count := range podCounts {
		if group.graceSeconds > schedule[group.bucket].Seconds {
			o := found[group.workload]
			o.Name = group.workload
			o.PodCount += count
			o.AsksSeconds = max(o.AsksSeconds, group.graceSeconds)
			o.Critical = o.Critical || group.isCritical
			found[group.workload] = o
		}
	}
	all = slices.SortedFunc(maps.Values(found), func(a, b Outlier) int {
		return cmp.Or(cmp.Compare(b.AsksSeconds, a.AsksSeconds), cmp.Compare(a.Name, b.Name))
	})
	return all[:min(len(all), MaxWorst)]
}
