package shutdown

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The two built-in priority classes and their values (KEP-2000 calls pods of
// either one critical).
const (
	clusterCriticalClass          = "system-cluster-critical"
	clusterCriticalPriority int32 = 2_000_000_000
	nodeCriticalClass             = "system-node-critical"
	nodeCriticalPriority    int32 = 2_000_001_000
)

// Bucket is the time of the pods from one priority up to the next one of the
// schedule.
type Bucket struct {
	// Priority is the lowest priority of the bucket's pods, and its name. The
	// first bucket of a schedule also takes every pod below it.
	Priority int32 `json:"priority"`
	// Seconds is how long the pods have; less than 0 counts as 0: they are
	// signalled with 0 and not waited for.
	Seconds int64 `json:"seconds"`
}

// Schedule is the order of a drain: its buckets one after the other, ascending
// by priority. An empty one means that pods are not drained.
type Schedule []Bucket

// Schedule gives the buckets of a configuration, ascending by priority; nil
// means off. byPriority says whether the list may be used, that is, whether the
// gate GracefulNodeShutdownBasedOnPodPriority is on; without it, and without a
// list, the two-field form becomes one bucket from 0 and one from 2000000000,
// in whole seconds. As in the kubelet's migrateConfig a share above the total
// gives nil, which Validate refuses. The configuration is not changed.
func (c Config) Schedule(byPriority bool) Schedule {
	if !byPriority || len(c.ShutdownGracePeriodByPodPriority) == 0 {
		return c.migrate()
	}
	s := make(Schedule, 0, len(c.ShutdownGracePeriodByPodPriority))
	for _, p := range c.ShutdownGracePeriodByPodPriority {
		s = append(s, Bucket{Priority: p.Priority, Seconds: max(p.ShutdownGracePeriodSeconds, 0)})
	}
	slices.SortStableFunc(s, func(a, b Bucket) int { return cmp.Compare(a.Priority, b.Priority) })
	return s
}

// migrate turns the two-field form into buckets.
func (c Config) migrate() Schedule {
	total, critical := c.ShutdownGracePeriod.Duration, c.ShutdownGracePeriodCriticalPods.Duration
	if total <= 0 || critical < 0 || critical > total {
		return nil
	}
	return Schedule{
		{Priority: 0, Seconds: int64((total - critical) / time.Second)},
		{Priority: clusterCriticalPriority, Seconds: int64(critical / time.Second)},
	}
}

// Total is the time of all buckets. It saturates at the longest duration.
func (s Schedule) Total() time.Duration {
	return s.End(len(s) - 1)
}

// End is how long after the start of the drain bucket i ends at the latest: the
// time of all buckets up to and with it. It saturates; -1 and below give 0, an
// index past the last bucket the total.
func (s Schedule) End(i int) time.Duration {
	var end time.Duration
	for _, b := range s[:max(0, min(i, len(s)-1)+1)] {
		end = saturatingAdd(end, b.time())
	}
	return end
}

// time is the bucket's seconds as a span, 0 or more.
func (b Bucket) time() time.Duration {
	return graceperiod.Duration(max(b.Seconds, 0))
}

// saturatingAdd adds two spans that are not negative.
func saturatingAdd(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// Index gives the bucket of a pod of this priority: the last one whose priority
// is not above the pod's. A pod below the first bucket is in the first one, as
// the kubelet's groupByPriority does it. An empty schedule gives -1.
func (s Schedule) Index(priority int32) int {
	if len(s) == 0 {
		return -1
	}
	i, found := slices.BinarySearchFunc(s, priority, func(b Bucket, p int32) int { return cmp.Compare(b.Priority, p) })
	if found {
		return i
	}
	return max(i-1, 0)
}
