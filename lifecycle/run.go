package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"
)

// run is the way of one container to its end, as in the kubelet's killContainer: one
// goroutine, whose code is read from top to bottom.
type run struct {
	*container

	ctx      context.Context // of what is called for the container; ended by Close, and at the end
	cancel   context.CancelCauseFunc
	spec     *v1.Container // nil: the pod's spec has none of this name
	role     role
	message  string // of the Killing event, "" for the kubelet's
	inOrder  bool   // it stops in the order of its pod
	hookOnly bool   // it has exited: only its hook is run
	hook     preStop
	events   []func() error // that record an event, and have not yet
}

// walk ends a container.
func (r *run) walk() {
	r.table.mu.Lock()
	if r.hookOnly {
		r.preStopLocked()
		r.awaitHookLocked()
		r.awaitEventsLocked()
	}
	if r.hookOnly {
		r.closeLocked()
		r.started, r.result.Phase, r.deadline = false, "", deadline{}
	} else { // also where it was found running meanwhile, and its stop was asked for
		r.endLocked(r.stopInTurnLocked())
		r.awaitHookLocked()
		r.awaitEventsLocked()
		r.finishLocked()
		r.settleLocked()
	}
	r.rest()
}

// stopInTurnLocked stops a container and gives its outcome.
func (r *run) stopInTurnLocked() (Outcome, error) {
	if outcome, err := r.awaitStartLocked(); outcome != "" {
		return outcome, err
	}
	if r.unseen && isClosed(r.askExitLocked(r.ctx)) {
		return NotFound, nil
	}
	r.announceLocked()
	atTurn := r.table.terminator.opts.HookTiming == HooksAtTurn
	if !atTurn {
		r.preStopLocked()
	}
	r.awaitTurnLocked()
	if atTurn {
		r.preStopLocked()
	}
	if outcome, err := r.awaitStartLocked(); outcome != "" { // of a sidecar that is being started again
		return outcome, err
	}
	return r.stopLocked()
}

// awaitStartLocked waits for the start of a container that is to be stopped, until its
// grace is over. It gives an outcome if there is nothing to stop.
func (r *run) awaitStartLocked() (Outcome, error) {
	if r.cancelStart != nil {
		r.cancelStart(ErrTerminating)
		r.table.waitLocked(func() bool { return r.cancelStart == nil || r.table.closed }, r.endOfGrace, nil)
	}
	switch {
	case r.table.closed:
		return LeftRunning, nil
	case r.cancelStart != nil:
		return RuntimeStuck, errNeverStarted
	case r.startErr != nil:
		return RuntimeStuck, r.startErr
	case r.result.ID == "":
		return NotFound, nil
	default:
		return "", nil
	}
}

// mustWaitLocked tells whether another container must have ended before this one is
// stopped. Containers that do not run are not being stopped, and so are waited for by
// none (k/k#125880).
func (r *run) mustWaitLocked() bool {
	return r.inOrder && !r.deadline.isOver() && slices.ContainsFunc(r.table.containers, func(other *container) bool {
		return other.run != nil && !other.run.hookOnly && other.result.Outcome == "" && r.role.mustWaitFor(other.run.role)
	})
}

// awaitTurnLocked waits until a container may be stopped, or its grace is over.
func (r *run) awaitTurnLocked() {
	if !r.mustWaitLocked() {
		return
	}
	began := time.Now()
	r.result.Phase = PhaseWaiting
	r.table.waitLocked(func() bool { return r.table.closed || !r.mustWaitLocked() }, r.endOfGrace, nil)
	r.result.Waited = time.Since(began)
}

// endLocked gives a container its outcome, and lets those go who wait for their turn.
func (r *run) endLocked(outcome Outcome, err error) {
	if outcome == LeftRunning {
		err = errors.Join(AgentStopping, err)
	}
	if err != nil {
		r.result.Err = errors.Join(r.result.Err, &stopError{name: r.result.Name, id: r.result.ID, err: err})
	}
	r.result.Outcome = outcome
	r.table.wakeLocked()
}

// finishLocked makes the result of a container final.
func (r *run) finishLocked() {
	r.closeLocked()
	r.endedAt = time.Now()
	r.result.Phase = PhaseEnded
}

// settleLocked ends the terminations that have waited for a container.
func (c *container) settleLocked() {
	for t := c.part; t != nil && t.active != nil; {
		a := t.active
		if outcome := t.settleLocked(); outcome != "" {
			c.table.asideLocked(func() {
				logV1(a.ctx, func(l klog.Logger) {
					l.Info("Pod terminated", "pod", klog.KObj(a.pod), "outcome", outcome, "took", time.Since(a.began))
				})
			})
		}
		t = a.older
	}
}

// closeLocked ends what is still being done for a container.
func (r *run) closeLocked() {
	r.run = nil
	r.cancel(ErrTerminating)
}

// announceLocked records, once, the event that a container is about to be stopped. Container
// IDs have no place in events, and become the name, as in the kubelet.
func (r *run) announceLocked() {
	told := r.told
	r.told = true
	if told || r.table.terminator.opts.Events == nil {
		return
	}
	message := cmp.Or(r.message, "Stopping container "+r.result.Name)
	r.recordLocked(r.reference(), v1.EventTypeNormal, "Killing", strings.ReplaceAll(message, r.result.ID, r.result.Name))
}

// recordLocked has an event recorded, after those before it. The container goes on its way
// meanwhile: a recorder that is slow, or hangs, costs it no grace.
func (r *run) recordLocked(object runtime.Object, eventtype, reason, message string) {
	recorder := r.table.terminator.opts.Events
	if recorder == nil {
		return
	}
	r.events = append(r.events, func() error {
		recorder.Event(object, eventtype, reason, message)
		return nil
	})
	if len(r.events) == 1 {
		r.recordNextLocked()
	}
}

func (r *run) recordNextLocked() {
	r.spawnLocked(r.ctx, "event recorder", r.events[0], func(err error) {
		r.noteLocked(err)
		if r.events = r.events[1:]; len(r.events) > 0 {
			r.recordNextLocked()
		}
	})
}

// awaitEventsLocked gives the recorder of a container that has ended a moment, so that its
// events are there, as a rule, when its termination has ended.
func (r *run) awaitEventsLocked() {
	until := time.Now().Add(abandonAfter)
	r.table.waitLocked(func() bool { return len(r.events) == 0 || r.table.closed }, func() time.Time { return until }, nil)
}

// logLocked logs about a container, without its table: a logger may block.
func (r *run) logLocked(log func(klog.Logger)) {
	id := r.result.ID
	r.table.asideLocked(func() {
		log(klog.FromContext(r.ctx).WithValues("pod", klog.KObj(r.pod), "containerName", r.result.Name, "containerID", id))
	})
}

// warnLocked has a warning recorded for a caller, who waits for that, though not longer than
// a moment: a recorder that hangs must not hold it up.
func (c *container) warnLocked(ctx context.Context, object runtime.Object, reason, message string) {
	recorder := c.table.terminator.opts.Events
	if recorder == nil {
		return
	}
	recorded := c.spawnLocked(ctx, "event recorder", func() error {
		recorder.Event(object, v1.EventTypeWarning, reason, message)
		return nil
	}, func(error) {})
	until := time.Now().Add(abandonAfter)
	c.table.waitLocked(func() bool { return *recorded || c.table.closed }, func() time.Time { return until }, nil)
}

// reference refers to the container.
func (r *run) reference() *v1.ObjectReference {
	return containerReference(r.pod, r.role, r.result.Name)
}

// containerReference refers to a container within its pod, which an event on it is
// recorded on (the kubelet's GenerateContainerRef).
func containerReference(pod *v1.Pod, r role, name string) *v1.ObjectReference {
	return &v1.ObjectReference{
		APIVersion: "v1", Kind: "Pod",
		Namespace: pod.Namespace, Name: pod.Name, UID: pod.UID, ResourceVersion: pod.ResourceVersion,
		FieldPath: r.list() + "{" + name + "}",
	}
}
