package plan

import (
	"math"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Plan is what a drain will do if every pod takes all the time it has; pods that
// end earlier, or a bucket's time that rolls over, only give the later ones more.
type Plan struct {
	// Schedule is the schedule as fitted into the limit.
	Schedule Schedule
	// Wanted is what the drain needs: its Total is what the host is asked for, or
	// [Options.Limit] if that is less. Fitted is what the limit leaves of it.
	Wanted, Fitted Budget
	// Release counts from the announcement of the shutdown: when the host is let go
	// at the latest.
	Release time.Duration
	// Buckets has one entry for each bucket of the schedule, in its order, those
	// without pods included.
	Buckets []BucketPlan
	// Warnings says in sentences what the pods will not get, at most a few per
	// bucket, in a stable order.
	Warnings []string
}

// BucketPlan is one bucket of a plan with its pods.
type BucketPlan struct {
	// Priority names the bucket, as in [Bucket].
	Priority int32
	// WantedSeconds is the bucket's time as configured, Seconds as fitted; both
	// are 0 or more.
	WantedSeconds, Seconds int64
	// Start and End count from the announcement of the shutdown: when the bucket
	// begins at the latest, and when the next one then does. They are equal for a
	// bucket that is skipped, having no pods, or not waited for, having no time.
	Start, End time.Duration
	// Pods are the bucket's pods in the order in which they were given.
	Pods []PodPlan
}

// PodPlan is one pod of a plan.
type PodPlan struct {
	// Pod is the pod as it was given; it must not be written to.
	Pod *v1.Pod
	// Priority is what [Options.Priority] gives.
	Priority int32
	// WantedSeconds is the pod's terminationGracePeriodSeconds; for a pod without
	// one, what it is granted.
	WantedSeconds int64
	// GrantedSeconds is the grace period override that the pod will be killed
	// with, 0 or more.
	GrantedSeconds int64
	// Start and End count from the announcement of the shutdown: when the pod is killed
	// at the latest, and when its containers have then ended or been killed, if the
	// runtime does what it is told. A container has 2 s to stop, however short the
	// grace is and however much of it a hook has used (the kubelet's
	// minimumGracePeriodInSeconds): End can be after that of the bucket.
	Start, End time.Duration
}

// Truncated tells whether the pod gets less than it asks for.
func (p PodPlan) Truncated() bool { return p.GrantedSeconds < p.WantedSeconds }

// New works out what a drain of these pods by this schedule, ascending by
// priority, will do. It changes none of its arguments, leaves out nil pods, and
// has a result for every input; an empty schedule gives a plan without buckets.
func New(schedule Schedule, pods []*v1.Pod, opts Options) Plan {
	t := NewTimetable(schedule, opts, Announcement{})
	return t.Plan(pods, opts)
}

// Plan works out what the drain of this timetable will do to pods: with all of their
// time, and each bucket starting as late as it may. The options are those that the
// timetable was made with. Nil pods are left out, and nothing is changed.
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
	classes := p.sortIn(pods, opts)
	start, left := t.First(), time.Duration(0)
	for i := range p.Buckets {
		b := &p.Buckets[i]
		b.Priority, b.WantedSeconds, b.Seconds = p.Schedule[i].Priority, p.Wanted.Schedule[i].Seconds, p.Schedule[i].Seconds
		w := t.Window(i, start, left)
		end := b.grant(w, start, t.announced)
		b.Start, b.End = start.Sub(t.announced), end.Sub(t.announced)
		switch {
		case len(b.Pods) == 0:
			left = t.Skip(i, left)
		case b.Seconds > 0:
			left = 0
		}
		start = end
	}
	p.Warnings = p.warnings(classes)
	return p
}

// sortIn puts the pods into their buckets, in one list that the buckets share,
// and gives the priority classes that nobody could resolve.
func (p *Plan) sortIn(pods []*v1.Pod, opts Options) unknownClasses {
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
	room := make([]PodPlan, len(planned))
	for i, n := range counts {
		p.Buckets[i].Pods, room = room[:0:n], room[n:]
	}
	for _, pod := range planned {
		b := &p.Buckets[p.Schedule.Index(pod.Priority)]
		b.Pods = append(b.Pods, pod)
	}
	return unknown
}

// grant sets what the pods of a bucket get that starts at a time, and gives the
// time when the next one does.
func (b *BucketPlan) grant(w Window, start, announced time.Time) (end time.Time) {
	for i := range b.Pods {
		b.Pods[i].grant(w)
		b.Pods[i].Start = w.Ready.Sub(announced)
		b.Pods[i].End = saturatingAdd(b.Pods[i].Start, b.Pods[i].lasts())
	}
	if len(b.Pods) == 0 {
		return start
	}
	return w.End
}

// grant sets what the pod wants and gets.
func (p *PodPlan) grant(w Window) {
	p.GrantedSeconds = w.Seconds(p.Pod, w.Ready)
	p.WantedSeconds = p.GrantedSeconds
	if seconds := p.Pod.Spec.TerminationGracePeriodSeconds; seconds != nil {
		p.WantedSeconds = max(*seconds, 0)
	}
}

// lasts is how long the pod takes at most to end. Only a preStop hook, or the wait of a
// sidecar for its turn, uses up the grace before a container is stopped.
func (p *PodPlan) lasts() time.Duration {
	grace := time.Duration(math.MaxInt64)
	if s := max(p.GrantedSeconds, graceperiod.MinimumPodSeconds); s < int64(grace/time.Second) {
		grace = time.Duration(s) * time.Second
	}
	if stopsLate(p.Pod) {
		return saturatingAdd(grace, containerFloor)
	}
	return max(grace, containerFloor)
}

// stopsLate tells whether a container of the pod may be stopped some time after the
// termination has begun.
func stopsLate(pod *v1.Pod) bool {
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
