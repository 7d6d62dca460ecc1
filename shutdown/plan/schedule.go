package plan

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// SystemCriticalPriority is the priority of the class system-cluster-critical, and the
// lowest priority of a critical pod (KEP-2000).
const SystemCriticalPriority int32 = 2_000_000_000

// The built-in priority classes.
const (
	clusterCriticalClass       = "system-cluster-critical"
	nodeCriticalClass          = "system-node-critical"
	nodeCriticalPriority int32 = 2_000_001_000
)

// Bucket is a range of pod priorities and the time that pods in this range have. These pods are killed together.
// The range ends below the Priority of the next bucket in the schedule.
type Bucket struct {
	// Priority is the lowest priority of the bucket's pods, and identifies the bucket. The first bucket of
	// a schedule also has all pods of a lower priority.
	Priority int32 `json:"priority"`
	// Seconds is how long the pods have; 0 or less: they are killed with a grace period of 0, and the next
	// bucket does not wait for them.
	Seconds int64 `json:"seconds"`
}

// Schedule is the buckets of a drain, ascending by priority, which is the order of the kills. Empty: no drain.
type Schedule []Bucket

// Schedule returns the buckets of a configuration, ascending by priority; nil means no graceful shutdown.
// byPriority says whether the feature gate GracefulNodeShutdownBasedOnPodPriority is on. If it is off or the
// list is empty, the two-field form becomes two buckets of whole seconds, with the priorities 0 and
// 2000000000. The result is nil if ShutdownGracePeriodCriticalPods exceeds ShutdownGracePeriod, as in the
// kubelet's migrateConfig; [Config.Validate] returns an error for that.
func (c Config) Schedule(byPriority bool) Schedule {
	if !byPriority || len(c.ShutdownGracePeriodByPodPriority) == 0 {
		return c.twoBuckets()
	}
	s := make(Schedule, 0, len(c.ShutdownGracePeriodByPodPriority))
	for _, p := range c.ShutdownGracePeriodByPodPriority {
		s = append(s, Bucket{Priority: p.Priority, Seconds: max(p.ShutdownGracePeriodSeconds, 0)})
	}
	slices.SortStableFunc(s, func(a, b Bucket) int { return cmp.Compare(a.Priority, b.Priority) })
	return s
}

// twoBuckets returns the schedule of the two-field form: one bucket for critical pods, one for all others. It returns
// nil, which means no graceful shutdown, if no total time is set or the critical pods' part is negative or exceeds it.
func (c Config) twoBuckets() Schedule {
	total, critical := c.ShutdownGracePeriod.Duration, c.ShutdownGracePeriodCriticalPods.Duration
	if total <= 0 || critical < 0 || critical > total {
		return nil
	}
	return Schedule{
		{Priority: 0, Seconds: int64((total - critical) / time.Second)},
		{Priority: SystemCriticalPriority, Seconds: int64(critical / time.Second)},
	}
}

// Total returns the sum of the buckets' seconds; negative seconds count as 0. It saturates at the longest
// duration.
func (s Schedule) Total() time.Duration {
	var total time.Duration
	for _, b := range s {
		total = sum(total, graceperiod.Duration(max(b.Seconds, 0)))
	}
	return total
}

// Index returns the index of the bucket for pods of a priority: the last bucket whose Priority is not higher,
// or the first bucket if all are higher (the kubelet's groupByPriority). It returns -1 for an empty schedule.
func (s Schedule) Index(priority int32) int {
	if len(s) == 0 {
		return -1
	}
	firstNotLower, isEqual := slices.BinarySearchFunc(s, priority, func(b Bucket, p int32) int { return cmp.Compare(b.Priority, p) })
	if isEqual {
		return firstNotLower
	}
	return max(firstNotLower-1, 0)
}

// sorted returns the schedule in ascending order. Warnings say that the order was another one, and which priorities the
// schedule has twice.
func (s Schedule) sorted() (sorted Schedule, warnings []string) {
	byPriority := func(a, b Bucket) int { return cmp.Compare(a.Priority, b.Priority) }
	if !slices.IsSortedFunc(s, byPriority) {
		s = slices.SortedStableFunc(slices.Values(s), byPriority)
		warnings = append(warnings, "the schedule was not ascending by priority, and has been sorted")
	}
	for i := 1; i < len(s); i++ {
		if s[i].Priority == s[i-1].Priority {
			warnings = append(warnings, fmt.Sprintf("the schedule has the priority %d twice: only one of its buckets gets pods", s[i].Priority))
		}
	}
	return s, warnings
}

// assign puts each pod into the bucket of its priority. The pods whose priority classes are unknown count as priority 0.
func (s Schedule) assign(pods []*v1.Pod, opts Options) (buckets []BucketPlan, ofUnknownClasses []*v1.Pod) {
	buckets = make([]BucketPlan, len(s))
	if len(s) == 0 { // there is no bucket for a pod
		return buckets, nil
	}
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		priority, found := opts.priority(pod)
		if !found {
			ofUnknownClasses = append(ofUnknownClasses, pod)
		}
		b := &buckets[s.Index(priority)]
		b.Pods = append(b.Pods, PodPlan{Pod: pod, Priority: priority})
	}
	return buckets, ofUnknownClasses
}
