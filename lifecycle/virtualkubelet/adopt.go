package virtualkubelet

import (
	"context"
	"errors"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var errAdopts = errors.New("a PodRuntime tells by itself which pods it has")

// Adopted is a pod that an earlier process of the agent has left running.
type Adopted struct {
	// Pod is the pod, as the API server or the agent's own records have it. It must not
	// be nil.
	Pod *v1.Pod
	// Containers are the containers that run now, with whether their preStop hooks are
	// known to have run. Nil means [lifecycle.ContainersOf] the pod. The pod's other
	// containers count as terminated: as their status says, or with an unknown exit code.
	// Unless the pod was deleted, the restart policy has them started again.
	Containers []lifecycle.Container
	// Alive is true if this process has asked the API server and nobody has deleted the
	// pod. A later deletion is then new and has its full grace period. If it is false, a
	// deletion may be older than this process and has what its deletionTimestamp leaves,
	// until CreatePod or UpdatePod has shown that the pod is not deleted.
	Alive bool
}

// Adopt takes over a running pod. Call it before virtual-kubelet's PodController starts.
// A pod that the provider knows already is not changed.
//
// A deleted pod is terminated when DeletePod is called, which the controller does when it
// starts. If the pod has completed meanwhile, virtual-kubelet is notified. After
// [Provider.Close] the error is an errdefs.ErrInvalidInput that wraps
// [lifecycle.AgentStopping]. With a [PodRuntime], which tells by itself which pods it has, it is
// one too.
func (p *Provider) Adopt(ctx context.Context, adopted Adopted) error {
	if p.agent.workers.isClosed() {
		return newRefusedError(adopted.Pod, lifecycle.AgentStopping)
	}
	if p.agent.opts.Pods != nil {
		return newRefusedError(adopted.Pod, errAdopts)
	}
	if adopted.Containers == nil {
		adopted.Containers = lifecycle.ContainersOf(adopted.Pod)
	}
	r := newRecord(ctx, p.agent, adopted.Pod)
	r.desired.adopted = !adopted.Alive
	r.containers.adopt(adopted)
	if known, _ := p.agent.pods.add(r); known != nil {
		return nil
	}
	r.notifier.wake()
	p.agent.workers.spawn(r.name, r.notifier.run)
	p.agent.poller.start(ctx)
	for _, c := range r.containers.all {
		r.mu.Lock()
		id, runs, restarting := c.id, c.running(), c.restarting
		r.mu.Unlock()
		switch {
		case restarting:
			p.agent.workers.spawn(r.name, func() {
				_ = (&starter{agent: p.agent, r: r}).again(c) // shows in the state of the container
				r.over()
			})
		case runs:
			p.agent.exits.expect(id)
			p.agent.workers.spawn(r.name, func() { slot{r, c}.watch(id) })
		}
	}
	if r.completed() {
		r.ender.endCompleted()
	}
	return nil
}

// adopt sets the state of each container. One that does not run is started again if the restart
// policy says so, the pod was not deleted, and its init containers are known to have succeeded.
func (cs *containers) adopt(adopted Adopted) {
	mayRestart := adopted.Pod.DeletionTimestamp == nil
	statuses := slices.Concat(adopted.Pod.Status.InitContainerStatuses, adopted.Pod.Status.ContainerStatuses)
	for _, c := range cs.all {
		var last v1.ContainerState
		if i := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == c.spec.Name }); i >= 0 {
			last, c.restarted = statuses[i].State, statuses[i].RestartCount
			if last.Terminated == nil && last.Running == nil {
				last = statuses[i].LastTerminationState
			}
		}
		i := slices.IndexFunc(adopted.Containers, func(running lifecycle.Container) bool { return running.Name == c.spec.Name })
		if i < 0 {
			c.adopt(nil, mayRestart, adopted.Pod, last)
			mayRestart = mayRestart && (!c.init || c.restarting || c.state.Terminated.ExitCode == 0)
		} else {
			c.preStopDone = adopted.Containers[i].PreStopDone
			c.adopt(&adopted.Containers[i].ID, false, adopted.Pod, last)
			mayRestart = mayRestart && (!c.init || c.sidecar())
		}
	}
	cs.refreshReady()
}
