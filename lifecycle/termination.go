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
	unknown    []ContainerResult // of containers that nobody knows
	done       chan struct{}
}

// terminateLocked begins the termination of a pod, or goes on with the one that there
// is; begun is nil then.
func (p *podTable) terminateLocked(ctx context.Context, pod *v1.Pod, req Request) (t *Termination, begun *active) {
	p.reviveLocked()
	defer p.tidyLocked()
	t = p.current
	underWay := t != nil && t.active != nil
	ended := t != nil && !underWay && !t.isStuck()
	chosen, unknown := p.chooseLocked(pod, req, ended)
	isNews := func(c *container) bool { return c.run != nil || c.isToStop() }
	startedSince := func(c *container) bool {
		return !c.hasEnded() && c.run == nil && (c.began.IsZero() || !c.began.Before(time.Unix(0, t.endedAt)))
	}
	switch {
	case underWay:
		t.joinLocked(pod, req)
	case ended && len(unknown) == 0 && !slices.ContainsFunc(chosen, isNews):
		return t, nil
	case t == nil || slices.ContainsFunc(chosen, startedSince): // afresh
		seconds, _ := graceperiod.ForPod(pod, 0, req.GracePeriodSeconds)
		t = p.newTerminationLocked(ctx, pod, req, grant(seconds))
		begun = t.active
		chosen = slices.DeleteFunc(chosen, func(c *container) bool { return c.obsolete && !isNews(c) })
	default: // under the old deadline, with the results of those that have ended
		all := slices.DeleteFunc(slices.Clone(p.containers), func(c *container) bool {
			return !slices.Contains(chosen, c) && (!c.hasEnded() || c.result.ID == "")
		})
		t = p.newTerminationLocked(ctx, pod, req, t.deadline)
		begun, chosen = t.active, all
		t.joinLocked(pod, req)
	}
	t.active.unknown = unknown
	t.takeLocked(chosen)
	t.settleLocked()
	return t, begun
}

func (p *podTable) newTerminationLocked(ctx context.Context, pod *v1.Pod, req Request, until deadline) *Termination {
	p.current = &Termination{table: p, deadline: until, active: &active{
		ctx: context.WithoutCancel(ctx), pod: pod, message: req.Message, began: time.Now(), done: make(chan struct{}),
	}}
	return p.current
}

// takeLocked makes containers a part of the termination, and sends those on their way
// that are not.
func (t *Termination) takeLocked(chosen []*container) {
	a := t.active
	for _, c := range chosen {
		if !slices.Contains(a.containers, c) {
			a.containers = append(a.containers, c)
		}
		c.obsolete = false
		switch {
		case c.run != nil:
			c.run.hookOnly = false
			if !slices.Contains(c.run.parts, t) {
				c.run.parts = append(c.run.parts, t)
			}
			c.limitLocked(t.deadline)
		case c.isToStop():
			c.beginLocked(a.ctx, a.pod, t.deadline, &run{inOrder: true, message: a.message, parts: []*Termination{t}})
		}
	}
}

// settleLocked ends the termination once all of its containers have ended. It gives
// what was under way until then, else nil.
func (t *Termination) settleLocked() *active {
	a := t.active
	if a == nil || slices.ContainsFunc(a.containers, func(c *container) bool { return c.run != nil }) {
		return nil
	}
	result := t.resultLocked()
	t.active, t.endedAt = nil, time.Now().UnixNano()
	t.records = make([]record, len(result.Containers))
	exceeded := false
	for i, c := range result.Containers {
		t.records[i] = recordOf(c)
		exceeded = exceeded || c.Outcome == GraceExceeded
	}
	for _, c := range a.containers {
		c.obsolete = !c.isPartOf(t.table.current) // which may be a later one
	}
	metrics := t.table.terminator.opts.Metrics
	metrics.PodTerminated(string(result.Outcome()), time.Since(a.began))
	if exceeded {
		metrics.PodGraceExceeded()
	}
	close(a.done)
	return a
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
		klog.FromContext(a.ctx).V(1).Info("Shortened the termination of a pod", "pod", klog.KObj(a.pod), "gracePeriod", seconds)
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
func (t *Termination) joinLocked(pod *v1.Pod, req Request) {
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
		if running := t.stillRunning(ctx); running != nil {
			t.recordOverdue(ctx)
			return t.Result(), running
		}
	}
	result := t.Result()
	return result, result.Err()
}

// stillRunning is the error of a caller that stops waiting, nil if the termination has
// ended.
func (t *Termination) stillRunning(ctx context.Context) error {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	if t.active == nil {
		return nil
	}
	var names []string
	for _, c := range t.active.containers {
		if c.run != nil && c.result.Outcome == "" {
			names = append(names, c.fullName())
		}
	}
	slices.Sort(names)
	return &StillRunningError{Containers: names, Cause: context.Cause(ctx)}
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
	if t.active == nil {
		for _, r := range t.records {
			result.Containers = append(result.Containers, r.unpack())
		}
		return result
	}
	for _, c := range t.active.containers {
		result.Containers = append(result.Containers, c.result)
	}
	result.Containers = append(result.Containers, t.active.unknown...)
	return result
}
