package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// container is one container in the table of its pod. The mutex of the table guards it.
type container struct {
	table       *podTable
	pod         *v1.Pod // as last passed by the caller
	result      ContainerResult
	deadline    deadline     // of its hook, wait and stop; zero: it was never to be stopped
	startedAt   time.Time    // by the status of its pod; zero: the status does not say
	endedAt     time.Time    // when it had ended or was given up
	run         *run         // that stops it; nil: it is not being stopped
	termination *Termination // that it was last included in; nil: in none
	started     bool         // by [Terminator.Start]
	hookDone    bool         // its preStop hook has run, is running, or was skipped
	announced   bool         // its Killing event was recorded
	unlisted    bool         // Start has started it, but neither the request nor the status has it
	obsolete    bool         // it is removed from the table once nothing is under way for it
	goroutines  int          // number of goroutines that are at work for it
	starting    startCall
}

// startCall is the last call of [Terminator.Start] for a container.
type startCall struct {
	cancel     context.CancelCauseFunc // of the call that is under way; nil: none is
	calledAt   time.Time               // zero: there was no call
	returnedAt time.Time               // zero: there was no call, or it has not returned
	err        error                   // set if it is not known whether the call has started a container
}

// hasEnded reports whether a container has ended, or was given up.
func (c *container) hasEnded() bool { return c.run == nil && c.result.Outcome != "" }

// isToStop reports whether a termination has to stop the container. It does so again for a
// container that is stuck.
func (c *container) isToStop() bool {
	return c.run == nil && (c.result.Outcome == "" || c.isStuck() || c.starting.cancel != nil)
}

// isStuck reports whether a container with a known ID was given up and may still run.
func (c *container) isStuck() bool { return c.result.Outcome == RuntimeStuck && c.result.ID != "" }

// mayRun reports whether a container must be stopped with its pod even if neither the request
// nor the status names it.
func (c *container) mayRun(pod *v1.Pod) bool {
	switch {
	case c.starting.cancel != nil:
		return true
	case c.run != nil:
		return !c.run.hookOnly
	case c.result.Outcome != "":
		return c.isToStop()
	default: // a goroutine, for instance of its postStart hook, shows that the container ran
		return c.isOfStart() && !hasExited(pod, &c.result, c.starting.calledAt) || c.goroutines > 0
	}
}

// isOfStart reports whether [Terminator.Start] has started the container, is starting it, or
// may have started it.
func (c *container) isOfStart() bool {
	return c.started || c.starting.cancel != nil || c.starting.err != nil
}

// mayHaveStarted reports whether a call of [Terminator.Start] has failed in such a way that
// it may have started a container, whose ID is then not known.
func (c *container) mayHaveStarted() bool { return c.starting.err != nil && c.starting.cancel == nil }

// isPartOf reports whether the container is one of a termination that is under way.
func (c *container) isPartOf(t *Termination) bool {
	return t != nil && t.active != nil && slices.Contains(t.active.containers, c)
}

// deadlineTime returns the time of the deadline, zero if there is none.
func (c *container) deadlineTime() time.Time { return c.deadline.at() }

// limitLocked gives a container that is being stopped the deadline d if that is earlier.
func (c *container) limitLocked(d deadline) {
	if d.at().Before(c.deadline.at()) {
		c.deadline = deadline{granted: d.granted, since: d.since, shortened: true}
	}
}

// startRunLocked starts the goroutine that runs the hook of a container and stops it. A
// container that is stuck keeps its deadline if that is earlier. ctx gives values, and must
// not end.
func (c *container) startRunLocked(ctx context.Context, pod *v1.Pod, until deadline, r *run) {
	if c.deadline.since.IsZero() || until.at().Before(c.deadline.at()) {
		c.deadline = until
	}
	r.container, c.pod, c.obsolete = c, pod, false
	r.spec, r.role = findContainer(pod, c.result.Name)
	c.result.Phase, c.result.Outcome, c.result.Err = "", "", nil
	if !c.announced {
		c.result.GrantedSeconds = until.granted
	}
	if r.spec == nil {
		// This is the kubelet's error, in which the reason is the message of the event. The
		// container is stopped all the same, without a hook and without regard to the order.
		c.result.Err = fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container for reason %q",
			c.result.Name, c.result.ID, podText(pod), r.message)
	}
	c.run = r
	r.ctx, r.cancel = context.WithCancelCause(ctx)
	if c.table.closed {
		r.setOutcomeLocked(LeftRunning, nil)
		r.finishLocked()
		return
	}
	c.goroutines++
	go r.execute()
}

// addErrorLocked adds an error to the result of a container that is being stopped. The
// result of any other container is final.
func (c *container) addErrorLocked(err error) {
	if err != nil && c.run != nil {
		c.result.Err = errors.Join(c.result.Err, err)
	}
}

// fullName returns the name of a container in a [StillRunningError].
func fullName(pod *v1.Pod, name string) string { return pod.Namespace + "/" + pod.Name + "/" + name }
