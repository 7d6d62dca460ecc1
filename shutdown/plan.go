package shutdown

import (
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// PlanOptions shapes a plan. The zero value is the default.
type PlanOptions struct {
	// Limit is the time that there is for all buckets together; a longer schedule
	// is fitted into it. 0: no limit. Negative: no time at all.
	Limit time.Duration
	// PriorityOf gives the value of a priority class that is not built in, for
	// pods without an explicit priority; false: not known. It must not block, and
	// may be called from several goroutines at once. Nil: none is known.
	PriorityOf func(className string) (int32, bool)
	// StaticPods is the priority of static pods that say nothing of it, and of
	// their mirrors. Nil: that of system-node-critical, 2000001000. A pointer to 0
	// is the kubelet's behaviour.
	StaticPods *int32
	// UnmountReserve is the end of each bucket that the pods' own grace leaves for
	// the unmount of their volumes. 0: none in [NewPlan], [DefaultUnmountReserve]
	// in a [Manager] with Volumes. Negative: none.
	UnmountReserve time.Duration
	// FlushReserve is the same for the pods' final statuses, after the unmount. 0:
	// none in [NewPlan], [DefaultFlushReserve] in a [Manager] with a Reporter.
	// Negative: none, and the flush has what the pods leave. It also bounds what a
	// bucket spends on the API server: a [ReadinessMarker] has half of it, before the
	// kills, and the flush the rest. Both reserves together are at most half of a
	// bucket's time.
	FlushReserve time.Duration
	// NoRollOver is the kubelet's behaviour: time that a bucket leaves unused is
	// lost to the later ones.
	NoRollOver bool
}

// Plan is what a drain will do if every pod takes all the time it has; pods that
// end earlier, or a bucket's time that rolls over, only give the later ones more.
type Plan struct {
	// Schedule is the schedule as fitted into the limit.
	Schedule Schedule
	// Buckets has one entry for each bucket of the schedule, in its order, those
	// without pods included.
	Buckets []PlannedBucket
	// Warnings says in sentences what the pods will not get, at most a few per
	// bucket, in a stable order.
	Warnings []string
}

// PlannedBucket is one bucket of a plan with its pods.
type PlannedBucket struct {
	// Priority names the bucket, as in [Bucket].
	Priority int32
	// WantedSeconds is the bucket's time as configured, Seconds as fitted; both
	// are 0 or more.
	WantedSeconds, Seconds int64
	// Start and End count from the start of the drain: when the bucket begins at
	// the latest, and when the next one then does. They are equal for a bucket
	// that is skipped, having no pods, or not waited for, having no time.
	Start, End time.Duration
	// Pods are the bucket's pods in the order in which they were given.
	Pods []PlannedPod
}

// PlannedPod is one pod of a plan.
type PlannedPod struct {
	// Pod is the pod as it was given; it must not be written to.
	Pod *v1.Pod
	// Priority is what [PlanOptions.Priority] gives.
	Priority int32
	// WantedSeconds is the pod's terminationGracePeriodSeconds; for a pod without
	// one, what it is granted.
	WantedSeconds int64
	// GrantedSeconds is the grace period override that the pod will be killed
	// with, 0 or more.
	GrantedSeconds int64
}

// Truncated tells whether the pod gets less than it asks for.
func (p PlannedPod) Truncated() bool { return p.GrantedSeconds < p.WantedSeconds }

// NewPlan works out what a drain of these pods by this schedule, ascending by
// priority, will do. It changes none of its arguments, leaves out nil pods, and
// has a result for every input; an empty schedule gives a plan without buckets.
// The time in which a [Manager] publishes the node's state comes out of the first
// bucket with pods and is not known here.
func NewPlan(schedule Schedule, pods []*v1.Pod, opts PlanOptions) Plan {
	p := Plan{Schedule: schedule.within(opts.Limit), Buckets: make([]PlannedBucket, len(schedule))}
	if len(schedule) == 0 {
		return p
	}
	classes := p.sortIn(pods, opts)
	var start, end time.Duration
	for i := range p.Buckets {
		b := &p.Buckets[i]
		b.Priority, b.WantedSeconds, b.Seconds = schedule[i].Priority, max(schedule[i].Seconds, 0), p.Schedule[i].Seconds
		end = saturatingAdd(end, p.Schedule[i].time())
		b.schedule(start, end, opts)
		start = b.End
	}
	p.Warnings = p.warnings(schedule, classes)
	return p
}

// sortIn puts the pods into their buckets, in one list that the buckets share,
// and gives the priority classes that nobody could resolve.
func (p *Plan) sortIn(pods []*v1.Pod, opts PlanOptions) unknownClasses {
	var unknown unknownClasses
	counts := make([]int, len(p.Buckets))
	planned := make([]PlannedPod, 0, len(pods))
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		priority, found := opts.priority(pod)
		if !found {
			unknown.add(pod)
		}
		counts[p.Schedule.Index(priority)]++
		planned = append(planned, PlannedPod{Pod: pod, Priority: priority})
	}
	room := make([]PlannedPod, len(planned))
	for i, n := range counts {
		p.Buckets[i].Pods, room = room[:0:n], room[n:]
	}
	for _, pod := range planned {
		b := &p.Buckets[p.Schedule.Index(pod.Priority)]
		b.Pods = append(b.Pods, pod)
	}
	return unknown
}

// schedule sets the bucket's times and what its pods get. start is when the
// bucket before it ends, latest the end of this one if nothing ends early.
func (b *PlannedBucket) schedule(start, latest time.Duration, opts PlanOptions) {
	b.Start, b.End = start, start
	own := graceperiod.Duration(b.Seconds)
	var has time.Duration
	switch {
	case len(b.Pods) == 0 || own == 0:
	case opts.NoRollOver:
		has = min(own, latest-start) // less only if the sum saturates
	default: // what skipped buckets left is known beforehand
		has = latest - start
	}
	if len(b.Pods) > 0 {
		b.End = saturatingAdd(start, has)
	}
	for i := range b.Pods {
		b.Pods[i].grant(opts.lessReserves(has), opts.lessReserves(own))
	}
}

// grant sets what the pod wants and gets.
func (p *PlannedPod) grant(left, own time.Duration) {
	p.GrantedSeconds = grant(p.Pod, left, own)
	p.WantedSeconds = p.GrantedSeconds
	if seconds := p.Pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		p.WantedSeconds = max(*seconds, 0)
	}
}
