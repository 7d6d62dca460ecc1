package virtualkubelet

import (
	"context"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// startPod admits the pod, unless a previous agent has done so, and starts it once the earlier pods with its name have
// ended. If the start fails for good, or all regular containers have ended already, startPod terminates what still runs,
// such as sidecars, unless a termination has begun.
func (m *managedPod) startPod(earlier []*managedPod) {
	if m.provider.poller.awaitFirstList(m.ctx) != nil {
		return
	}
	err := m.admit()
	if err == nil {
		err = m.awaitForgotten(earlier)
	}
	if err == nil {
		err = m.workload.start()
	}
	m.mu.Lock()
	m.ending.startInProgress = false
	hasFailedOrCompleted := err != nil || !m.workload.hasWork()
	mustTerminate := !m.ending.terminating && hasFailedOrCompleted
	m.mu.Unlock()
	if err != nil {
		klog.FromContext(m.ctx).V(1).Info("Stopped starting a pod", "pod", m.name, "err", err)
	}
	m.finalizeIfEnded()
	if mustTerminate && !m.provider.isClosed() {
		m.terminateRemaining()
	}
}

// awaitForgotten waits until the provider has forgotten the earlier pods with the same name: they have ended and, with a
// PodRuntime, have been deleted.
func (m *managedPod) awaitForgotten(earlier []*managedPod) error {
	for _, other := range earlier {
		select {
		case <-other.ctx.Done(): // forgotten, or the provider is closed
		case <-m.startsAllowed.Done():
		}
	}
	if m.provider.isClosed() { // Close ends the contexts of the pods one after the other, so m.startsAllowed may not have ended yet
		return lifecycle.ErrClosed
	}
	return context.Cause(m.startsAllowed) // nil unless the pod's termination has begun
}
