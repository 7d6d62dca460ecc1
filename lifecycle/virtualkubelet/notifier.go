package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
)

// notifier notifies virtual-kubelet of the statuses of one pod.
type notifier struct {
	*record

	changed chan struct{} // of size 1: the pod has changed
}

// wake reports that the pod has changed. It does not block.
func (n *notifier) wake() {
	select {
	case n.changed <- struct{}{}:
	default:
	}
}

// run notifies virtual-kubelet of the pod until the pod is forgotten. When the agent
// stops, it sends the last change and ends.
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
		if n.sendNews() && (n.whole() == nil || n.whole().clear()) && n.ender.forget() {
			return
		}
	}
}

// sendNews notifies virtual-kubelet if there is news. It returns true if the pod can be
// forgotten.
func (n *notifier) sendNews() (done bool) {
	pod, final := n.news()
	if pod != nil {
		(*n.agent.notify.Load())(n.complete(pod, final))
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	n.ending.finalSent = n.ending.finalSent || final
	return n.ending.finalSent && n.desired.deleted
}

// news returns the pod to notify virtual-kubelet of, or nil, and whether its status is
// final. While a pod is terminating there is no news: virtual-kubelet removes a deleted pod at
// once when no entry of ContainerStatuses is running, although sidecars and their hooks may still
// run. One that has completed has no news but its end, so that a restarted agent does not tell of
// a pod that runs when its pod runtime has it as ended.
func (n *notifier) news() (pod *v1.Pod, final bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	final = n.ending.final != nil
	ends := n.ending.terminating || !n.ending.starting && !n.body.goesOn()
	if n.desired.superseded || n.ending.finalSent || ends && !final {
		return nil, final
	}
	return n.copyLocked(), final
}
