package plan

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// Plan is the worst case of a drain, in which every step and every pod uses all of its time. If a step or a pod
// ends earlier, the pods after it are killed earlier and may be granted more time.
type Plan struct {
	// Wanted is the budget without a limit. Its Total is the delay to request from the host, or
	// [Options.Limit] if that is less. Fitted is Wanted, shortened to the limit.
	Wanted, Fitted Budget
	// Release is when the drain ends at the latest, counted from the announcement of the shutdown.
	Release time.Duration
	// Buckets has one entry for each bucket of the schedule, in its order, also for buckets without
	// pods.
	Buckets []BucketPlan
	// Warnings says which times were shortened and which pods get less than their grace period. There
	// are at most a few per bucket, in a stable order.
	Warnings []string
}

// BucketPlan is one bucket of a plan with its pods.
type BucketPlan struct {
	// Priority names the bucket, as in [Bucket].
	Priority int32
	// WantedSeconds is the configured time of the bucket. Seconds is that time shortened to the limit, in
	// whole seconds. Both are 0 or more. A pod may be granted more than Seconds, because it also gets the
	// time that earlier steps and lower buckets did not use ([Window.Seconds]).
	WantedSeconds, Seconds int64
	// Start is the latest time at which the bucket starts. End is the time at which the next bucket starts if
	// this one started at Start. Both count from the announcement of the shutdown. They are equal for a
	// bucket without pods or with 0 s.
	Start, End time.Duration
	// Pods are the bucket's pods, in the order of the argument.
	Pods []PodPlan
}

// PodPlan is one pod of a plan.
type PodPlan struct {
	// Pod is the pod that was passed in. Do not change it.
	Pod *v1.Pod
	// Priority is the result of [Options.Priority].
	Priority int32
	// WantedSeconds is the pod's terminationGracePeriodSeconds, 0 or more; GrantedSeconds if the pod has
	// none.
	WantedSeconds int64
	// GrantedSeconds is the grace period with which the pod is killed, 0 or more. It is the worst case: a kill
	// before Start grants as much or more.
	GrantedSeconds int64
	// Start is when the pod is killed at the latest. End is when all its containers have stopped if it is
	// killed at Start and the runtime works. Both count from the announcement of the shutdown. Every
	// container gets at least 2 s to stop, even if the grace period is shorter or a hook used it up (the
	// kubelet's minimumGracePeriodInSeconds). End may therefore be after the End of the bucket.
	Start, End time.Duration
}

// Truncated reports whether the pod gets less than its grace period.
func (p PodPlan) Truncated() bool { return p.GrantedSeconds < p.WantedSeconds }

// New plans the drain of pods by a schedule, ascending by priority. Nil pods are left out. An empty schedule
// gives a plan without buckets. The arguments are not changed. Warnings report that the schedule is empty although
// there are pods, that it was not ascending and has been sorted, and that it has a priority twice.
func New(schedule Schedule, pods []*v1.Pod, opts Options) Plan {
	schedule, warnings := schedule.sorted()
	p := planOf(schedule, pods, opts)
	if len(schedule) == 0 && slices.ContainsFunc(pods, func(pod *v1.Pod) bool { return pod != nil }) {
		warnings = append(warnings, "the schedule is empty: no pod is drained")
	}
	p.Warnings = append(warnings, p.Warnings...)
	return p
}

// planOf plans the drain of pods by an ascending schedule. The plan has no warnings about the schedule itself.
func planOf(schedule Schedule, pods []*v1.Pod, opts Options) Plan {
	buckets, ofUnknownClasses := schedule.assign(pods, opts)
	occupied := make([]bool, len(buckets))
	for i := range buckets {
		occupied[i] = len(buckets[i].Pods) > 0
	}
	limit := opts.Cap(math.MaxInt64) // Options.Limit, if it is set
	fitted := NewBudget(schedule, opts).Fit(limit, occupied)
	return fitted.plan(buckets, ofUnknownClasses, opts)
}

// Plan plans the drain of pods within the times of b, which [Budget.Fit] has shortened already. opts must be those that
// were passed to [NewBudget] for b.
func (b Budget) Plan(pods []*v1.Pod, opts Options) Plan {
	buckets, ofUnknownClasses := b.schedule().assign(pods, opts)
	return b.plan(buckets, ofUnknownClasses, opts)
}

// plan makes the plan of a drain with the budget b, which becomes the plan's Fitted. The plan's Wanted is the budget of the
// same schedule without a limit. buckets have only their pods so far: plan sets their times, and grants each pod its grace
// period. The plan has no warnings about the schedule itself.
func (b Budget) plan(buckets []BucketPlan, ofUnknownClasses []*v1.Pod, opts Options) Plan {
	p := Plan{Wanted: NewBudget(b.schedule(), opts), Fitted: b, Release: b.WaitEnd, Buckets: buckets}
	start := min(b.beforeBuckets(), b.WaitEnd)
	for i := range buckets {
		bucket, budget := &buckets[i], &b.Buckets[i]
		bucket.Priority, bucket.WantedSeconds, bucket.Seconds = budget.Priority, budget.Seconds, times.WholeSeconds(budget.Pods)
		bucket.Start, bucket.End = start, start
		if len(bucket.Pods) == 0 {
			continue // the next bucket starts at once
		}
		window := b.Window(i, start, opts)
		for k := range bucket.Pods {
			bucket.Pods[k].grant(window)
		}
		start = max(start, window.End)
		bucket.End = start
	}
	if len(buckets) > 0 { // otherwise there is no drain whose parts could be too short
		p.Warnings = p.warnings(ofUnknownClasses)
	}
	return p
}

// grant sets the grace periods of a pod, and its times if it is killed at w.Ready, when the wait for readiness marks ends at the
// latest. A pod without a grace period of its own wants what it is granted.
func (p *PodPlan) grant(w Window) {
	p.GrantedSeconds = w.Seconds(p.Pod, w.Ready)
	p.WantedSeconds = p.GrantedSeconds
	if seconds := p.Pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		p.WantedSeconds = max(*seconds, 0)
	}
	grace := graceperiod.Duration(max(p.GrantedSeconds, graceperiod.MinimumPodSeconds))
	if p.Truncated() {
		// Granted seconds are whole. With 9.5 s left at w.Ready the pod gets 9 s; if it is killed half a second earlier, it gets
		// 10 s and ends later, but not after graceEnd.
		grace = max(grace, w.graceEnd-w.Ready)
	}
	p.Start, p.End = w.Ready, sum(w.Ready, p.maxTermination(grace))
}

// maxTermination returns how long the pod's termination takes at most if its grace period is grace. A container
// that is stopped at once has the grace period for its stop, at least 2 s. A container that is stopped later,
// after its preStop hook or as a sidecar, may have no grace period left: its 2 s then come on top.
func (p *PodPlan) maxTermination(grace time.Duration) time.Duration {
	if hasHookOrSidecar(p.Pod) {
		return sum(grace, containersFloor)
	}
	return max(grace, containersFloor)
}

// hasHookOrSidecar reports whether a container of the pod may be stopped later than at the start of the pod's
// termination: after its preStop hook or, for a sidecar, after the main containers.
func hasHookOrSidecar(pod *v1.Pod) bool {
	isSidecar := func(c v1.Container) bool {
		return c.RestartPolicy != nil && *c.RestartPolicy == v1.ContainerRestartPolicyAlways
	}
	hasHook := func(c v1.Container) bool { return c.Lifecycle != nil && c.Lifecycle.PreStop != nil }
	return slices.ContainsFunc(pod.Spec.InitContainers, isSidecar) || slices.ContainsFunc(pod.Spec.Containers, hasHook)
}
