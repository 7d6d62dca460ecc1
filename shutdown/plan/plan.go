package plan

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Plan says what a drain will do to pods if each pod uses all of its time. If pods end
// earlier, later buckets only start earlier or have more time.
type Plan struct {
	// Schedule is the schedule as shortened to fit the limit.
	Schedule Schedule
	// Wanted is the budget that the drain needs. Its Total is the delay to request
	// from the host, or [Options.Limit] if that is less. Fitted is Wanted as
	// shortened to fit the limit.
	Wanted, Fitted Budget
	// Release is when the drain ends at the latest, counted from the announcement of
	// the shutdown.
	Release time.Duration
	// Buckets has one entry for each bucket of the schedule, in its order, also for
	// buckets without pods.
	Buckets []BucketPlan
	// Warnings says in sentences which times were shortened and which pods get less
	// than their grace period. There are a few for each bucket at most, in a stable
	// order.
	Warnings []string
}

// BucketPlan is one bucket of a plan with its pods.
type BucketPlan struct {
	// Priority names the bucket, as in [Bucket].
	Priority int32
	// WantedSeconds is the bucket's time as configured, and Seconds is the same as
	// shortened to fit the limit; both are 0 or more.
	WantedSeconds, Seconds int64
	// Start is when the bucket starts at the latest, and End when the next one then
	// starts, both counted from the announcement of the shutdown. They are equal for a
	// bucket without pods and for one of 0 s.
	Start, End time.Duration
	// Pods are the bucket's pods, in the order of the argument.
	Pods []PodPlan
}

// PodPlan is one pod of a plan.
type PodPlan struct {
	// Pod is the pod of the argument; it must not be written to.
	Pod *v1.Pod
	// Priority is the result of [Options.Priority].
	Priority int32
	// WantedSeconds is the pod's terminationGracePeriodSeconds, 0 or more. For a pod
	// without one it is GrantedSeconds.
	WantedSeconds int64
	// GrantedSeconds is the grace period override with which the pod will be killed,
	// 0 or more.
	GrantedSeconds int64
	// Start is when the pod is killed at the latest, and End when its containers have
	// then ended or been killed, provided that the runtime works. Both are counted
	// from the announcement of the shutdown. Every container has at least 2 s for its
	// stop, even if the grace period is shorter or a hook used it up (the kubelet's
	// minimumGracePeriodInSeconds), so that End may be after the End of the bucket.
	Start, End time.Duration
}

// Truncated reports whether the pod gets less than its grace period.
func (p PodPlan) Truncated() bool { return p.GrantedSeconds < p.WantedSeconds }

// New plans the drain of pods by a schedule, which is ascending by priority. It changes
// none of its arguments, and leaves out nil pods. An empty schedule gives a plan without
// buckets.
func New(schedule Schedule, pods []*v1.Pod, opts Options) Plan {
	t := NewTimetable(schedule, opts, Announcement{})
	return t.Plan(pods, opts)
}

// Plan plans what a drain with this timetable does to pods, on the assumption that each
// pod uses all of its time. The options must be those that the timetable was made with.
// Nil pods are left out; the arguments are not changed.
func (t *Timetable) Plan(pods []*v1.Pod, opts Options) Plan {
	p := Plan{
		Schedule: t.Schedule(),
		Wanted:   t.wanted,
		Fitted:   t.Budget(),
		Release:  t.Release().Sub(t.announced),
		Buckets:  make([]BucketPlan, len(t.Schedule())),
	}
	if len(p.Buckets) == 0 {
		return p
	}
	unknown := p.groupByBucket(pods, opts)
	start, rolledOver := t.First(), time.Duration(0)
	for i := range p.Buckets {
		b := &p.Buckets[i]
		b.Priority, b.WantedSeconds, b.Seconds = p.Schedule[i].Priority, p.Wanted.Schedule[i].Seconds, p.Schedule[i].Seconds
		w := t.Window(i, start, rolledOver)
		end := b.grant(w, start, t.announced)
		b.Start, b.End = start.Sub(t.announced), end.Sub(t.announced)
		switch {
		case len(b.Pods) == 0:
			rolledOver = t.Skip(i, rolledOver)
		case b.Seconds > 0:
			rolledOver = 0
		}
		start = end
	}
	p.Warnings = p.warnings(unknown)
	return p
}

// groupByBucket assigns the pods to the buckets, and returns those whose priority class
// is unknown. The lists of all buckets are parts of one array, which is cheaper for a
// node with many pods than a list that grows for each bucket.
func (p *Plan) groupByBucket(pods []*v1.Pod, opts Options) unknownClasses {
	var unknown unknownClasses
	counts := make([]int, len(p.Buckets))
	planned := make([]PodPlan, 0, len(pods))
	for _, pod := range pods {
		if pod == nil {
			continue
		}
		priority, found := opts.priority(pod)
		if !found {
			unknown.add(pod)
		}
		counts[p.Schedule.Index(priority)]++
		planned = append(planned, PodPlan{Pod: pod, Priority: priority})
	}
	array := make([]PodPlan, len(planned))
	for i, n := range counts {
		p.Buckets[i].Pods, array = array[:0:n], array[n:]
	}
	for _, pod := range planned {
		b := &p.Buckets[p.Schedule.Index(pod.Priority)]
		b.Pods = append(b.Pods, pod)
	}
	return unknown
}

// grant sets the grace periods and times of the bucket's pods, if the bucket starts at
// start. It returns the time at which the next bucket starts.
func (b *BucketPlan) grant(w Window, start, announced time.Time) (end time.Time) {
	for i := range b.Pods {
		b.Pods[i].grant(w)
		b.Pods[i].Start = w.Ready.Sub(announced)
		b.Pods[i].End = saturatingAdd(b.Pods[i].Start, b.Pods[i].maxTermination())
	}
	if len(b.Pods) == 0 {
		return start
	}
	return w.End
}

// grant sets the wanted and the granted grace period of the pod.
func (p *PodPlan) grant(w Window) {
	p.GrantedSeconds = w.Seconds(p.Pod, w.Ready)
	p.WantedSeconds = p.GrantedSeconds
	if seconds := p.Pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		p.WantedSeconds = max(*seconds, 0)
	}
}

// maxTermination returns how long the termination of the pod takes at most. The 2 s of a
// stop are added to the grace period only if a preStop hook, or the wait of a sidecar for
// its turn, can use up the grace period before the stop.
func (p *PodPlan) maxTermination() time.Duration {
	grace := time.Duration(math.MaxInt64)
	if s := max(p.GrantedSeconds, graceperiod.MinimumPodSeconds); s < int64(grace/time.Second) {
		grace = time.Duration(s) * time.Second
	}
	if hasHookOrSidecar(p.Pod) {
		return saturatingAdd(grace, containerFloor)
	}
	return max(grace, containerFloor)
}

// hasHookOrSidecar reports whether the pod has a sidecar or a preStop hook. The stop of its
// containers may then come later than the start of the termination.
func hasHookOrSidecar(pod *v1.Pod) bool {
	for _, c := range pod.Spec.InitContainers {
		if c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways {
			return true
		}
	}
	for _, c := range pod.Spec.Containers {
		if c.Lifecycle != nil && c.Lifecycle.PreStop != nil {
			return true
		}
	}
	return false
}
