package virtualkubelet

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// Adopted is a pod that an earlier life of the agent has left running.
type Adopted struct {
	// Pod is the pod, as the API server or the agent's own notes have it.
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
// meanwhile, virtual-kubelet is told. After Close the error is a [*RefusedError].
func (p *Provider) Adopt(ctx context.Context, adopted Adopted) error {
	r := newRecord(ctx, adopted.Pod)
	r.adopted = !adopted.Alive
	if adopted.Containers == nil {
		adopted.Containers = lifecycle.ContainersOf(adopted.Pod)
	}
	r.adopt(adopted)
	p.mu.Lock()
	if known := p.pods[r.key]; known != nil || p.closed {
		p.mu.Unlock()
		return adoptError(adopted.Pod, known)
	}
	p.pods[r.key], p.names[r.name] = r, r
	r.changeLocked()
	over := r.doneLocked()
	p.mu.Unlock()
	p.spawn(r.name, func() { p.tell(r) })
	for _, c := range r.containers {
		if c.id != "" {
			p.spawn(r.name, func() { p.watch(r, c) })
		}
	}
	if over {
		p.endItself(r)
	}
	return nil
}

// adoptError is that of a pod that is known, which is none, or that comes too late.
func adoptError(pod *v1.Pod, known *record) error {
	if known != nil {
		return nil
	}
	return refused(pod, lifecycle.AgentStopping)
}

// adopt fills in what runs and what has ended.
func (r *record) adopt(adopted Adopted) {
	status := adopted.Pod.Status
	statuses := slices.Concat(status.InitContainerStatuses, status.ContainerStatuses)
	for _, c := range r.containers {
		var old v1.ContainerStatus
		if i := slices.IndexFunc(statuses, func(s v1.ContainerStatus) bool { return s.Name == c.spec.Name }); i >= 0 {
			old = statuses[i]
		}
		i := slices.IndexFunc(adopted.Containers, func(running lifecycle.Container) bool { return running.Name == c.spec.Name })
		switch {
		case i >= 0 && old.State.Running != nil:
			c.upLocked(adopted.Containers[i].ID, old.State.Running.StartedAt.Time)
		case i >= 0:
			c.upLocked(adopted.Containers[i].ID, time.Now())
		case old.State.Terminated != nil:
			c.state = v1.ContainerState{Terminated: old.State.Terminated.DeepCopy()}
			close(c.exited)
		default:
			c.downLocked(unknownEnd())
		}
		c.preStopDone = i >= 0 && adopted.Containers[i].PreStopDone
	}
}
