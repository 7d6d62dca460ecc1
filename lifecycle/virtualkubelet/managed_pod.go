package virtualkubelet

import (
	"context"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/podkey"
)

// managedPod is one pod of a provider: what virtual-kubelet has requested for it, what of it is running, and how far its
// end has come. The fields above the mutex do not change.
type managedPod struct {
	caller // its name is the pod's

	provider      *Provider
	key           types.UID       // the pod's UID or, without one, its namespace and name (podkey.Of)
	ctx           context.Context // has the values of the call that added the pod; ends when the pod is forgotten or the provider is closed
	cancel        context.CancelFunc
	startsAllowed context.Context         // ends when nothing may be started any more: with the cause ErrTerminating or ErrClosed
	forbidStarts  context.CancelCauseFunc // ends startsAllowed
	created       metav1.Time
	workload      workload
	changed       chan struct{} // of size 1: has an element if the pod has changed since the last status that was sent
	ended         chan struct{} // closed when the status is final

	mu      sync.Mutex // guards the fields below and workload's; never held while blocking or calling the embedder's code
	desired desired
	ending  ending
}

// workload is what a pod runs: a containerPod with a [Runtime], a wholePod with a [PodRuntime]. The caller of the methods
// from wasStarted on holds the managedPod's mutex.
type workload interface {
	watch()       // begins to learn from the runtime what has ended
	start() error // starts the pod; an error ends the pod
	remove() bool // removes the pod from the runtime once it has ended; false if the provider is closed before that

	wasStarted() bool                       // whether anything of the pod was started: a previous agent has then admitted it
	mayRun() bool                           // whether anything may still run or restart, so that there is no final status yet
	hasWork() bool                          // whether the pod has work left: a regular container runs or will restart
	setSpec(spec *v1.PodSpec)               // is called when the pod has a new spec
	assumeEnded()                           // marks the containers whose end is not known as ended: the pod has ended
	writeStatus(pod *v1.Pod, hasEnded bool) // writes the status into the pod; hasEnded: all containers have ended for good
}

// newPod returns a pod that has not started. It is not in the podTable yet.
func (p *Provider) newPod(ctx context.Context, pod *v1.Pod) *managedPod {
	if p.opts.Pods != nil {
		return p.newWholePod(ctx, pod).managedPod
	}
	return p.newContainerPod(ctx, pod).managedPod
}

// newManagedPod returns a pod without a workload. It copies the API's pod.
func newManagedPod(ctx context.Context, provider *Provider, pod *v1.Pod) *managedPod {
	m := &managedPod{
		caller: caller{name: nameOf(pod), calls: &provider.calls}, provider: provider, key: podkey.Of(pod), created: metav1.Now(),
		changed: make(chan struct{}, 1), ended: make(chan struct{}), desired: desired{pod: pod.DeepCopy()},
	}
	m.ctx, m.cancel = provider.context(ctx)
	m.startsAllowed, m.forbidStarts = context.WithCancelCause(m.ctx)
	return m
}

// isTerminating reports whether the pod's termination has begun, which stays true after its end.
func (m *managedPod) isTerminating() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ending.terminating
}

// hasCompleted reports whether the pod has completed on its own, without a termination: all its containers were started,
// and the regular ones have ended for good.
func (m *managedPod) hasCompleted() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return !m.ending.terminating && !m.ending.startInProgress && !m.workload.hasWork()
}

// mustTerminateAgain reports whether a termination has ended without stopping all containers, and these have ended
// since. A pod ends only after a termination that has succeeded, so it needs another one, which finds nothing running.
func (m *managedPod) mustTerminateAgain() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	ended := m.endedTermination()
	return ended != nil && ended.Result().Err() != nil && !m.workload.mayRun()
}

// endIfDone begins the termination that a pod needs for its final status, if the pod has completed, or if its last termination
// failed and what that could not stop has ended since. If the pod has ended, it then gets its final status. endIfDone is called
// after each end of a container or, for a pod of a PodRuntime, of the pod.
func (m *managedPod) endIfDone() {
	if m.hasCompleted() || m.mustTerminateAgain() {
		m.terminateRemaining()
	}
	m.finalizeIfEnded()
}

// finalStatus returns the final status, or nil if there is none yet. It must not be modified.
func (m *managedPod) finalStatus() *v1.PodStatus {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.ending.final
}

// podWithStatus returns a copy of the pod with its current status, including what Options.Status sets.
func (m *managedPod) podWithStatus() *v1.Pod {
	m.mu.Lock()
	pod, isFinal := m.copyWithStatusLocked(), m.ending.final != nil
	m.mu.Unlock()
	if isFinal {
		return pod // finalizeIfEnded has called Options.Status
	}
	return m.callOptionsStatus(pod)
}

// copyWithStatusLocked returns a copy of the pod with its current status. What Options.Status sets is only in a final status:
// Options.Status must not be called with the mutex held. The caller holds the mutex.
func (m *managedPod) copyWithStatusLocked() *v1.Pod {
	pod := m.desired.copy()
	if m.ending.final != nil {
		m.ending.final.DeepCopyInto(&pod.Status)
		return pod
	}
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = m.created.DeepCopy()
	}
	m.workload.writeStatus(pod, m.ending.finalizing)
	return pod
}

// callOptionsStatus lets Options.Status set the fields of pod that only the agent knows, such as the podIP, and returns
// pod. All later copies of the pod have the annotations that Options.Status sets.
func (m *managedPod) callOptionsStatus(pod *v1.Pod) *v1.Pod {
	setStatus := m.provider.opts.Status
	if setStatus == nil {
		return pod
	}
	before := maps.Clone(pod.Annotations)
	_ = m.callSafely(m.ctx, "Status", func() { setStatus(pod) }) // a panic was logged
	m.mu.Lock()
	defer m.mu.Unlock()
	m.desired.keepAnnotations(before, pod.Annotations)
	return pod
}

// podForVirtualKubelet returns a copy of the pod with its current status, for GetPod. If the pod is terminating, the copy
// has the terminatingAnnotation, so that DeletePod recognizes the copy.
func (m *managedPod) podForVirtualKubelet() *v1.Pod {
	pod := m.podWithStatus()
	if !m.isTerminating() {
		return pod
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[terminatingAnnotation] = "true"
	return pod
}
