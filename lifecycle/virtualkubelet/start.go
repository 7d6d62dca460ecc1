package virtualkubelet

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// errInitFailed ends a pod's start: the containers after the failed init container are never started.
var errInitFailed = errors.New("an init container has failed")

// startPod admits the pod and starts its containers, once the earlier pods with its name have ended. wasBegun says that a
// previous agent has admitted the pod and begun to start it. If the start fails for good, or all regular containers have
// ended already, startPod terminates what still runs, such as sidecars, unless a termination has begun.
func (r *record) startPod(earlier []*record, wasBegun bool) {
	if r.agent.poller.awaitFirstList(r.ctx) != nil {
		return
	}
	var err error
	if !wasBegun && !r.isKnownToRuntime() {
		err = r.admit()
	}
	if err == nil {
		err = r.startAll(earlier)
	}
	r.mu.Lock()
	r.ending.startInProgress = false
	hasFailedOrCompleted := err != nil || !r.workload.hasWork()
	mustTerminate := !r.ending.terminating && hasFailedOrCompleted
	r.mu.Unlock()
	if err != nil {
		klog.FromContext(r.ctx).V(1).Info("Stopped starting a pod", "pod", r.name, "err", err)
	}
	r.finalizeIfEnded()
	if mustTerminate && !r.agent.isClosed() {
		r.terminateRemaining()
	}
}

// isKnownToRuntime reports whether the PodRuntime has the pod: a previous agent has then admitted it.
func (r *record) isKnownToRuntime() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.whole != nil && r.whole.isKnown()
}

// startAll starts the containers in the order of the spec. A plain init container must succeed before the next
// container starts. The error ends the pod: a container will not start, or the termination has begun.
func (r *record) startAll(earlier []*record) error {
	if err := r.awaitNames(earlier); err != nil {
		return err
	}
	if r.whole != nil {
		return r.whole.create()
	}
	for _, c := range r.containers.all {
		var err error
		if !r.isStarted(c) {
			err = r.start(c)
		}
		switch {
		case errors.Is(err, errWillRestart) && !c.isInit: // restart it in the background, because the others need not wait
			r.agent.spawn(r.name, func() {
				_ = r.restart(c) // an error shows in the container's state
				r.endIfDone()
			})
			continue
		case errors.Is(err, errWillRestart): // an init container: those after it wait for its restart
			err = r.restart(c)
		}
		if err != nil {
			return err
		}
		if !c.isPlainInit() { // the next container need not wait for this one
			continue
		}
		if err := r.awaitInit(c); err != nil {
			return err
		}
	}
	return nil
}

// isStarted reports whether this agent or a previous one has tried to start the container.
func (r *record) isStarted(c *container) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return c.state != v1.ContainerState{}
}

// awaitNames waits until the earlier pods with the same name have ended and, with a PodRuntime, have
// been deleted.
func (r *record) awaitNames(earlier []*record) error {
	for _, other := range earlier {
		select {
		case <-other.nameFree:
		case <-r.active.Done():
			return context.Cause(r.active)
		}
	}
	return nil
}

// awaitInit waits until a plain init container has ended for good. The error is errInitFailed unless its exit code
// is 0.
func (r *record) awaitInit(c *container) error {
	select {
	case <-c.exited:
	case <-r.ctx.Done():
		return context.Cause(r.ctx)
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if code := c.state.Terminated.ExitCode; code != 0 {
		return fmt.Errorf("%w: %s with exit code %d", errInitFailed, c.spec.Name, code)
	}
	return nil
}
