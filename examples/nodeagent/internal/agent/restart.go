package agent

import (
	"context"
	"errors"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/podruntime"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// These are the kubelet's pauses before a container is restarted. The first restart has
// none; then they are 10 s, doubling up to 5 minutes. After 10 minutes without an exit
// they start anew (pkg/kubelet, backOffPeriod and MaxContainerBackOff).
const (
	firstBackOff = 10 * time.Second
	mostBackOff  = 5 * time.Minute
)

// keepContainers restarts the exited containers of a pod, each in its own goroutine,
// until the pod is told to stop or ctx ends.
func (a *Agent) keepContainers(ctx context.Context, p *pod) {
	for i, c := range p.running() {
		a.keepers.Go(func() {
			if !a.keepContainer(ctx, p, i, c) {
				p.conclude()
			}
		})
	}
}

// keepContainer restarts the i-th container of a pod. It returns false when the container
// has exited and is not to be restarted.
func (a *Agent) keepContainer(ctx context.Context, p *pod, i int, c lifecycle.Container) bool {
	key := string(p.spec.UID) + "/" + c.Name
	for {
		if !await(ctx, p, a.opts.Runtime.Exited(c.ID)) {
			return true
		}
		code, finished := a.exitOf(ctx, c)
		if !restarts(p.spec, c.Name, code) {
			return false
		}
		if a.backOff.IsInBackOffSince(key, finished) {
			pause := time.Until(finished.Add(a.backOff.Get(key)))
			p.setWaiting(i, true)
			klog.FromContext(ctx).Info("Container has exited, starting it again after a pause", "pod", klog.KObj(p.spec), "container", c.Name, "exitCode", code, "pause", pause)
			if !await(ctx, p, time.After(pause)) {
				return true
			}
		}
		a.backOff.Next(key, finished)
		next, err := a.restart(ctx, p, c)
		switch {
		case errors.Is(err, lifecycle.ErrTerminating) || ctx.Err() != nil:
			return true
		case err != nil:
			klog.FromContext(ctx).Error(err, "Failed to start a container again", "pod", klog.KObj(p.spec), "container", c.Name)
			continue // it has exited, and the pause is longer now
		}
		c = next
		p.restarted(i, c, a.opts.Runtime.Exited(c.ID))
	}
}

// restart restarts a container, unless its pod is being terminated.
func (a *Agent) restart(ctx context.Context, p *pod, c lifecycle.Container) (lifecycle.Container, error) {
	err := a.terminator.Start(ctx, p.spec, c.Name, func(ctx context.Context) (string, error) {
		id, err := a.opts.Runtime.RestartContainer(ctx, p.spec, c)
		c.ID = id
		return id, err
	})
	return c, err
}

// exitOf returns the exit code of a container and when it exited. If that is unknown, it
// counts as failed now.
func (a *Agent) exitOf(ctx context.Context, c lifecycle.Container) (code int32, finished time.Time) {
	reader, ok := a.opts.Runtime.(podruntime.StatusReader)
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

// restarts reports whether an exited container is restarted (the kubelet's
// ShouldContainerBeRestarted). A sidecar always is, whatever the restart policy of its
// pod.
func restarts(spec *v1.Pod, name string, code int32) bool {
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
	return true // the API server's default
}

// await waits for a channel of a pod. It returns false if the pod is told to stop or ctx
// ends first.
func await[T any](ctx context.Context, p *pod, what <-chan T) bool {
	select {
	case <-p.leaving:
		return false
	default:
	}
	select {
	case <-what:
		return true
	case <-p.leaving:
	case <-ctx.Done():
	}
	return false
}

// conclude records that one of the containers has exited for good.
func (p *pod) conclude() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.concluded++
	p.tellLocked()
}

// setWaiting records whether the i-th container waits to be restarted.
func (p *pod) setWaiting(i int, waiting bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.restarts[i].waiting = waiting
	p.tellLocked()
}

// restarted records that the i-th container was restarted.
func (p *pod) restarted(i int, c lifecycle.Container, exited <-chan struct{}) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.containers[i], p.exits[i] = c, exited
	p.restarts[i] = restartState{count: p.restarts[i].count + 1}
	p.tellLocked()
}

// tellLocked closes the channel of nextNews and replaces it.
func (p *pod) tellLocked() {
	close(p.news)
	p.news = make(chan struct{})
}

// restartState is how often a container was restarted, and whether it waits for a
// restart.
type restartState struct {
	count   int
	waiting bool
}

// waitingLocked reports whether a container of the pod waits to be restarted.
func (p *pod) waitingLocked() bool {
	for _, r := range p.restarts {
		if r.waiting {
			return true
		}
	}
	return false
}

// restartsOf returns the restartState of a container.
func (p *pod) restartsOf(name string) restartState {
	p.mu.Lock()
	defer p.mu.Unlock()
	for i, c := range p.containers {
		if c.Name == name {
			return p.restarts[i]
		}
	}
	return restartState{}
}
