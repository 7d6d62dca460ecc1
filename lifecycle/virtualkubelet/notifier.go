package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
)

// notifier sends the statuses of one pod to virtual-kubelet.
type notifier struct {
	*record

	changed chan struct{} // of size 1: has an element if the pod has changed since the last status
}

// wake makes run send a status, because the pod has changed. It does not block.
func (n *notifier) wake() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// run sends a status after each wake. Once virtual-kubelet has the final status of a deleted pod, run removes the
// pod, first from the PodRuntime (a Runtime has no pods to delete) and then from the provider, and returns. After
// Close it sends once more and returns.
func (n *notifier) run() {
	select {
	case <-n.agent.registered:
	case <-n.ctx.Done():
		return
	}
	for closing := false; !closing; {
		select {
		case <-n.changed:
		case <-n.ctx.Done():
			closing = true
		}
		if !n.send() { // the pod is still needed
			continue
		}
		isDeleted := n.whole() == nil || n.whole().deleteAtRuntime() // nil: a Runtime has no pods to delete
		if isDeleted && n.ender.tryForget() {
			return
		}
	}
}

// send notifies virtual-kubelet of the pod's status, unless there is none to send. The result is true once
// virtual-kubelet has the final status of a pod that was deleted: nobody needs the pod any more.
func (n *notifier) send() (isRemovable bool) {
	pod, final := n.nextToSend()
	if pod != nil {
		pod = n.addCustomStatus(pod, final)
		returned := n.agent.watchCall(n.ctx, "the callback of NotifyPods", n.name, 0)
		(*n.agent.notify.Load())(pod)
		returned()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ending.finalSent = n.ending.finalSent || final
	return n.ending.finalSent && n.desired.deleted
}

// nextToSend returns the pod to send, or nil if there is nothing to send: its final status was sent, a newer pod has its
// name, or its final status is still to come. final says that the pod's status is final, even if it was sent before.
//
// Of a terminating or completed pod only the final status is sent, for two reasons: virtual-kubelet removes a deleted pod
// as soon as no entry of ContainerStatuses is running, although sidecars and hooks may still run; and a restarted agent
// must not report a pod as running that its PodRuntime lists as ended.
func (n *notifier) nextToSend() (pod *v1.Pod, final bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	final = n.ending.final != nil
	hasCompleted := !n.ending.starting && !n.body.incomplete()
	mustAwaitFinal := (n.ending.terminating || hasCompleted) && !final
	if n.desired.superseded || n.ending.finalSent || mustAwaitFinal {
		return nil, final
	}
	return n.copyLocked(), final
}
