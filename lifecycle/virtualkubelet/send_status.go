package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
)

// run begins to send the pod's statuses and to watch what runs of it. The pod must be in the podTable.
func (m *managedPod) run() {
	m.wakeSender()
	m.provider.spawn(m.name, m.sendStatuses)
	m.workload.watch()
}

// wakeSender makes sendStatuses send a status, because the pod has changed. It does not block.
func (m *managedPod) wakeSender() {
	select {
	case m.changed <- struct{}{}:
	default: // it has been woken already
	}
}

// sendStatuses sends a status to virtual-kubelet after each wakeSender. Once virtual-kubelet has the final status of a deleted
// pod, sendStatuses removes the pod, first from the runtime and then from the provider, and returns. When the provider is
// closed, it sends once more and returns.
func (m *managedPod) sendStatuses() {
	select {
	case <-m.provider.registered:
	case <-m.ctx.Done():
		return
	}
	for isClosing := false; !isClosing; {
		select {
		case <-m.changed:
		case <-m.ctx.Done():
			isClosing = true
		}
		if isRemovable := m.send(); isRemovable && m.workload.remove() && m.tryForget() {
			return
		}
	}
}

// send notifies virtual-kubelet of the pod's status, unless there is none to send. The result is true once
// virtual-kubelet has the final status of a pod that was deleted: nobody needs the pod any more.
func (m *managedPod) send() (isRemovable bool) {
	pod, isFinal := m.nextToSend()
	if pod != nil {
		if !isFinal {
			pod = m.callOptionsStatus(pod)
		}
		returned := m.watchCall(m.ctx, "the callback of NotifyPods", 0)
		(*m.provider.notify.Load())(pod)
		returned()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ending.finalSent = m.ending.finalSent || isFinal
	return m.ending.finalSent && m.desired.deleted
}

// nextToSend returns the pod with the status to send. It returns nil if the final status was sent, if a newer pod has the name
// (superseded), or if the pod is terminating or has completed and has no final status yet. hasFinal says that there is a final
// status, even if it was sent before.
//
// Of a terminating or completed pod only the final status is sent, for two reasons: virtual-kubelet removes a deleted pod
// as soon as no entry of ContainerStatuses is running, although sidecars and hooks may still run; and a restarted agent
// must not report a pod as running that its PodRuntime lists as ended.
func (m *managedPod) nextToSend() (pod *v1.Pod, hasFinal bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	hasFinal = m.ending.final != nil
	hasCompleted := !m.ending.startInProgress && !m.workload.hasWork() // no regular container runs, or will be started or restarted
	mustAwaitFinal := (m.ending.terminating || hasCompleted) && !hasFinal
	if m.desired.superseded || m.ending.finalSent || mustAwaitFinal {
		return nil, hasFinal
	}
	return m.copyWithStatusLocked(), hasFinal
}
