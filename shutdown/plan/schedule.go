package plan

import (
	"cmp"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// SystemCriticalPriority is the value of the priority class
// system-cluster-critical, and the lowest priority of a critical pod (KEP-2000).
const SystemCriticalPriority int32 = 2_000_000_000

// The names of the two built-in priority classes, and the value of the higher one.
const (
	clusterCriticalClass       = "system-cluster-critical"
	nodeCriticalClass          = "system-node-critical"
	nodeCriticalPriority int32 = 2_000_001_000
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
		{Priority: SystemCriticalPriority, Seconds: int64(critical / time.Second)},
	}
}

// Total is the pods' time of all buckets, those with less than 0 counted as 0. It
// saturates at the longest duration.
func (s Schedule) Total() time.Duration {
	var sum time.Duration
	for _, b := range s {
		sum = saturatingAdd(sum, b.time())
	}
	return sum
}

// time is the bucket's seconds as a span, 0 or more.
func (b Bucket) time() time.Duration {
	return graceperiod.Duration(max(b.Seconds, 0))
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
