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

// Termination is the termination of one pod, under way or ended. All methods may be called
// concurrently.
type Termination struct {
	life    *life    // its mutex guards the fields below
	active  *active  // what is needed while the termination is under way; nil once it has ended
	granted int64    // the grace period at the end, in seconds
	since   int64    // its start, in nanoseconds since 1970
	endedAt int64    // likewise
	records []record // results of the containers, once all have ended
}

// active has the fields of a termination that are needed only while it is under way.
type active struct {
	ctx       context.Context // of the request, for its values
	logger    klog.Logger
	pod       *v1.Pod
	request   *Request
	deadline  deadline
	startedAt time.Time
	attempts  []*attempt
	carried   []record // of the termination that this one replaces
	including bool     // attempts are being added, so that it does not end
	unit      *unit    // how they are stopped together; nil: one by one
	exceeded  bool     // a container of an earlier termination has exceeded its grace
	done      chan struct{}
}

// grantedTo returns the deadline of a termination that starts now.
func grantedTo(pod *v1.Pod, req *Request) deadline {
	seconds, _ := graceperiod.ForPod(pod, 0, req.GracePeriodSeconds)
	return grant(seconds)
}

// terminate is [Pod.Terminate] with the error, for a handle or for whoever keeps none, who passes
// the pod.
func terminate(ctx context.Context, l *life, handle *Pod, pod *v1.Pod, req *Request) (*Termination, error) {
	pod, err := l.lock(handle, pod)
	if err != nil {
		return nil, err
	}
	o := order{life: l, ctx: context.WithoutCancel(ctx), logger: klog.FromContext(ctx).V(1), pod: pod, req: req}
	t, err := o.terminate()
	isClosed := err == nil && l.settings().isClosed() && !t.isActive() && len(t.records) == 0
	l.mu.Unlock()
	switch {
	case err != nil:
		return nil, err
	case isClosed: // what ran in the end is not known any more
		return failedTermination(AgentStopping), nil
	}
	if o.logger.Enabled() {
		o.logger.Info("Terminating pod", "pod", klog.KObj(pod))
	}
	return t, nil
}

// failedTermination returns a termination that has ended with an error.
func failedTermination(err error) *Termination {
	result := ContainerResult{Outcome: RuntimeStuck, Err: err}
	if errors.Is(err, AgentStopping) {
		result.Outcome = LeftRunning
	}
	return &Termination{life: &life{}, records: []record{recordOf(&result, false, time.Time{})}}
}

// maxCarried is how many containers that have ended in earlier terminations are known by ID.
const maxCarried = 64

// replace gives a termination what it has from the one that it replaces: its deadline while
// that is ahead, or if there is only something that was stuck under it, and then its results
// too. It has a grace period of its own if that deadline has passed, and if a container is to
// be stopped that had ended.
func (t *Termination) replace(old *Termination, chosen []*attempt) {
	if old == nil {
		return
	}
	a, before := t.active, old.deadline()
	t.endedAt = old.endedAt // of what is carried
	isNew := func(c *attempt) bool { return c.result.Outcome == "" && c.run == nil }
	isAgain := func(c *attempt) bool { return c.hasEnded() && !c.isStuck() || c.flags.renew }
	a.exceeded = slices.ContainsFunc(old.records, func(r record) bool { return r.is(GraceExceeded) })
	isOpen := func(r record) bool { // what may run still is chosen again, unless it was proven to have ended
		return r.is(RuntimeStuck) || slices.ContainsFunc(chosen, func(c *attempt) bool { return c.result.Name == r.name && c.result.ID == r.id })
	}
	a.carried = slices.DeleteFunc(slices.Clone(old.records), isOpen)
	if slices.ContainsFunc(chosen, isAgain) || before.isOver() && slices.ContainsFunc(chosen, isNew) {
		for i := range a.carried { // they are known by their IDs, and no results of this one
			a.carried[i].hidden, a.carried[i].hookOutcome = true, labelIndex("")
		}
		a.carried = a.carried[max(len(a.carried)-maxCarried, 0):]
		return
	}
	a.deadline = before
	t.shortenToRequest(a.pod, a.request)
	for _, c := range t.life.live.all() { // what has ended alone since is no longer stuck
		if c.isOver() && old.hasEnded(c.result.Name, true) && !slices.Contains(chosen, c) {
			a.attempts = append(a.attempts, c)
		}
	}
}

// include adds attempts to the termination. It starts to stop those that are not being
// stopped, and gives the others the deadline of the termination. The termination ends if none
// of them is being stopped then.
func (t *Termination) include(chosen []*attempt, req *Request) {
	a := t.active
	if a.including = true; a.unit == nil || a.unit.isLed() {
		a.unit = t.life.settings().newUnit()
	}
	t.life.live.addTermination(t)
	if len(a.attempts) == 0 {
		a.attempts = chosen[:0] // it becomes the same
	}
	for _, c := range chosen {
		t.await(c)
		switch {
		case c.run != nil:
			c.limitLocked(a.deadline)
		case c.isUnknown() && a.unit == nil:
			c.giveUpLocked()
		default:
			until := a.deadline
			if c.isOver() {
				c.deadline = deadline{}
				if own := grantedTo(a.pod, req); own.at().Before(until.at()) {
					until = own
				}
			}
			(&run{
				message: a.request.Message, unit: a.unit, hooks: req.Hooks, manner: manner{inOrder: true, once: req.OneAttempt},
			}).startLocked(a.ctx, t.life.live, c, a.pod, until)
		}
	}
	a.including = false
	t.endIfDone()
}

// await makes an attempt one of the termination, which ends after it.
func (t *Termination) await(c *attempt) {
	if c.flags.obsolete = false; !slices.Contains(t.active.attempts, c) {
		t.active.attempts = append(t.active.attempts, c)
	}
}

// awaitRestart makes the attempt to start a container again one of the termination, in the
// place of the attempt before it.
func (t *Termination) awaitRestart(c, before *attempt) {
	a := t.active
	a.attempts = slices.Insert(a.attempts, slices.Index(a.attempts, before)+1, c)
	(&run{
		message: a.request.Message, hooks: a.request.Hooks, manner: manner{inOrder: true, restart: true},
	}).startLocked(a.ctx, t.life.live, c, a.pod, a.deadline)
}

// endIfDone ends the termination if all of its attempts have ended. It returns a function to
// call without the mutex, which logs that, nil if there is nothing to log.
func (t *Termination) endIfDone() (log func()) {
	a, l := t.active, t.life
	if a == nil || a.including || slices.ContainsFunc(a.attempts, func(c *attempt) bool { return c.run != nil }) {
		return nil
	}
	t.active, t.endedAt, t.granted, t.since = nil, time.Now().UnixNano(), a.deadline.granted, a.deadline.since.UnixNano()
	l.live.removeTermination(t)
	t.records = append(make([]record, 0, len(a.carried)+len(a.attempts)), a.carried...)
	exceeded := false
	a.attempts = slices.DeleteFunc(a.attempts, func(c *attempt) bool { return c.flags.left })
	for _, c := range a.attempts {
		t.records = append(t.records, recordOf(&c.result, c.isReplaced(), c.began()))
		exceeded = exceeded || c.result.Outcome == GraceExceeded
		c.flags.obsolete = c.isOver() && (t == l.current || l.live.isInherited())
	}
	for _, c := range l.live.all() { // what had ended before is known by its ID
		if t == l.current && c.isOver() && !c.flags.obsolete {
			c.flags.obsolete = true
			t.records = append(t.records, recordOf(&c.result, true, c.began()))
		}
	}
	worst := labelIndex(string(Graceful))
	for i := range t.records {
		if !t.records[i].hidden {
			worst = max(worst, t.records[i].outcome)
		}
	}
	l.live.clear()
	l.settings().Metrics.PodTerminated(labelAt(worst), time.Since(a.startedAt))
	if exceeded && !a.exceeded {
		l.settings().Metrics.PodGraceExceeded()
	}
	close(a.done)
	if !a.logger.Enabled() {
		return nil
	}
	return func() {
		a.logger.Info("Pod terminated", "pod", klog.KObj(a.pod), "outcome", t.Result().Outcome(), "took", time.Since(a.startedAt))
	}
}

// isActive reports whether there is a termination that is under way.
func (t *Termination) isActive() bool { return t != nil && t.active != nil }

// hasEnded reports whether there is a termination that has ended, and had a container of a name,
// or any if that is "", that may still have run at the end, or had not.
func (t *Termination) hasEnded(name string, stuck bool) bool {
	return t != nil && t.active == nil && slices.ContainsFunc(t.records, func(r record) bool {
		return (name == "" || r.name == name) && r.is(RuntimeStuck) == stuck
	})
}

// recordOf returns the record of a container with an ID that has ended, and when, nil if there is
// none.
func (t *Termination) recordOf(id string) (r *record, endedAt time.Time) {
	if t == nil {
		return nil, time.Time{}
	}
	records := t.records
	if t.active != nil {
		records = t.active.carried
	}
	isOf := func(r record) bool { return r.id == id && !r.is(RuntimeStuck) }
	if i := slices.IndexFunc(records, isOf); i >= 0 {
		r = &records[i]
	}
	return r, time.Unix(0, t.endedAt)
}

// isOf reports whether an attempt is one of a termination that is under way.
func (t *Termination) isOf(c *attempt) bool {
	return t.isActive() && slices.Contains(t.active.attempts, c)
}

// deadline returns the deadline, as it is or as it was at the end.
func (t *Termination) deadline() deadline {
	if t.active != nil {
		return t.active.deadline
	}
	return deadline{granted: t.granted, since: time.Unix(0, t.since)}
}

// shorten is [Termination.Shorten] without the log message.
func (t *Termination) shorten(seconds int64) bool {
	d := grant(max(seconds, graceperiod.MinimumPodSeconds))
	d.shortened = true
	if t.active == nil || t.life.settings().isClosed() || !d.at().Before(t.active.deadline.at()) {
		return false
	}
	t.active.deadline = d
	for _, c := range t.active.attempts {
		if c.run != nil {
			c.limitLocked(d)
		}
	}
	return true
}

// shortenToRequest shortens a termination that is under way if a further request has a
// shorter grace period.
func (t *Termination) shortenToRequest(pod *v1.Pod, req *Request) {
	if seconds, shortened := graceperiod.ForPod(pod, t.active.deadline.granted, req.GracePeriodSeconds); shortened {
		t.shorten(seconds)
	}
}
