package virtualkubelet

import (
	"context"
	"errors"
	"fmt"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

var errNothingToAdopt = errors.New("a PodRuntime lists its pods itself")

// Adopted is a pod that a previous process of the agent has left running.
type Adopted struct {
	// Pod is the pod from the API server or the agent's own records; nil is an error. Of its containers
	//
	//   - those that the [Runtime] lists are running;
	//   - the last ones of the spec were never started, if they have no status, or one that is waiting
	//     without a lastState;
	//   - all others have terminated, as their status says or with an unknown exit code. Unless the pod
	//     is deleted, the restart policy applies to them.
	Pod *v1.Pod
	// Alive is true if this process has read the pod from the API server and it was not deleted. A
	// later deletion then has its full grace period. If Alive is false, the pod may have been deleted
	// before this process began, so it gets only the time until its deletionTimestamp. A call of
	// CreatePod or UpdatePod for the pod has the same effect as Alive.
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
	leave, isOpen := p.calls.EnterIfOpen(func() string { return "Adopt of " + nameOf(adopted.Pod).String() })
	if !isOpen {
		return newRefusedError(adopted.Pod, lifecycle.ErrClosed)
	}
	defer leave()
	known := p.pods.find(adopted.Pod)
	switch {
	case p.opts.Pods != nil:
		return newRefusedError(adopted.Pod, errNothingToAdopt)
	case known != nil:
		return known.checkSameName(adopted.Pod)
	}
	// The runtime says which containers run, and the pod's status what is known of the others.
	added := p.newContainerPod(ctx, adopted.Pod)
	listed, err := added.listFirst(ctx, adopted.Pod.DeepCopy())
	if err != nil {
		added.cancel()
		return fmt.Errorf("failed to adopt pod %s: %w", added.name, err)
	}
	added.desired.deletionMayBeOld = !adopted.Alive
	startedCount := added.adopt(adopted.Pod, listed)
	added.ending.startInProgress = startedCount < len(added.all)
	if known, _ := p.pods.add(added.managedPod); known != nil { // another call has added the pod since find
		added.cancel()
		return nil
	}
	added.continueAdopted(startedCount)
	return nil
}

// continueAdopted continues with an adopted pod where the previous agent stopped: it resumes the first startedCount containers,
// starts the others, and begins to send the pod's status. If the pod has completed, it ends the pod.
func (p *containerPod) continueAdopted(startedCount int) {
	p.run()
	for _, c := range p.all[:startedCount] {
		p.resume(c)
	}
	if startedCount < len(p.all) {
		var noEarlierPods []*managedPod
		p.provider.spawn(p.name, func() { p.startPod(noEarlierPods) })
	}
	if p.hasCompleted() {
		p.terminateRemaining()
	}
}

// listFirst calls the runtime's Running for a pod that is not in the podTable yet, and checks the IDs of the containers.
func (p *containerPod) listFirst(ctx context.Context, pod *v1.Pod) (listed []lifecycle.Container, err error) {
	err = p.callWithin(ctx, "Running", callTimeout, func(ctx context.Context) (err error) {
		listed, err = p.provider.opts.Runtime.Running(ctx, pod)
		return errors.Join(err, checkIDs("Running", listed))
	})
	return listed, err
}

// resume continues where the previous agent stopped: it watches a container that runs, and calls ContainerEnded for one that has
// ended. After that it restarts a container that may restart. If the provider is closed before ContainerEnded succeeds, resume
// does nothing more: the next agent calls ContainerEnded again.
func (p *containerPod) resume(c *container) {
	p.mu.Lock()
	id, isRunning, isRestarting := c.id, c.isRunning(), c.restarting
	p.mu.Unlock()
	if isRunning {
		p.watchExit(id)
		return
	}
	if wasStarted := isRestarting || id != ""; !wasStarted {
		return
	}
	p.provider.spawn(p.name, func() {
		if isClosed := !p.reportEnd(c, id); isClosed {
			return
		}
		if isRestarting {
			_ = p.restart(c) // an error shows in the container's state
		} else {
			p.mu.Lock()
			c.awaitsContainerEnded = false // the pod's end no longer waits for this container's ContainerEnded
			p.mu.Unlock()
		}
		p.endIfDone()
	})
}
