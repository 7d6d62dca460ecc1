package virtualkubelet

import (
	"context"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// ending is the progress of a pod's end. The managedPod's mutex guards it.
type ending struct {
	startInProgress bool                // startPod has not ended: it may start more containers
	terminating     bool                // the termination has begun
	setStatus       func(*v1.PodStatus) // shutdown.KillRequest.SetStatus of the last KillPod that had one; nil: none
	refusal         *shutdown.Admission // why the pod was not admitted; nil: admitted
	finalizing      bool                // the final status is being computed, or was: the containers no longer change
	final           *v1.PodStatus       // the final status; nil until it is computed
	finalSent       bool                // virtual-kubelet has the final status
	kills           int                 // the number of KillPod calls in progress
	forgotten       bool                // the provider no longer knows the pod
	previousFailure error               // why the termination before the newest could not stop all containers; nil: it stopped them, or there was none
}

// terminate begins or joins the pod's termination and returns it at once. If an earlier termination has ended but
// could not stop all containers, a new one begins. From now on nothing is started or restarted. pod must not change
// afterwards. override replaces the pod's own grace period, in seconds; nil: the pod's own. It fails if the pod was
// forgotten or the provider is closed.
func (m *managedPod) terminate(ctx context.Context, pod *v1.Pod, override *int64) (*lifecycle.Termination, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	switch {
	case m.ending.forgotten:
		return nil, newNotFoundError(m.name.Namespace, m.name.Name)
	case m.provider.isClosed():
		return nil, fmt.Errorf("failed to terminate pod %s: %w", m.name, lifecycle.ErrClosed)
	}
	m.ending.terminating = true
	m.forbidStarts(lifecycle.ErrTerminating) // before any container is stopped
	previous, _ := m.provider.terminator.Termination(pod)
	t := m.provider.terminator.Terminate(ctx, pod, lifecycle.Request{GracePeriodSeconds: m.cappedGrace(override)})
	if t != previous { // it is new; Terminate returns the previous one while that is in progress
		m.ending.previousFailure = nil
		if previous != nil {
			m.ending.previousFailure = previous.Result().Err()
		}
		m.provider.spawn(m.name, func() { m.followTermination(t) })
	}
	return t, nil
}

// followTermination waits for the end of the termination, and then computes the final status. If the termination could not stop
// all containers, it begins another one after a pause of 10 s: virtual-kubelet repeats only calls of DeletePod, and a pod may
// terminate without one.
func (m *managedPod) followTermination(t *lifecycle.Termination) {
	<-t.Done() // Close ends it too
	m.finalizeIfEnded()
	if t.Result().Err() != nil && times.Sleep(m.ctx, backOffFirst) == nil {
		m.terminateRemaining()
	}
}

// cappedGrace returns the grace period in seconds to request, or nil for the pod's own. A pod's deadline only moves
// earlier: if a termination has ended and containers still run, the next one gets only the time until that termination's
// deadline, and at least 1 s. The caller holds the mutex.
func (m *managedPod) cappedGrace(override *int64) *int64 {
	ended := m.endedTermination()
	if ended == nil {
		return override
	}
	remaining := max(int64(time.Until(ended.Deadline())/time.Second), graceperiod.MinimumPodSeconds)
	if override != nil {
		remaining = min(remaining, *override)
	}
	return &remaining
}

// endedTermination returns the pod's newest termination if it has ended, else nil. If its result has an error, it could not
// stop all containers: the next DeletePod, KillPod or endIfDone begins another termination. The caller holds the mutex.
func (m *managedPod) endedTermination() *lifecycle.Termination {
	newest, _ := m.provider.terminator.Termination(m.desired.pod)
	if newest == nil || !isClosed(newest.Done()) {
		return nil
	}
	return newest
}

// terminateIfKnown begins or joins the termination of the pod as it is now, and returns at once. override replaces the
// pod's own grace period, in seconds; nil: the pod's own. If the provider has forgotten the pod, which it does only after
// the pod's end, terminateIfKnown does nothing and returns nil.
func (m *managedPod) terminateIfKnown(ctx context.Context, override *int64) error {
	if _, err := m.terminate(ctx, m.podWithStatus(), override); !errdefs.IsNotFound(err) {
		return err
	}
	return nil
}

// terminateRemaining stops what still runs of a pod that has ended or was refused, such as sidecars. Even if nothing runs, the
// pod needs a termination, because it gets its final status only after one.
func (m *managedPod) terminateRemaining() {
	var noOverride *int64
	_ = m.terminateIfKnown(m.ctx, noOverride) // fails only after Close, which leaves pods running
}

// finalizeIfEnded computes the final status once the termination, the start and all containers have ended, and
// makes sendStatuses send it. Call it after each of these ends; before the last one it does nothing.
func (m *managedPod) finalizeIfEnded() {
	if !m.tryStartFinalizing() {
		return
	}
	pod := m.podWithStatus()
	m.mu.Lock()
	setStatus, refusal := m.ending.setStatus, m.ending.refusal
	m.mu.Unlock() // because setStatus is code of KillPod's caller
	switch {
	case refusal != nil:
		writeRefusal(&pod.Status, *refusal)
	case setStatus != nil:
		setStatus(&pod.Status)
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	m.ending.final = &pod.Status
	close(m.ended)
	m.wakeSender()
}

// tryStartFinalizing reports whether the caller must compute the final status. started is true once: for the first call
// after a termination has stopped all containers, no start is in progress, and nothing of the pod may run or restart
// (workload.mayRun). From then on the containers' states no longer change: a container whose end is not known has ended
// with an unknown exit code.
func (m *managedPod) tryStartFinalizing() (started bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	ended := m.endedTermination()
	hasStoppedAll := ended != nil && ended.Result().Err() == nil
	mayChange := m.ending.startInProgress || m.workload.mayRun()
	if m.ending.finalizing || !hasStoppedAll || mayChange {
		return false
	}
	m.ending.finalizing = true
	m.workload.assumeEnded()
	return true
}

// stopError returns why the last termination that has ended could not stop the pod, for the result of DeletePod:
// virtual-kubelet then calls DeletePod again, with increasing pauses. It returns nil if that termination has succeeded
// or the pod has ended since.
func (m *managedPod) stopError() error {
	m.mu.Lock()
	defer m.mu.Unlock()
	failure := m.ending.previousFailure // counts while the newest termination is in progress
	if ended := m.endedTermination(); ended != nil {
		failure = ended.Result().Err()
	}
	if failure == nil || m.ending.finalizing {
		return nil
	}
	return fmt.Errorf("failed to stop pod %s: %w", m.name, failure)
}

// tryForget removes the pod from the provider, unless a KillPod is in progress, which needs the final status.
func (m *managedPod) tryForget() (forgotten bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.ending.kills > 0 {
		return false
	}
	m.ending.forgotten = true // so that no later call terminates the pod
	m.provider.pods.remove(m)
	m.provider.terminator.Forget(m.desired.pod)
	m.cancel()
	return true
}
