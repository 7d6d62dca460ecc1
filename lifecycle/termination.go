package lifecycle

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Termination is one pod's termination, under way or ended. All methods may be
// called concurrently.
type Termination struct {
	table *podTable // whose mutex guards all below

	deadline deadline
	active   *active  // what is needed until the end; nil once that has come
	endedAt  int64    // in nanoseconds since 1970, to be compared with dates in a status
	records  []record // of the containers, once all have ended
}

// active is a termination that is under way.
type active struct {
	ctx        context.Context // of the request, for its values
	pod        *v1.Pod
	message    string // of the Killing events, "" for the kubelet's
	began      time.Time
	containers []*container
	older      *Termination // of the same containers, from before Forget; nil: none
	done       chan struct{}
}

// terminateLocked begins the termination of a pod, or goes on with the one that there
// is.
func (p *podTable) terminateLocked(ctx context.Context, pod *v1.Pod, req *Request, named []Container) *Termination {
	defer p.tidyLocked()
	switch t := p.current; {
	case t == nil:
		chosen := p.chooseLocked(pod, named, req.Containers == nil)
		p.beginLocked(ctx, pod, req, graceOf(pod, req), chosen).takeLocked(chosen)
	case t.active != nil:
		t.joinLocked(pod, req)
		t.takeLocked(p.chooseLocked(pod, named, req.Containers == nil))
	default:
		p.beginAgainLocked(ctx, pod, req, named)
	}
	return p.current
}

// beginLocked begins a termination that is about some containers.
func (p *podTable) beginLocked(ctx context.Context, pod *v1.Pod, req *Request, until deadline, containers []*container) *Termination {
	p.current = &Termination{table: p, deadline: until, active: &active{
		ctx: context.WithoutCancel(ctx), pod: pod, message: req.Message,
		began: time.Now(), containers: containers, done: make(chan struct{}),
	}}
	return p.current
}

// graceOf is the deadline of a termination that begins now.
func graceOf(pod *v1.Pod, req *Request) deadline {
	seconds, _ := graceperiod.ForPod(pod, 0, req.GracePeriodSeconds)
	return grant(seconds)
}

// beginAgainLocked goes on where a termination has ended, if there is something to do or
// to say: afresh if a container was started since, else under the old deadline and with
// the results of those that have ended.
func (p *podTable) beginAgainLocked(ctx context.Context, pod *v1.Pod, req *Request, named []Container) {
	p.reviveLocked()
	old := p.current
	chosen := p.chooseLocked(pod, named, req.Containers == nil && old.isStuck())
	isNews := func(c *container) bool {
		return c.run != nil || c.isToStop() || c.result.Outcome == RuntimeStuck
	}
	startedSince := func(c *container) bool {
		return c.run == nil && c.result.Outcome == "" && (c.began.IsZero() || !isBefore(c.began, time.Unix(0, old.endedAt)))
	}
	switch {
	case !old.isStuck() && !slices.ContainsFunc(chosen, isNews):
	case slices.ContainsFunc(chosen, startedSince):
		chosen = slices.DeleteFunc(chosen, func(c *container) bool { return c.obsolete && !isNews(c) })
		p.beginLocked(ctx, pod, req, graceOf(pod, req), chosen).takeLocked(chosen)
	default:
		ended := slices.DeleteFunc(slices.Clone(p.containers), func(c *container) bool { return !c.hasEnded() || c.result.ID == "" })
		t := p.beginLocked(ctx, pod, req, old.deadline, ended)
		t.joinLocked(pod, req)
		t.takeLocked(chosen)
	}
}

// takeLocked makes containers a part of the termination, and sends those on their way
// that are not. Where there are none it ends.
func (t *Termination) takeLocked(chosen []*container) {
	a := t.active
	for _, c := range chosen {
		isToldOf := func(other *container) bool { return other.isUnknown() && other.result.Name == c.result.Name }
		switch {
		case slices.Contains(a.containers, c):
		case c.isUnknown() && slices.ContainsFunc(a.containers, isToldOf):
			continue
		default:
			a.containers = append(a.containers, c)
		}
		if c.part != nil && c.part != t && c.part.active != nil {
			a.older = c.part
		}
		c.obsolete, c.part = false, t
		if c.run == nil && c.isToStop() {
			c.beginLocked(a.ctx, a.pod, t.deadline, &run{inOrder: true, message: a.message})
		} else if c.run != nil {
			c.run.hookOnly = false
			c.limitLocked(t.deadline)
		}
	}
	t.settleLocked()
}

// settleLocked ends the termination once all of its containers have ended, and gives its
// outcome then, else "".
func (t *Termination) settleLocked() (outcome Outcome) {
	a := t.active
	if a == nil || slices.ContainsFunc(a.containers, func(c *container) bool { return c.run != nil }) {
		return ""
	}
	t.active, t.endedAt, t.records = nil, time.Now().UnixNano(), make([]record, len(a.containers))
	outcome, exceeded := Graceful, false
	for i, c := range a.containers {
		t.records[i] = recordOf(&c.result)
		t.records[i].began = uint32(max(c.began.Unix(), 0))
		outcome, exceeded = outcome.orWorse(c.result.Outcome), exceeded || c.result.Outcome == GraceExceeded
		c.obsolete = !c.isPartOf(t.table.current) // which may be a later one
	}
	metrics := t.table.terminator.opts.Metrics
	metrics.PodTerminated(string(outcome), time.Since(a.began))
	if exceeded {
		metrics.PodGraceExceeded()
	}
	close(a.done)
	return outcome
}

// isStuck tells whether a container of an ended termination may run.
func (t *Termination) isStuck() bool {
	return slices.ContainsFunc(t.records, func(r record) bool { return r.unpack().Outcome == RuntimeStuck })
}

// Deadline is when hooks and waits end and every container has at most
// [graceperiod.MinimumContainerSeconds] left. It only ever moves earlier.
func (t *Termination) Deadline() time.Time {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	return t.deadline.at()
}

// Shorten moves the deadline to seconds from now, 1 at least, and tells whether that
// is earlier than it was; if it is not, nothing changes. It takes effect at once: a
// hook or a wait ends at the new deadline, and a stop in flight is overtaken by a
// second, parallel StopContainer with less.
func (t *Termination) Shorten(seconds int64) bool {
	t.table.mu.Lock()
	shortened, a := t.shortenLocked(seconds), t.active
	t.table.unlock()
	if shortened {
		logV1(a.ctx, func(l klog.Logger) {
			l.Info("Shortened the termination of a pod", "pod", klog.KObj(a.pod), "gracePeriod", seconds)
		})
	}
	return shortened
}

func (t *Termination) shortenLocked(seconds int64) bool {
	d := grant(max(seconds, graceperiod.MinimumPodSeconds))
	d.shortened = true
	if t.active == nil || t.table.closed || !d.at().Before(t.deadline.at()) {
		return false
	}
	t.deadline = d
	for _, c := range t.active.containers {
		c.limitLocked(d)
	}
	return true
}

// joinLocked shortens a termination if a further request for it asks for less.
func (t *Termination) joinLocked(pod *v1.Pod, req *Request) {
	if seconds, shortened := graceperiod.ForPod(pod, t.deadline.granted, req.GracePeriodSeconds); shortened {
		t.shortenLocked(seconds)
	}
}

// Done is closed when every container has ended, or cannot be helped.
func (t *Termination) Done() <-chan struct{} {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	if t.active != nil {
		return t.active.done
	}
	ended := make(chan struct{})
	close(ended)
	return ended
}

// Wait waits until every container has ended, and gives the result with the error of
// [Result.Err]. ctx bounds the waiting only: when it ends, the termination goes on,
// the result is that of the moment, and the error is a [*StillRunningError] that names
// the containers which have not ended; if the pod should have ended by then, an
// ExceededGracePeriod event says so, as the kubelet does after its own timeout.
func (t *Termination) Wait(ctx context.Context) (Result, error) {
	select {
	case <-t.Done():
	case <-ctx.Done():
	}
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	result, a := t.resultLocked(), t.active
	if a == nil {
		return result, result.Err()
	}
	if time.Since(t.deadline.at()) >= graceperiod.Duration(graceperiod.MinimumContainerSeconds) {
		if i := slices.IndexFunc(a.containers, func(c *container) bool { return c.calls > 0 }); i >= 0 {
			a.containers[i].warnLocked(ctx, a.pod, "ExceededGracePeriod", "Container runtime did not kill the pod within specified grace period.")
		}
	}
	running := &StillRunningError{Cause: context.Cause(ctx)}
	for _, c := range result.Containers {
		if c.Outcome == "" {
			running.Containers = append(running.Containers, fullName(a.pod, c.Name))
		}
	}
	slices.Sort(running.Containers)
	return result, running
}

// Result is what became of the containers so far: those of the request first. It is a
// copy, final once [Termination.Done] is closed.
func (t *Termination) Result() Result {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	return t.resultLocked()
}

func (t *Termination) resultLocked() Result {
	result := Result{GracePeriodSeconds: t.deadline.granted}
	for i := range t.records {
		result.Containers = append(result.Containers, t.records[i].unpack())
	}
	if t.active != nil {
		for _, c := range t.active.containers {
			result.Containers = append(result.Containers, c.result)
		}
	}
	return result
}
