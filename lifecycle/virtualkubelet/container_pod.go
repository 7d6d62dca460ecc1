package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// errInitFailed ends a pod's start: the containers after the failed init container are never started.
var errInitFailed = errors.New("an init container has failed")

// containerPod is a pod of a [Runtime]: the provider starts, restarts and stops its containers.
type containerPod struct {
	*managedPod
	containers

	listNow chan struct{} // of size 1: has an element if a container has exited and the containers must be listed
}

// newContainerPod returns a pod of which no container was started. It is not in the podTable yet.
func (p *Provider) newContainerPod(ctx context.Context, pod *v1.Pod) *containerPod {
	m := newManagedPod(ctx, p, pod)
	added := &containerPod{managedPod: m, containers: newContainers(&m.desired.pod.Spec), listNow: make(chan struct{}, 1)}
	m.workload = added
	return added
}

// setSpec does nothing: the containers of a pod do not change.
func (*containerPod) setSpec(*v1.PodSpec) {}

// remove returns true: a Runtime has no pods to remove.
func (*containerPod) remove() (removed bool) { return true }

// start starts the containers in the order of the spec. A plain init container must succeed before the next
// container starts. The error ends the pod: a container will not start, or the termination has begun.
func (p *containerPod) start() error {
	for _, c := range p.all {
		if err := p.startNext(c); err != nil {
			return err
		}
	}
	return nil
}

// startNext starts a container, unless it was started before, and returns when the next container may start. A start that failed
// is repeated: the containers after an init container wait for that, those after a regular one do not.
func (p *containerPod) startNext(c *container) error {
	var err error
	if !p.isStarted(c) {
		err = p.startContainer(c)
	}
	if errors.Is(err, errWillRestart) {
		if !c.isInit {
			p.provider.spawn(p.name, func() {
				_ = p.restart(c) // an error shows in the container's state
				p.endIfDone()
			})
			return nil
		}
		err = p.restart(c)
	}
	if err == nil && c.isPlainInit() {
		err = p.awaitInit(c)
	}
	return err
}

// isStarted reports whether this agent or a previous one has tried to start the container.
func (p *containerPod) isStarted(c *container) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return c.wasStarted()
}

// awaitInit waits until a plain init container has ended for good. The error is errInitFailed unless its exit code
// is 0.
func (p *containerPod) awaitInit(c *container) error {
	select {
	case <-c.exited:
	case <-p.ctx.Done():
		return context.Cause(p.ctx)
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if code := c.state.Terminated.ExitCode; code != 0 {
		return fmt.Errorf("%w: %s with exit code %d", errInitFailed, c.spec.Name, code)
	}
	return nil
}

// watch begins to list the containers of the pod (watchContainers).
func (p *containerPod) watch() { p.provider.spawn(p.name, p.watchContainers) }

// watchContainers lists the pod's containers in each PollInterval, when a container exits, and soon after a failed list,
// until the pod is forgotten or the provider is closed. From these lists the pod learns which containers have ended.
// While no container runs, watchContainers lists nothing.
func (p *containerPod) watchContainers() {
	pause := p.provider.opts.PollInterval
	for {
		select {
		case <-p.listNow:
		case <-time.After(pause):
		case <-p.ctx.Done():
			return
		}
		if len(p.currentRuns()) == 0 {
			continue
		}
		_, err := p.list()
		pause = p.provider.opts.PollInterval
		if err != nil {
			pause = min(maxRetryPause, pause)
		}
	}
}

// list calls the runtime's Running through containerRuntime, which records the ends that the list shows.
func (p *containerPod) list() (listed []lifecycle.Container, err error) {
	pod := p.podWithStatus()
	err = p.callWithin(p.ctx, "Running", callTimeout, func(ctx context.Context) (err error) {
		listed, err = containerRuntime{p.provider}.Running(ctx, pod)
		return err
	})
	return listed, err
}

// watchExit makes watchContainers list at once when this container exits, instead of after PollInterval. It does
// nothing if the runtime is no [lifecycle.ExitWatcher].
func (p *containerPod) watchExit(id string) {
	watcher, isWatcher := p.provider.opts.Runtime.(lifecycle.ExitWatcher)
	if !isWatcher {
		return
	}
	var exited <-chan struct{}
	_ = p.callSafely(p.ctx, "Exited", func() { exited = watcher.Exited(id) }) // a panic was logged
	if exited == nil {
		return
	}
	p.provider.spawn(p.name, func() {
		select {
		case <-exited:
		case <-p.ctx.Done():
			return
		}
		select {
		case p.listNow <- struct{}{}:
		default: // the list for an earlier exit is still to come, and shows this exit too
		}
	})
}
