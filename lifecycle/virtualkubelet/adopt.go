package virtualkubelet

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// Adopted is a pod that an earlier life of the agent has left running.
type Adopted struct {
	// Pod is the pod, as the API server or the agent's own notes have it. It must not
	// be nil.
	Pod *v1.Pod
	// Containers are those that run now, and whether their preStop hook is known to
	// have run; nil means [lifecycle.ContainersOf] the pod. The others of the pod have
	// the end that its status has for them, or an unknown one.
	Containers []lifecycle.Container
	// Alive says that the API server was asked in this life of the agent, and that
	// nobody has deleted the pod: a deletion that comes is a new one and has all of
	// its grace, whatever the clocks say. False: a deletion has what its
	// deletionTimestamp leaves, until CreatePod or UpdatePod has shown the pod alive.
	Alive bool
}

// Adopt takes over a pod that runs, before virtual-kubelet's PodController begins.
// One that is known is left as it is. If it is being deleted, nothing happens before
// DeletePod is called, which the controller does when it begins; if it has ended
// meanwhile, virtual-kubelet is told. After [Provider.Close] the error is of the kind
// errdefs.ErrInvalidInput and wraps [lifecycle.AgentStopping].
func (p *Provider) Adopt(ctx context.Context, adopted Adopted) error {
	if p.agent.workers.isClosed() {
		return refused(adopted.Pod, lifecycle.AgentStopping)
	}
	if adopted.Containers == nil {
		adopted.Containers = lifecycle.ContainersOf(adopted.Pod)
	}
	r := newRecord(ctx, p.agent, adopted.Pod)
	r.orders.adopted = !adopted.Alive
	r.containers.adopt(adopted)
	if known, _ := p.agent.pods.enter(r); known != nil {
		return nil
	}
	r.teller.wake()
	p.agent.workers.spawn(r.name, r.teller.run)
	for _, c := range r.containers.all {
		if id := c.id; id != "" {
			p.agent.workers.spawn(r.name, func() { r.watch(c, id) })
		}
	}
	if r.overByItself() {
		r.ender.endItself()
	}
	return nil
}

// adopt fills in what runs and what has ended.
func (cs *containers) adopt(adopted Adopted) {
	statuses := slices.Concat(adopted.Pod.Status.InitContainerStatuses, adopted.Pod.Status.ContainerStatuses)
	for _, c := range cs.all {
		var last v1.ContainerState
		if i := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == c.spec.Name }); i >= 0 {
			last = statuses[i].State
		}
		i := slices.IndexFunc(adopted.Containers, func(running lifecycle.Container) bool { return running.Name == c.spec.Name })
		if i < 0 {
			c.adopt(nil, false, last)
		} else {
			c.adopt(&adopted.Containers[i].ID, adopted.Containers[i].PreStopDone, last)
		}
	}
	cs.refresh()
}
