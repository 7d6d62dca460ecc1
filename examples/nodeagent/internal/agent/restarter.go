package agent

import (
	"context"
	"errors"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/util/flowcontrol"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// These are the kubelet's pauses before a container is restarted. The first restart has
// none; then they are 10 s, doubling up to 5 minutes. After 10 minutes without an exit
// they begin again with none (pkg/kubelet, backOffPeriod and MaxContainerBackOff).
const (
	initialBackOff = 10 * time.Second
	maxBackOff     = 5 * time.Minute
)

// restarter restarts containers that have exited. Each container of a started pod has a
// goroutine of it.
type restarter struct {
	runtime    podruntime.Runtime
	terminator *lifecycle.Terminator
	backOff    *flowcontrol.Backoff
	goroutines sync.WaitGroup
}

func newRestarter(runtime podruntime.Runtime, terminator *lifecycle.Terminator) *restarter {
	return &restarter{runtime: runtime, terminator: terminator, backOff: flowcontrol.NewBackOff(initialBackOff, maxBackOff)}
}

// watch restarts the exited containers of a pod until the pod is told to stop or ctx
// ends. It does not wait for that.
func (r *restarter) watch(ctx context.Context, p *pod) {
	life := r.terminator.Pod(p.spec)
	for i, c := range p.startedContainers() {
		r.goroutines.Go(func() {
			if r.watchContainer(ctx, p, life, i, c) {
				p.containerFinished()
			}
		})
	}
}

// wait waits until all containers are no longer watched.
func (r *restarter) wait() { r.goroutines.Wait() }

// forget makes the first restart of the containers of a pod one without a pause.
func (r *restarter) forget(p *pod) {
	for _, c := range p.startedContainers() {
		r.backOff.Reset(backOffKey(p, c))
	}
}

func backOffKey(p *pod, c lifecycle.Container) string { return string(p.spec.UID) + "/" + c.Name }

// watchContainer restarts the i-th container of a pod whenever it exits. It returns true
// when the container has exited and is not to be restarted.
func (r *restarter) watchContainer(ctx context.Context, p *pod, life *lifecycle.Pod, i int, c lifecycle.Container) (finished bool) {
	key := backOffKey(p, c)
	for {
		if !waitUnlessStopped(ctx, p, r.runtime.Exited(c.ID)) {
			return false
		}
		code, exitedAt := r.exitOf(ctx, c)
		if !shouldRestart(p.spec, c.Name, code) {
			return true
		}
		if r.backOff.IsInBackOffSince(key, exitedAt) {
			pause := time.Until(exitedAt.Add(r.backOff.Get(key)))
			p.containerWaits(i)
			klog.FromContext(ctx).Info("Container has exited, starting it again after a pause", "pod", klog.KObj(p.spec), "container", c.Name, "exitCode", code, "pause", pause)
			if !waitUnlessStopped(ctx, p, time.After(pause)) {
				return false
			}
		}
		r.backOff.Next(key, exitedAt)
		next, err := r.restart(ctx, p, life, c)
		switch {
		case errors.Is(err, lifecycle.ErrTerminating), errors.Is(err, lifecycle.ErrForgotten), ctx.Err() != nil:
			return false
		case err != nil:
			klog.FromContext(ctx).Error(err, "Failed to start a container again", "pod", klog.KObj(p.spec), "container", c.Name)
			continue // the container has still exited, and the next pause is longer
		}
		c = next
		p.containerRestarted(i, c, r.runtime.Exited(c.ID))
	}
}

// restart restarts a container, unless its pod is being terminated.
func (r *restarter) restart(ctx context.Context, p *pod, life *lifecycle.Pod, c lifecycle.Container) (lifecycle.Container, error) {
	err := life.Start(ctx, c.Name, func(ctx context.Context) (string, error) {
		id, err := r.runtime.RestartContainer(ctx, p.spec, c)
		if c.ID = id; err != nil && ctx.Err() == nil {
			err = errors.Join(lifecycle.ErrContainerNotFound, err)
		}
		return id, err
	})
	return c, err
}

// exitOf returns the exit code of a container and when it exited. If the runtime does not
// know them, the container counts as one that has failed now.
func (r *restarter) exitOf(ctx context.Context, c lifecycle.Container) (code int32, exitedAt time.Time) {
	reader, ok := r.runtime.(podruntime.StatusReader)
	if !ok {
		return 1, time.Now()
	}
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	status, err := reader.ContainerStatus(ctx, c.ID)
	if err != nil || status.State.Terminated == nil {
		return 1, time.Now()
	}
	return status.State.Terminated.ExitCode, status.State.Terminated.FinishedAt.Time
}

// shouldRestart reports whether an exited container is restarted (the kubelet's
// ShouldContainerBeRestarted). A sidecar always is, whatever the restart policy of its
// pod.
func shouldRestart(spec *v1.Pod, name string, code int32) bool {
	for _, c := range spec.Spec.InitContainers {
		if c.Name == name {
			return c.RestartPolicy != nil
		}
	}
	switch spec.Spec.RestartPolicy {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return code != 0
	case v1.RestartPolicyAlways:
	}
	return true // an empty policy is Always, as in the API server
}

// waitUnlessStopped waits for a channel. It returns false if the pod is told to stop or
// ctx ends first.
func waitUnlessStopped[T any](ctx context.Context, p *pod, c <-chan T) bool {
	if isClosed(p.stopRequested) {
		return false
	}
	select {
	case <-c:
		return true
	case <-p.stopRequested:
	case <-ctx.Done():
	}
	return false
}
