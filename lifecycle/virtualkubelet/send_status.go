package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
)

// wake makes sendStatuses send a status, because the pod has changed. It does not block.
func (r *record) wake() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// sendStatuses sends a status to virtual-kubelet after each wake. Once virtual-kubelet has the final status of a deleted
// pod, sendStatuses removes the pod, first from the PodRuntime (a Runtime has no pods to delete) and then from the
// provider, and returns. After Close it sends once more and returns.
func (r *record) sendStatuses() {
	select {
	case <-r.agent.registered:
	case <-r.ctx.Done():
		return
	}
	for isClosing := false; !isClosing; {
		select {
		case <-r.changed:
		case <-r.ctx.Done():
			isClosing = true
		}
		if !r.send() { // the pod is still needed
			continue
		}
		isDeleted := r.whole == nil || r.whole.deleteAtRuntime() // nil: a Runtime has no pods to delete
		if isDeleted && r.tryForget() {
			return
		}
	}
}

// send notifies virtual-kubelet of the pod's status, unless there is none to send. The result is true once
// virtual-kubelet has the final status of a pod that was deleted: nobody needs the pod any more.
func (r *record) send() (isRemovable bool) {
	pod, isFinal := r.nextToSend()
	if pod != nil {
		pod = r.addCustomStatus(pod, isFinal)
		returned := r.agent.watchCall(r.ctx, "the callback of NotifyPods", r.name, 0)
		(*r.agent.notify.Load())(pod)
		returned()
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending.finalSent = r.ending.finalSent || isFinal
	return r.ending.finalSent && r.desired.deleted
}

// nextToSend returns the pod to send. It returns nil if its final status was sent, if a newer pod has its name, or if only
// its final status may be sent and there is none yet. hasFinal says that there is a final status, even if it was sent before.
//
// Of a terminating or completed pod only the final status is sent, for two reasons: virtual-kubelet removes a deleted pod
// as soon as no entry of ContainerStatuses is running, although sidecars and hooks may still run; and a restarted agent
// must not report a pod as running that its PodRuntime lists as ended.
func (r *record) nextToSend() (pod *v1.Pod, hasFinal bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	hasFinal = r.ending.final != nil
	hasCompleted := !r.ending.startInProgress && !r.workload.hasWork() // no regular container runs, or will be started or restarted
	mustAwaitFinal := (r.ending.terminating || hasCompleted) && !hasFinal
	if r.desired.superseded || r.ending.finalSent || mustAwaitFinal {
		return nil, hasFinal
	}
	return r.copyLocked(), hasFinal
}
