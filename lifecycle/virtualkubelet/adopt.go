package virtualkubelet

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var errAdopts = errors.New("a PodRuntime lists its pods itself")

// Adopted is a pod that a previous process of the agent has left running.
type Adopted struct {
	// Pod is the pod from the API server or the agent's own records; nil is an error. The containers
	// that the [Runtime] lists are running. Containers at the end of the spec have never been started
	// if their status is missing, or waiting without a lastState. All others have terminated, as their
	// status says or with an unknown exit code; unless the pod is deleted, the restart policy applies.
	Pod *v1.Pod
	// Alive is true if this process has read the pod from the API server and it was not deleted. A
	// later deletion then has its full grace period. If it is false, a deletion may predate this
	// process and has only the time until its deletionTimestamp, until CreatePod or UpdatePod is called
	// for the pod.
	Alive bool
}

// Adopt takes over a running pod. Call it for each pod whose spec.nodeName is the node's, before
// virtual-kubelet's PodController starts (before nodeutil's Node.Run):
//
//	list, err := client.CoreV1().Pods("").List(ctx, metav1.ListOptions{FieldSelector: "spec.nodeName=" + name})
//	for i := range list.Items { // if err is nil
//		pod := &list.Items[i]
//		err = errors.Join(err, provider.Adopt(ctx, virtualkubelet.Adopted{Pod: pod, Alive: pod.DeletionTimestamp == nil}))
//	}
//	err = virtual.Run(ctx) // virtual is the result of nodeutil.NewNode
//
// Adopt calls Running once and waits for it; if that is slow, adopt several pods concurrently. If Running
// fails, Adopt returns its error and the pod is not adopted: call Adopt again. A pod that the provider
// already knows is not changed. Containers that were never started are started now, in the order of the
// spec. If none of the pod's containers was started, [Options.Admit] is called first.
//
// A deleted pod is terminated when DeletePod is called, which the controller does when it starts. If the
// pod has completed, virtual-kubelet is notified. The error is an errdefs.ErrInvalidInput after
// [Provider.Close], when it wraps [lifecycle.ErrClosed], and with a [PodRuntime], which lists its pods
// itself.
func (p *Provider) Adopt(ctx context.Context, adopted Adopted) error {
	if err := p.check(adopted.Pod); err != nil {
		return err
	}
	if err := checkNames(adopted.Pod); err != nil {
		return newRefusedError(adopted.Pod, err)
	}
	known := p.agent.pods.find(adopted.Pod)
	switch a := p.agent; {
	case a.isClosed():
		return newRefusedError(adopted.Pod, lifecycle.ErrClosed)
	case a.opts.Pods != nil:
		return newRefusedError(adopted.Pod, errAdopts)
	case known != nil:
		return known.checkSameName(adopted.Pod)
	}
	listed, err := p.agent.listForAdoption(ctx, adopted.Pod)
	if err != nil {
		return fmt.Errorf("failed to adopt pod %s: %w", nameOf(adopted.Pod), err)
	}
	added := newRecord(ctx, p.agent, adopted.Pod)
	added.desired.adopted = !adopted.Alive // if so, its deletion may be older than this process
	startedCount := added.containers.adopt(adopted.Pod, listed)
	mustStartMore := startedCount < len(added.containers.all)
	added.ending.startInProgress = mustStartMore
	if known, _ := p.agent.pods.add(added); known != nil { // another call has added the pod since find
		added.cancel()
		return nil
	}
	added.wake()
	p.agent.spawn(added.name, added.sendStatuses)
	p.agent.spawn(added.name, added.watchContainers)
	for _, c := range added.containers.all[:startedCount] {
		added.resume(c)
	}
	if mustStartMore {
		p.agent.spawn(added.name, func() { added.startPod(nil, startedCount > 0) })
	}
	if added.hasCompleted() {
		added.terminateRemaining()
	}
	return nil
}

// listForAdoption calls Running once for a pod that Adopt has not added yet. A list with an invalid ID, or with
// one ID for two containers, is an error: the pod would be adopted with the wrong containers.
func (a *agent) listForAdoption(ctx context.Context, pod *v1.Pod) (listed []lifecycle.Container, err error) {
	err = a.callWithin(ctx, "Running", nameOf(pod), callTimeout, nil, func(ctx context.Context) (err error) {
		listed, err = a.opts.Runtime.Running(ctx, pod.DeepCopy())
		return err
	})
	if err != nil {
		return nil, err
	}
	for i, c := range listed {
		if err := checkID("Running", c.Name, c.ID); err != nil {
			return nil, err
		}
		for _, other := range listed[:i] {
			if other.ID == c.ID && other.Name != c.Name {
				return nil, fmt.Errorf("Running has returned the ID %q of containers %q and %q", c.ID, other.Name, c.Name)
			}
		}
	}
	return listed, nil
}

// resume continues where the previous agent stopped: it restarts a container that has ended and may restart, watches
// one that runs, and calls ContainerEnded for one that has ended for good. Before a restart it calls ContainerEnded for
// the old run. If the provider is closed before ContainerEnded succeeds, resume does nothing more: the next agent
// calls ContainerEnded again.
func (r *record) resume(c *container) {
	r.mu.Lock()
	id, isRunning, isRestarting := c.id, c.isRunning(), c.restarting
	r.mu.Unlock()
	switch {
	case isRestarting:
		r.agent.spawn(r.name, func() {
			if r.reportEnd(c, id) {
				_ = r.restart(c) // an error shows in the container's state
				r.endIfDone()
			}
		})
	case isRunning:
		r.watchExit(id)
	case id != "": // ended for good
		r.agent.spawn(r.name, func() {
			if !r.reportEnd(c, id) { // the provider was closed
				return
			}
			r.mu.Lock()
			r.containers.unreported-- // the pod's end no longer waits for this container's ContainerEnded
			r.mu.Unlock()
			r.endIfDone()
		})
	}
}
