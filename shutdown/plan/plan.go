package plan

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/internal/windows"
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
	d, limit := Drain{Wanted: NewBudget(schedule, opts)}, opts.Cap(math.MaxInt64)
	buckets, unknown := schedule.assign(pods, opts)
	d.Fitted = d.Wanted.Fit(limit, schedule.needs(buckets))
	d.First = windows.Sum(d.Fitted.Prepare, d.Fitted.Hold, d.Fitted.Publish)
	d.Release = min(d.Wanted.Total(), limit-d.Fitted.Margin)
	return d.plan(buckets, unknown, opts)
}

// Drain is a drain whose times are known already, such as that of a manager. [New] works
// them out for a plan.
type Drain struct {
	// Wanted is the budget that the drain needs, and Fitted is the same as shortened
	// to fit the limit. Their schedules have the same priorities, ascending.
	Wanted, Fitted Budget
	// First is when the first bucket starts at the latest, and Release when the drain
	// stops all waiting. Both count from the announcement of the shutdown.
	First, Release time.Duration
}

// Plan plans what the drain does to pods, on the assumption that each pod uses all of its
// time. Nil pods are left out; the arguments are not changed.
func (d Drain) Plan(pods []*v1.Pod, opts Options) Plan {
	buckets, unknown := d.Fitted.Schedule.assign(pods, opts)
	return d.plan(buckets, unknown, opts)
}

// plan plans what the drain does to the pods of buckets.
func (d Drain) plan(buckets []BucketPlan, unknown unknownClasses, opts Options) Plan {
	p := Plan{Schedule: d.Fitted.Schedule, Wanted: d.Wanted, Fitted: d.Fitted, Release: d.Release, Buckets: buckets}
	var announced time.Time
	all := windows.New(d.Fitted.buckets(), announced, d.First, d.Release, !opts.NoRollOver)
	start, rolledOver := min(d.First, d.Release), time.Duration(0)
	for i := range buckets {
		b := &buckets[i]
		b.Priority, b.WantedSeconds, b.Seconds = p.Schedule[i].Priority, d.Wanted.Schedule[i].Seconds, p.Schedule[i].Seconds
		b.Start, b.End = start, start
		if len(b.Pods) == 0 {
			rolledOver = all.Skip(i, rolledOver)
			continue
		}
		w := all.Window(i, announced.Add(start), rolledOver)
		for k := range b.Pods {
			b.Pods[k].grant(w, w.Ready.Sub(announced))
		}
		if b.Seconds > 0 {
			rolledOver = 0
		}
		b.End = w.End.Sub(announced)
		start = b.End
	}
	if len(buckets) > 0 {
		p.Warnings = p.warnings(unknown)
	}
	return p
}

// grant sets the grace periods and times of a pod that is killed at ready, when its window
// is ready.
func (p *PodPlan) grant(w windows.Window, ready time.Duration) {
	p.GrantedSeconds = w.Seconds(p.Pod, w.Ready)
	p.WantedSeconds = p.GrantedSeconds
	if seconds := p.Pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		p.WantedSeconds = max(*seconds, 0)
	}
	p.Start, p.End = ready, windows.Sum(ready, p.maxTermination())
}

// maxTermination returns how long the termination of the pod takes at most. The 2 s of a
// stop are added to the grace period only if a preStop hook, or the wait of a sidecar for
// its turn, can use up the grace period before the stop.
func (p *PodPlan) maxTermination() time.Duration {
	grace := graceperiod.Duration(max(p.GrantedSeconds, graceperiod.MinimumPodSeconds))
	if hasHookOrSidecar(p.Pod) {
		return windows.Sum(grace, windows.Floor)
	}
	return max(grace, windows.Floor)
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
