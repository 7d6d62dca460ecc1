package virtualkubelet

import (
	"context"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// ender terminates one pod. The pod has one termination at a time, which all calls join.
type ender struct {
	*record

	left        chan struct{}          // closed when the name of the pod can be used again
	turn        chan struct{}          // of size 1: held by terminate and forget
	termination *lifecycle.Termination // the last one, guarded by turn; nil: none
}

// terminate begins or joins the termination of a pod. If a termination has ended with
// containers that could not be stopped, they are stopped again. The pod must not change
// afterwards. override is the grace period in seconds that replaces the pod's own; nil
// means none.
func (e *ender) terminate(ctx context.Context, pod *v1.Pod, override *int64) (*lifecycle.Termination, error) {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return nil, fmt.Errorf("failed to terminate pod %s: %w", e.name, context.Cause(ctx))
	}
	running, complete, err := e.setTerminating()
	if err != nil {
		return nil, err
	}
	t := e.lifeOf(pod).Terminate(ctx, lifecycle.Request{GracePeriodSeconds: override, Containers: running, Complete: complete})
	if t != e.termination {
		e.termination = t
		e.agent.workers.spawn(e.name, func() { e.conclude(t) })
	}
	return t, nil
}

// setTerminating marks the pod as terminating, before the termination can end any
// container, and returns the running containers, and whether those are all.
func (e *ender) setTerminating() (running []lifecycle.Container, complete bool, err error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ending.forgotten:
		return nil, false, newNotFoundError(e.name.Namespace, e.name.Name)
	case e.agent.workers.isClosed():
		return nil, false, fmt.Errorf("failed to terminate pod %s: %w", e.name, lifecycle.AgentStopping)
	case !e.ending.terminating:
		e.ending.terminating = true
		close(e.terminating)
	}
	return e.body.members(), !e.containers.maybeStarted(), nil
}

// end terminates the pod. It is no error if the pod has been forgotten.
func (e *ender) end(ctx context.Context, override *int64) error {
	if _, err := e.terminate(ctx, e.view(), override); !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// endCompleted terminates the remaining containers of a pod that has completed.
func (e *ender) endCompleted() {
	_ = e.end(e.ctx, nil) // fails only when the agent stops, which leaves pods as they are
}

// conclude waits for the end of a termination and for the exits of its containers.
// Containers that could not be stopped stay running: the next DeletePod or KillPod stops
// them again, and they may still exit.
func (e *ender) conclude(t *lifecycle.Termination) {
	<-t.Done() // Close ends it too
	result := t.Result()
	until := time.Now().Add(e.agent.opts.ExitSlack)
	for _, c := range result.Containers {
		if c.Outcome != lifecycle.RuntimeStuck {
			e.awaitExit(c.ID, until)
		}
	}
	e.mu.Lock()
	e.ending.terminationEnded(result.Err())
	e.mu.Unlock()
	e.finalize()
}

// awaitExit waits for watch to see the exit of a stopped container, because the runtime may
// report the exit later than the end of the stop. After until the container counts as ended
// with an unknown exit code.
func (e *ender) awaitExit(id string, until time.Time) {
	e.mu.Lock()
	c := e.containers.withID(id)
	if c == nil {
		e.mu.Unlock()
		return
	}
	seen, lost := c.seen, c.lost
	e.mu.Unlock()
	slack := time.NewTimer(time.Until(until))
	defer slack.Stop()
	select {
	case <-seen:
	case <-e.agent.workers.closing:
	case <-slack.C:
		e.mu.Lock()
		defer e.mu.Unlock()
		closeOnce(lost)
	}
}

// finalize makes the final status once the termination, the start and all containers have
// ended.
func (e *ender) finalize() {
	if !e.startFinalizing() {
		return
	}
	pod := e.view()
	e.mu.Lock()
	set, refusal := e.ending.setStatus, e.ending.refusal
	e.mu.Unlock()
	switch {
	case refusal != nil:
		refuse(&pod.Status, *refusal)
	case set != nil:
		set(&pod.Status)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ending.final = &pod.Status
	close(e.ended)
	if e.remote() == nil || e.remote().place.cleared() {
		e.leave()
	}
	e.notifier.wake()
}

// startFinalizing returns true once, when the final status is to be made.
func (e *ender) startFinalizing() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ending.startFinalizing(e.body.mayRun()) {
		return false
	}
	e.containers.terminateUnknown()
	return true
}

// leave marks that the name of the pod can be used again. The caller holds the mutex.
func (e *ender) leave() {
	if !isClosed(e.left) {
		close(e.left)
	}
}

// forget removes the pod, unless a KillPod waits for its end, and reports whether it did.
func (e *ender) forget() (done bool) {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	e.mu.Lock()
	done = e.ending.forget()
	e.mu.Unlock()
	if done {
		e.agent.pods.remove(e.record)
		e.life.Forget()
	}
	return done
}
