package lifecycle

import (
	"context"
	"errors"
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
	done       chan struct{}
}

// terminateLocked begins the termination of a pod, or goes on with the one that there
// is; begun is nil then.
func (p *podTable) terminateLocked(ctx context.Context, pod *v1.Pod, req Request) (t *Termination, begun *active) {
	p.reviveLocked()
	defer p.tidyLocked()
	t = p.current
	under := t != nil && t.active != nil
	ended := t != nil && !under && !t.isStuck()
	chosen := p.chooseLocked(pod, req, ended)
	switch {
	case t == nil:
		t = p.newTerminationLocked(ctx, pod, req, grantOf(pod, req))
	case ended && !slices.ContainsFunc(chosen, (*container).isNews):
		return t, nil
	case !under:
		t, chosen = p.beginAgainLocked(ctx, pod, req, chosen)
	}
	if under {
		t.joinLocked(pod, req)
	} else {
		begun = t.active
	}
	t.takeLocked(chosen)
	t.settleLocked()
	return t, begun
}

// grantOf is the deadline of a pod whose termination begins now.
func grantOf(pod *v1.Pod, req Request) deadline {
	seconds, _ := graceperiod.ForPod(pod, 0, req.GracePeriodSeconds)
	return grant(seconds)
}

func (p *podTable) newTerminationLocked(ctx context.Context, pod *v1.Pod, req Request, until deadline) *Termination {
	p.current = &Termination{table: p, deadline: until, active: &active{
		ctx: context.WithoutCancel(ctx), pod: pod, message: req.Message, began: time.Now(), done: make(chan struct{}),
	}}
	return p.current
}

// beginAgainLocked goes on where a termination has ended: afresh if there is a
// container that was started since, else under the old deadline and with the results
// of those that have ended.
func (p *podTable) beginAgainLocked(ctx context.Context, pod *v1.Pod, req Request, chosen []*container) (*Termination, []*container) {
	old := p.current
	since := func(c *container) bool {
		return !c.hasEnded() && !c.ending && (c.began.IsZero() || !c.began.Before(time.Unix(0, old.endedAt)))
	}
	if slices.ContainsFunc(chosen, since) {
		chosen = slices.DeleteFunc(chosen, func(c *container) bool { return c.obsolete && !c.isNews() && !c.isStuck() })
		return p.newTerminationLocked(ctx, pod, req, grantOf(pod, req)), chosen
	}
	all := slices.Clone(p.containers)
	all = slices.DeleteFunc(all, func(c *container) bool {
		return !slices.Contains(chosen, c) && (!c.hasEnded() || c.isUnknown())
	})
	t := p.newTerminationLocked(ctx, pod, req, old.deadline)
	t.joinLocked(pod, req)
	return t, all
}

// takeLocked makes containers a part of the termination, and sends those on their way
// that are not.
func (t *Termination) takeLocked(chosen []*container) {
	a := t.active
	for _, c := range chosen {
		if !slices.Contains(a.containers, c) {
			a.containers = append(a.containers, c)
		}
		c.obsolete, c.hookOnly = false, false
		if !c.ending && !c.isToStop() {
			continue
		}
		if !slices.Contains(c.parts, t) {
			c.parts = append(c.parts, t)
		}
		if c.ending {
			c.limitLocked(t.deadline)
			continue
		}
		c.inOrder, c.message = true, a.message
		c.beginLocked(a.ctx, a.pod, t.deadline)
	}
}

// settleLocked ends the termination once all of its containers have ended. It gives
// what was under way until then, else nil.
func (t *Termination) settleLocked() *active {
	a := t.active
	if a == nil || slices.ContainsFunc(a.containers, func(c *container) bool { return c.ending }) {
		return nil
	}
	t.active, t.endedAt = nil, time.Now().UnixNano()
	t.records = make([]record, len(a.containers))
	exceeded := false
	for i, c := range a.containers {
		t.records[i] = recordOf(c.result)
		exceeded = exceeded || c.result.Outcome == GraceExceeded
		c.obsolete = !c.isPartOf(t.table.current) // which may be a later one
	}
	metrics := t.table.terminator.opts.Metrics
	metrics.PodTerminated(string(t.resultLocked().Outcome()), time.Since(a.began))
	if exceeded {
		metrics.PodGraceExceeded()
	}
	close(a.done)
	return a
}

// logEnd logs the end of a termination.
func (t *Termination) logEnd(a *active) {
	if logger := klog.FromContext(a.ctx).V(1); logger.Enabled() {
		logger.Info("Pod terminated", "pod", klog.KObj(a.pod), "outcome", t.Result().Outcome(), "took", time.Since(a.began))
	}
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
		if c.ending {
			c.limitLocked(d)
		}
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
	if t.active == nil {
		return t.table.terminator.past
	}
	return t.active.done
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
		if c.ending && c.result.Outcome == "" {
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
	return result
}

// refused is the termination of no pod.
func (tr *Terminator) refused(err error) *Termination {
	result := ContainerResult{Phase: PhaseEnded, Outcome: RuntimeStuck, Err: errors.Join(err)}
	return &Termination{table: &podTable{terminator: tr}, records: []record{recordOf(result)}}
}
