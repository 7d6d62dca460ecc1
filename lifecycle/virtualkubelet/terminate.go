package virtualkubelet

import (
	"context"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// ender ends one pod. There is one termination at a time, which all calls join.
type ender struct {
	*record

	turn        chan struct{}          // a place of one: terminating and forgetting take turns
	termination *lifecycle.Termination // the last one, which belongs to whose turn it is; nil: none has begun
}

// terminate begins or joins the termination of a pod; where that has got stuck, its
// containers are asked for again. The pod must not change any more. override is a grace
// in seconds that counts instead of the pod's own, nil for none.
func (e *ender) terminate(ctx context.Context, pod *v1.Pod, override *int64) error {
	select {
	case e.turn <- struct{}{}:
		defer func() { <-e.turn }()
	case <-ctx.Done():
		return fmt.Errorf("failed to terminate pod %s: %w", e.name, context.Cause(ctx))
	}
	running, err := e.begin()
	if err != nil {
		return err
	}
	t := e.agent.terminator.Terminate(ctx, pod, lifecycle.Request{GracePeriodSeconds: override, Containers: running})
	if t != e.termination {
		e.termination = t
		e.agent.workers.spawn(e.name, func() { e.conclude(t) })
	}
	return nil
}

// begin notes that a pod is terminating, before any of its containers can end by
// that, and gives those that run.
func (e *ender) begin() ([]lifecycle.Container, error) {
	e.mu.Lock()
	defer e.mu.Unlock()
	switch {
	case e.ending.forgotten:
		return nil, notFound(e.name.Namespace, e.name.Name)
	case e.agent.workers.isClosed():
		return nil, fmt.Errorf("failed to terminate pod %s: %w", e.name, lifecycle.AgentStopping)
	case !e.ending.begun:
		e.ending.begun = true
		close(e.deleting)
	}
	return e.containers.running(), nil
}

// end terminates a pod, unless it has ended and been forgotten meanwhile.
func (e *ender) end(ctx context.Context, override *int64) error {
	if err := e.terminate(ctx, e.view(), override); !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// endItself ends what is left of a pod that is over by itself.
func (e *ender) endItself() {
	_ = e.end(e.ctx, nil) // it fails when the agent stops: then the pod is left as it is
}

// conclude waits for the end of a termination, and for the exits of its containers.
// Those that are stuck are left as running: the next DeletePod or KillPod tries again, and
// they may exit after all.
func (e *ender) conclude(t *lifecycle.Termination) {
	<-t.Done() // after Close, too
	result := t.Result()
	if result.Outcome() == lifecycle.LeftRunning {
		return
	}
	until := time.Now().Add(e.agent.opts.ExitSlack)
	for _, c := range result.Containers {
		if c.Outcome != lifecycle.RuntimeStuck {
			e.awaitExit(c.ID, until)
		}
	}
	e.mu.Lock()
	e.ending.settle(result.Err())
	e.mu.Unlock()
	e.settle()
}

// settle makes the status of a pod final once its termination, its start and all of
// its containers have ended.
func (e *ender) settle() {
	if !e.due() {
		return
	}
	pod := e.view()
	e.mu.Lock()
	set := e.ending.setStatus
	e.mu.Unlock()
	if set != nil {
		set(&pod.Status)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	e.ending.final = &pod.Status
	close(e.ended)
	e.teller.wake()
}

// due tells, once, that the status is to be made final.
func (e *ender) due() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.ending.due(e.containers.mayRun()) {
		return false
	}
	e.containers.giveUp()
	return true
}

// forget lets go of a pod, unless somebody waits for its end.
func (e *ender) forget() (done bool) {
	e.turn <- struct{}{}
	defer func() { <-e.turn }()
	e.mu.Lock()
	done = e.ending.forget()
	e.mu.Unlock()
	if done {
		e.agent.pods.remove(e.record)
		e.agent.terminator.Forget(e.key)
	}
	return done
}
