package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// container is one container in the table of its pod. The table's mutex guards what
// changes.
type container struct {
	table    *podTable
	result   ContainerResult
	began    time.Time // by the status of its pod, zero if that does not say
	endedAt  time.Time // when nothing more was to be done about it
	started  bool      // by [Terminator.Start]
	obsolete bool      // it leaves the table as soon as nothing works for it
	start    start     // a call of Start that is under way
	guests   int       // postStart hooks that are under way

	// All below is for a container that is being stopped.
	ending   bool
	hookOnly bool           // it has exited: only its hook is run
	unseen   bool           // Start has started it, and neither request nor status named it
	inOrder  bool           // it stops in the order of its pod
	parts    []*Termination // that it is a part of; the last one says the order
	pod      *v1.Pod
	spec     *v1.Container // nil: the pod's spec has none of this name
	role     role
	message  string // of the Killing event, "" for the kubelet's
	told     bool   // that event was recorded
	hook     preStop
	exit     exit

	deadline deadline
	timer    *time.Timer     // comes at the deadline
	life     context.Context // ended by Close, and at the end: stops run under it
	endLife  context.CancelCauseFunc
	grace    context.Context // ended by Close, and at the deadline: hooks run under it
	endGrace context.CancelCauseFunc

	calls int // goroutines that work for it
}

// hasEnded tells whether a container was stopped, or given up.
func (c *container) hasEnded() bool { return !c.ending && c.result.Outcome != "" }

// isUnknown tells whether a container has no ID and will have none.
func (c *container) isUnknown() bool { return c.hasEnded() && c.result.ID == "" && !c.starting() }

// isStuck tells whether a container may be asked for again.
func (c *container) isStuck() bool {
	return c.hasEnded() && c.result.Outcome == RuntimeStuck && c.result.ID != ""
}

// mayRun tells whether a container that nobody has named is to be stopped with its pod.
func (c *container) mayRun(pod *v1.Pod) bool {
	switch {
	case c.starting():
		return true
	case c.ending:
		return !c.hookOnly
	case c.result.Outcome != "":
		return c.isStuck()
	default:
		return c.guests > 0 || c.started && !hasExited(pod, c.result.ID)
	}
}

// isIdle tells whether nothing is known of a container that must be kept.
func (c *container) isIdle() bool {
	return !c.started && !c.starting() && !c.ending && !c.hook.ran && c.guests == 0 && c.result.Outcome == ""
}

// isToStop tells whether there is something to be done about a container that its
// pod's termination is about.
func (c *container) isToStop() bool {
	return !c.ending && (c.result.Outcome == "" || c.isStuck() || c.starting())
}

// isNews tells whether a container gives a pod's termination that had ended something
// to do, or to say.
func (c *container) isNews() bool {
	return c.ending || c.isToStop() || c.isUnknown() && !c.obsolete
}

// beginLocked sends a container on its way to its end, in a goroutine of its own. A
// container that got stuck keeps its deadline. ctx gives values, and must not end.
func (c *container) beginLocked(ctx context.Context, pod *v1.Pod, until deadline) {
	if c.deadline.since.IsZero() || until.at().Before(c.deadline.at()) {
		c.deadline = until
	}
	c.pod = pod
	c.spec, c.role = findContainer(pod, c.result.Name)
	c.result.Phase, c.result.Outcome, c.result.Err = "", "", nil
	if !c.told {
		c.result.GrantedSeconds = until.granted
	}
	if c.spec == nil {
		c.result.Err = notInSpec(pod, c.result, c.message)
	}
	if c.table.closed {
		c.endLocked(LeftRunning, nil)
		c.finishLocked()
		return
	}
	c.ending = true
	c.life, c.endLife = context.WithCancelCause(ctx)
	c.grace, c.endGrace = context.WithCancelCause(ctx)
	c.timer = time.AfterFunc(time.Until(c.deadline.at()), c.expire)
	if c.unseen || kindOf(c.handler()) == kindSleep {
		c.askExitLocked(c.life)
	}
	c.calls++
	go c.run(c.hookOnly)
}

// limitLocked holds a container that is being stopped to an earlier deadline.
func (c *container) limitLocked(d deadline) {
	if !d.at().Before(c.deadline.at()) {
		return
	}
	c.deadline = deadline{granted: d.granted, since: d.since, shortened: true}
	c.timer.Reset(time.Until(d.at()))
}

// expire is called when the deadline has come.
func (c *container) expire() {
	c.table.mu.Lock()
	defer c.table.unlock()
	if c.deadline.isOver() { // else it was moved in the moment that the timer fired
		c.endGrace(c.deadline.cause())
	}
}

// watch is the deadline of a container, and what is closed when it may have moved.
func (c *container) watch() (d deadline, changed <-chan struct{}) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.deadline, c.table.changedLocked()
}

// isLeft tells whether the agent stops.
func (c *container) isLeft() bool { return c.life.Err() != nil }

func (c *container) setPhase(phase Phase) {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	c.result.Phase = phase
}

// run is the way of a container, as in the kubelet's killContainer.
func (c *container) run(hookOnly bool) {
	defer c.rest(c.pod)
	if hookOnly && c.runOnExit() {
		return
	}
	c.end(c.walk())
	c.awaitHook()
	c.finish()
}

// walk stops a container and gives its outcome.
func (c *container) walk() (Outcome, error) {
	if outcome, err := c.awaitStart(); outcome != "" {
		return outcome, err
	}
	if c.hasExitedUnseen() {
		return NotFound, nil
	}
	c.tell()
	atTurn := c.table.terminator.opts.HookTiming == HooksAtTurn
	if !atTurn {
		c.preStop()
	}
	c.awaitTurn()
	if atTurn {
		c.preStop()
	}
	if outcome, err := c.awaitStart(); outcome != "" { // of a sidecar that is being started again
		return outcome, err
	}
	return c.stop()
}

// hasExitedUnseen tells whether a container has exited of which only Start knew.
func (c *container) hasExitedUnseen() bool {
	return c.unseen && isClosed(c.exited(c.life.Done()))
}

// end gives a container its outcome, and lets those go who wait for their turn.
func (c *container) end(outcome Outcome, err error) {
	c.table.mu.Lock()
	defer c.table.unlock()
	c.endLocked(outcome, err)
}

func (c *container) endLocked(outcome Outcome, err error) {
	if outcome == LeftRunning {
		err = errors.Join(AgentStopping, err)
	}
	if err != nil {
		c.result.Err = errors.Join(c.result.Err, &stopError{name: c.result.Name, id: c.result.ID, err: err})
	}
	c.result.Outcome = outcome
}

// finish ends what is done about a container, and the terminations that have waited
// for it.
func (c *container) finish() {
	c.table.mu.Lock()
	c.closeLocked()
	c.finishLocked()
	parts := c.parts
	c.parts = nil
	ended := make([]*active, len(parts))
	for i, t := range parts {
		ended[i] = t.settleLocked()
	}
	c.table.unlock()
	for i, a := range ended {
		if a != nil {
			parts[i].logEnd(a)
		}
	}
}

// closeLocked ends the contexts of a container.
func (c *container) closeLocked() {
	c.ending = false
	c.timer.Stop()
	c.endLife(ErrTerminating)
	c.endGrace(ErrTerminating)
}

// finishLocked makes the result of a container final.
func (c *container) finishLocked() {
	c.endedAt = time.Now()
	c.result.Phase = PhaseEnded
}

// rest ends a goroutine that works for a container.
func (c *container) rest(pod *v1.Pod) {
	p := c.table
	p.mu.Lock()
	c.calls--
	p.tidyLocked()
	empty := p.current == nil && len(p.containers) == 0
	p.unlock()
	if empty {
		p.terminator.release(podKey(pod))
	}
}

// fullName names a container as [StillRunningError] does.
func (c *container) fullName() string {
	return c.pod.Namespace + "/" + c.pod.Name + "/" + c.result.Name
}

// snapshot is what became of the container so far.
func (c *container) snapshot() ContainerResult {
	c.table.mu.Lock()
	defer c.table.mu.Unlock()
	return c.result
}

// isPartOf tells whether a container is one of a termination's.
func (c *container) isPartOf(t *Termination) bool {
	return t != nil && t.active != nil && slices.Contains(t.active.containers, c)
}
