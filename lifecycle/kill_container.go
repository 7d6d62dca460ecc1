package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// KillContainer stops one container of a pod that keeps running, and waits until the container has
// ended. Call it when a liveness probe, startup probe or postStart hook has failed, or when the
// container's definition has changed. [graceperiod.ForContainer] gives the grace period. The Killing
// event, the preStop hook and the stop are as in [Terminator.KillPod], but the container does not wait
// for others. Concurrent calls for several containers run in parallel (k/k#138146).
//
// KillContainer stops the run that the runtime lists with c.ID and c.Began; if c or the listed run has no Began,
// c.ID alone decides. If there is no such run, the outcome is [OutcomeNotFound]. If the list fails, or ctx ends before it
// arrives, KillContainer stops c without a check, like the kubelet. If the runtime cannot list, a successful
// StopContainer proves that the container has ended.
//
// If the container is already being stopped, alone or with its pod, KillContainer waits for that stop,
// and shortens it if its own deadline is earlier. A sidecar that was waiting for other containers is
// stopped at once, and may be started again ([Termination.ShouldRestart]). If the pod's termination begins
// before the container has ended, it includes the container, with the earlier of both deadlines. The preStop
// hook runs at most once per run, unless there is no list and the call is for a container that has ended.
// When ctx ends first, the stop continues, and the error wraps ctx's cause.
//
// It is an error if the pod is nil, or if c.ID is empty or has a prefix such as "containerd://". With a
// [PodStopper] the error wraps [errors.ErrUnsupported].
func (tr *Terminator) KillContainer(ctx context.Context, pod *v1.Pod, c Container, req ContainerRequest) (ContainerResult, error) {
	result := ContainerResult{Name: c.Name, ID: c.ID, Began: c.Began}
	if err := tr.checkKill(pod, c); err != nil {
		return result, err
	}
	leave, isOpen := tr.enter("the stop", pod, c.Name)
	if !isOpen {
		result.Outcome = OutcomeLeftRunning
		return result, ErrClosed
	}
	defer leave()
	podCopy := *pod // the stop may outlast this call, and the caller may then change its pod
	pod = &podCopy
	newDeadline := deadlineIn(req.grace(pod, c.Name)) // the grace period begins now, even if the list below takes long
	options := stopOptions{ignoreOrder: true, oneAttempt: req.OneAttempt, message: req.message(pod, c.Name), hooks: req.Hooks}
	state, listErr := tr.lockAfterNewList(ctx, pod)
	options.trustSuccess = errors.Is(listErr, errors.ErrUnsupported)
	if listErr == nil { // after an error c is stopped without a check: a runtime that fails to list may still stop it
		listed, isListed := state.lists.find(c)
		if !isListed && !state.stopOf(c).isStopping() {
			return state.resultOfEnded(ctx, pod, c), nil
		}
		if isListed {
			c = listed // with its Began, which the caller need not know
			state.dropStopOfEarlierRun(c)
		}
	}
	// Begin to stop it, or join its stop in progress.
	s := state.stop(tr.callContext(ctx), pod, c, newDeadline, options)
	if t := state.termination; t.inProgress() { // the termination must wait for the container too
		t.include(s)
	}
	state.unblockStops()
	state.unlock()
	return s.wait(ctx, fullName(pod, c.Name))
}

// checkKill returns an error if the arguments of KillContainer are invalid, or if containers cannot stop one by one.
func (tr *Terminator) checkKill(pod *v1.Pod, c Container) error {
	if err := tr.check(pod); err != nil {
		return err
	}
	if err := c.check(); err != nil {
		return fmt.Errorf("failed to stop container of pod %q: %w", formatPod(pod), err)
	}
	if tr.opts.Pods != nil {
		return fmt.Errorf("failed to stop container %q: the pod's containers stop as a unit: %w", c.Name, errors.ErrUnsupported)
	}
	return nil
}

// lockAfterNewList requests a list of the pod's containers and waits for it. It returns the pod's state with the mutex locked, and
// the error of the list.
func (tr *Terminator) lockAfterNewList(ctx context.Context, pod *v1.Pod) (state *podState, listErr error) {
	state = tr.lock(pod)
	state.readers++ // keeps the state during the wait
	list := state.requestList(tr.callContext(ctx), pod)
	state.unlock()
	listErr = list.wait(ctx)
	state.mu.Lock()
	state.readers--
	return state, listErr
}

// resultOfEnded returns the result of KillContainer for a run that has ended, and unlocks the mutex. If the runtime lists another
// run with the same ID, it logs that: c may be an earlier run, or its Began is not that of the list.
func (p *podState) resultOfEnded(ctx context.Context, pod *v1.Pod, c Container) ContainerResult {
	result := ContainerResult{Name: c.Name, ID: c.ID, Began: c.Began, Phase: PhaseEnded, Outcome: OutcomeNotFound}
	if s := p.stopOf(c); s != nil && s.result.Outcome.hasEnded() { // another caller has stopped it
		result = s.result
	}
	otherRun, isReused := p.lists.find(Container{ID: c.ID})
	p.unlock()
	if isReused && result.Outcome == OutcomeNotFound {
		klog.FromContext(ctx).Info("Container was not stopped, because the runtime lists another run with its ID", "pod", klog.KObj(pod),
			"containerName", c.Name, "containerID", c.ID, "began", c.Began, "listedBegan", otherRun.Began)
	}
	return result
}

// wait waits until the stop has ended, and returns its result. The error says why the container, name, may still be running:
// ctx has ended first, or the stop was given up.
func (s *containerStop) wait(ctx context.Context, name string) (result ContainerResult, err error) {
	isStopping := false
	s.pod.waitWhile(ctx, func() (wait bool, never time.Time) {
		result, isStopping = s.result, s.inProgress
		return isStopping && ctx.Err() == nil, never
	})
	if isStopping {
		return result, stillRunningError([]string{name}, context.Cause(ctx))
	}
	return result, Result{Containers: []ContainerResult{result}}.Err()
}
