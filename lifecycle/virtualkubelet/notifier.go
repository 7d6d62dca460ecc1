package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
)

// notifier sends the statuses of one pod to virtual-kubelet.
type notifier struct {
	*record

	changed chan struct{} // of size 1: has an element when the pod has changed
}

// wake reports that the pod has changed. It does not block.
func (n *notifier) wake() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// run sends statuses until the pod is forgotten or the provider is closed, when it sends the last one.
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
		if n.send() && (n.whole() == nil || n.whole().deleteAtRuntime()) && n.ender.forget() {
			return
		}
	}
}

// send notifies virtual-kubelet of a changed status. It returns true if the pod can be forgotten.
func (n *notifier) send() (done bool) {
	pod, final := n.next()
	if pod != nil {
		pod = n.complete(pod, final)
		returned := n.agent.watch(n.ctx, "the callback of NotifyPods", n.name, 0)
		(*n.agent.notify.Load())(pod)
		returned()
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ending.finalSent = n.ending.finalSent || final
	return n.ending.finalSent && n.desired.deleted
}

// next returns the pod to send, or nil, and whether its status is final. For a terminating or completed
// pod only the final status is sent. virtual-kubelet removes a deleted pod as soon as no entry of
// ContainerStatuses is running, although sidecars and hooks may still run. And a restarted agent must
// not report a pod as running that its PodRuntime has as ended.
func (n *notifier) next() (pod *v1.Pod, final bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	final = n.ending.final != nil
	ends := n.ending.terminating || !n.ending.starting && !n.body.incomplete()
	if n.desired.superseded || n.ending.finalSent || ends && !final {
		return nil, final
	}
	return n.copyLocked(), final
}
