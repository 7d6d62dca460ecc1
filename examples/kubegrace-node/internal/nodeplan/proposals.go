package nodeplan

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podlist"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// losses plans all nodes, and returns a proposal with what its pods lose.
func (s Settings) losses(nodes []*podlist.Node) (p Proposal) {
	for _, node := range nodes {
		n := s.Plan(node)
		p.CutShort += n.CutShort
		p.LostSeconds = saturatingAdd(p.LostSeconds, n.LostSeconds)
	}
	return p
}

// proposals returns what would be better than the plan, the best first, each with what it would do. None of
// them shortens a grace period, which hides a loss and saves nothing, or a bucket.
func (s Settings) proposals(before Summary, schedule plan.Schedule, nodes []*podlist.Node) (all []Proposal) {
	offer := func(title string, p Proposal, changes ...Change) {
		same := p.CutShort == before.CutShort && p.LostSeconds == before.LostSeconds
		if !same && p.CutShort <= before.CutShort && p.LostSeconds <= before.LostSeconds {
			p.Title, p.Changes = title, changes
			all = append(all, p)
		}
	}
	limit := s.options.Limit
	if limit != 0 && max(limit, 0) < s.needed() {
		raised := s.limitedTo(s.needed())
		offer("Raise logind's limit to "+duration.Text(raised.needed()), raised.losses(nodes), s.limitChange(raised.needed()))
	}
	if longer, ok := s.withSchedule(schedule); ok {
		changes := []Change{longer.configChange()}
		if limit != 0 && max(limit, 0) < longer.needed() {
			if !s.raisable {
				changes = append(changes, s.limitChange(longer.needed()))
			}
			longer = longer.limitedTo(longer.needed())
		}
		offer("Lengthen the buckets", longer.losses(nodes), changes...)
	}
	slices.SortStableFunc(all, func(a, b Proposal) int {
		return cmp.Or(cmp.Compare(a.CutShort, b.CutShort), cmp.Compare(a.LostSeconds, b.LostSeconds))
	})
	return all
}

// withSchedule returns the settings with the buckets of another schedule, in the fields of the
// configuration that are used; false if they are the same, or a kubelet refuses them.
func (s Settings) withSchedule(schedule plan.Schedule) (Settings, bool) {
	if slices.Equal(schedule, s.schedule) || schedule.Total() < time.Second {
		return s, false
	}
	var config plan.Config
	if len(s.config.ShutdownGracePeriodByPodPriority) > 0 {
		for _, b := range schedule {
			config.ShutdownGracePeriodByPodPriority = append(config.ShutdownGracePeriodByPodPriority, plan.PodPriorityGracePeriod{Priority: b.Priority, ShutdownGracePeriodSeconds: b.Seconds})
		}
	} else {
		config.ShutdownGracePeriod.Duration = schedule.Total()
		config.ShutdownGracePeriodCriticalPods.Duration = time.Duration(schedule[1].Seconds) * time.Second
	}
	other, err := NewSettings(s.agent, config, s.gates, s.options)
	return other, err == nil && !other.off
}

// configChange is the change of the configuration to that of s.
func (s Settings) configChange() Change {
	c := Change{Where: "the kubelet's configuration, before its restart"}
	if s.agent == Kubegrace {
		c.Where = "the agent's configuration, before its restart"
	}
	if len(s.config.ShutdownGracePeriodByPodPriority) > 0 {
		items := make([]string, len(s.schedule))
		for i, b := range s.schedule {
			items[i] = fmt.Sprintf("{priority: %d, shutdownGracePeriodSeconds: %d}", b.Priority, b.Seconds)
		}
		c.Lines = []string{"shutdownGracePeriodByPodPriority: [" + strings.Join(items, ", ") + "]"}
		return c
	}
	c.Lines = []string{
		fmt.Sprintf("shutdownGracePeriod: %s", s.config.ShutdownGracePeriod.Duration),
		fmt.Sprintf("shutdownGracePeriodCriticalPods: %s", s.config.ShutdownGracePeriodCriticalPods.Duration),
	}
	return c
}

// limitChange is the change of logind's limit. Agents that run as root raise the limit themselves, by
// a drop-in, and only a file that sorts behind it can be in the way: it is that file which has to
// change, and no further one that would be in the way later.
func (s Settings) limitChange(needed time.Duration) Change {
	own := map[Agent]string{Kubelet: "99-kubelet.conf", Kubegrace: "zz-kubegrace.conf"}[s.agent]
	lines := []string{"[Login]", fmt.Sprintf("InhibitDelayMaxSec=%d", ceilSeconds(needed))}
	if s.limitBy != "" {
		return Change{Where: s.limitBy, Why: "it wins against the agent's " + own, Lines: lines}
	}
	return Change{Where: "the last file of systemd-analyze cat-config systemd/logind.conf", Lines: lines}
}
