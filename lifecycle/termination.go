package lifecycle

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// Termination is the termination of one pod, under way or ended. All methods may be called
// concurrently.
type Termination struct {
	table *podTable // its mutex guards the fields below

	deadline deadline
	active   *active  // what is needed while the termination is under way; nil once it has ended
	endedAt  int64    // in nanoseconds since 1970, for comparisons with times in a status
	records  []record // results of the containers, once all have ended
}

// active has the fields of a termination that are needed only while it is under way.
type active struct {
	ctx        context.Context // of the request, for its values
	pod        *v1.Pod
	message    string // of the Killing events, "" for the kubelet's
	startedAt  time.Time
	containers []*container
	older      *Termination // under way for some of the containers since before Forget; nil: none
	done       chan struct{}
}

// terminateLocked starts the termination of a pod, or continues the one that exists.
func (p *podTable) terminateLocked(ctx context.Context, pod *v1.Pod, req *Request, named []Container) *Termination {
	defer p.removeObsoleteLocked()
	switch t := p.current; {
	case t == nil:
		chosen := p.chooseLocked(pod, named, req.Containers == nil)
		p.newTerminationLocked(ctx, pod, req, podDeadline(pod, req), chosen).includeLocked(chosen)
	case t.active != nil:
		t.shortenToRequestLocked(pod, req)
		t.includeLocked(p.chooseLocked(pod, named, req.Containers == nil))
	default:
		p.terminateAgainLocked(ctx, pod, req, named)
	}
	return p.current
}

// newTerminationLocked makes a termination of some containers the current one of the pod.
func (p *podTable) newTerminationLocked(ctx context.Context, pod *v1.Pod, req *Request, until deadline, containers []*container) *Termination {
	p.current = &Termination{table: p, deadline: until, active: &active{
		ctx: context.WithoutCancel(ctx), pod: pod, message: req.Message,
		startedAt: time.Now(), containers: containers, done: make(chan struct{}),
	}}
	return p.current
}

// podDeadline returns the deadline of a termination that starts now.
func podDeadline(pod *v1.Pod, req *Request) deadline {
	seconds, _ := graceperiod.ForPod(pod, 0, req.GracePeriodSeconds)
	return grant(seconds)
}

// terminateAgainLocked replaces a termination that has ended by a new one, if there is
// something to stop. The new one has a new grace period if a container was started since,
// else the old deadline and the results of the containers that have ended.
func (p *podTable) terminateAgainLocked(ctx context.Context, pod *v1.Pod, req *Request, named []Container) {
	p.restoreRecordsLocked()
	old := p.current
	chosen := p.chooseLocked(pod, named, req.Containers == nil && old.isStuck())
	isPending := func(c *container) bool {
		return c.run != nil || c.isToStop() || c.result.Outcome == RuntimeStuck
	}
	startedSince := func(c *container) bool {
		return c.run == nil && c.result.Outcome == "" && (c.startedAt.IsZero() || !isBefore(c.startedAt, time.Unix(0, old.endedAt)))
	}
	switch {
	case !old.isStuck() && !slices.ContainsFunc(chosen, isPending):
	case slices.ContainsFunc(chosen, startedSince):
		chosen = slices.DeleteFunc(chosen, func(c *container) bool { return c.obsolete && !isPending(c) })
		p.newTerminationLocked(ctx, pod, req, podDeadline(pod, req), chosen).includeLocked(chosen)
	default:
		ended := slices.DeleteFunc(slices.Clone(p.containers), func(c *container) bool { return !c.hasEnded() })
		t := p.newTerminationLocked(ctx, pod, req, old.deadline, ended)
		t.shortenToRequestLocked(pod, req)
		t.includeLocked(chosen)
	}
}

// includeLocked adds containers to the termination. It starts to stop those that are not
// being stopped, and gives the others the deadline of the termination. The termination
// ends if none of its containers is being stopped then.
func (t *Termination) includeLocked(chosen []*container) {
	a := t.active
	for _, c := range chosen {
		sameUnknown := func(other *container) bool { return other.isUnknown() && other.result.Name == c.result.Name }
		switch {
		case slices.Contains(a.containers, c):
		case c.isUnknown() && slices.ContainsFunc(a.containers, sameUnknown):
			continue
		default:
			a.containers = append(a.containers, c)
		}
		if c.termination != nil && c.termination != t && c.termination.active != nil {
			a.older = c.termination
		}
		c.obsolete, c.termination = false, t
		if c.run == nil && c.isToStop() {
			c.startRunLocked(a.ctx, a.pod, t.deadline, &run{inOrder: true, message: a.message})
		} else if c.run != nil {
			c.run.hookOnly = false
			c.limitLocked(t.deadline)
		}
	}
	t.endIfDoneLocked()
}

// endIfDoneLocked ends the termination if all of its containers have ended, and returns
// its outcome then, else "".
func (t *Termination) endIfDoneLocked() (outcome Outcome) {
	a := t.active
	if a == nil || slices.ContainsFunc(a.containers, func(c *container) bool { return c.run != nil }) {
		return ""
	}
	t.active, t.endedAt, t.records = nil, time.Now().UnixNano(), make([]record, len(a.containers))
	outcome, exceeded := Graceful, false
	for i, c := range a.containers {
		t.records[i] = recordOf(&c.result)
		t.records[i].startedAt = uint32(max(c.startedAt.Unix(), 0))
		outcome, exceeded = outcome.orWorse(c.result.Outcome), exceeded || c.result.Outcome == GraceExceeded
		c.obsolete = !c.isPartOf(t.table.current) // which may be a later termination
	}
	metrics := t.table.terminator.opts.Metrics
	metrics.PodTerminated(string(outcome), time.Since(a.startedAt))
	if exceeded {
		metrics.PodGraceExceeded()
	}
	close(a.done)
	return outcome
}

// isStuck reports whether a container of a termination that has ended may still run.
func (t *Termination) isStuck() bool {
	return slices.ContainsFunc(t.records, func(r record) bool { return r.unpack().Outcome == RuntimeStuck })
}

// Deadline returns when the grace period ends. Hooks and waits end then, and every
// container has at most [graceperiod.MinimumContainerSeconds] left to stop. The deadline
// only moves earlier.
func (t *Termination) Deadline() time.Time {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	return t.deadline.at()
}

// Shorten moves the deadline to seconds from now, at least 1, if that is earlier, and
// returns whether it did. It takes effect at once: a hook or a wait ends at the new
// deadline, and for a StopContainer that is under way a second, concurrent call with a
// shorter timeout is made.
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

// shortenLocked is [Termination.Shorten] without the log message.
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

// shortenToRequestLocked shortens a termination that is under way if a further request has
// a shorter grace period.
func (t *Termination) shortenToRequestLocked(pod *v1.Pod, req *Request) {
	if seconds, shortened := graceperiod.ForPod(pod, t.deadline.granted, req.GracePeriodSeconds); shortened {
		t.shortenLocked(seconds)
	}
}

// Done returns a channel that is closed when every container has ended or was given up.
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

// Wait waits until every container has ended or was given up, and returns the result with
// the error of [Result.Err]. When ctx ends first, the termination goes on: the result is
// that of now, and the error is a [*StillRunningError] with the containers that have not
// ended. If the deadline passed [graceperiod.MinimumContainerSeconds] ago or more, an
// ExceededGracePeriod event is recorded, as by the kubelet after its own timeout.
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
		if i := slices.IndexFunc(a.containers, func(c *container) bool { return c.goroutines > 0 }); i >= 0 {
			a.containers[i].recordWarningLocked(ctx, a.pod, "ExceededGracePeriod", "Container runtime did not kill the pod within specified grace period.")
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

// Result returns a copy of the containers' results so far, those of the request first. It
// is final once [Termination.Done] is closed.
func (t *Termination) Result() Result {
	t.table.mu.Lock()
	defer t.table.mu.Unlock()
	return t.resultLocked()
}

// resultLocked returns the records of a termination that has ended, or the results so far.
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
