package virtualkubelet

import (
	"context"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// record is one pod: what virtual-kubelet has requested for it, what of it is running, and how far its end has come.
// The fields above the mutex do not change.
type record struct {
	agent      *agent
	key        types.UID // keyOf the pod
	name       types.NamespacedName
	ctx        context.Context // has the values of the call that added the pod; ends when the pod is forgotten or the provider is closed
	cancel     context.CancelFunc
	active     context.Context         // ends when nothing may be started any more: with the cause ErrTerminating or ErrClosed
	deactivate context.CancelCauseFunc // ends the context active
	created    metav1.Time
	whole      *wholePod     // nil with a Runtime
	workload   workload      // whole or, with a Runtime, &containers
	changed    chan struct{} // of size 1: has an element if the pod has changed since the last status that was sent
	exited     chan struct{} // of size 1: has an element if a container has exited and the containers must be listed
	ended      chan struct{} // closed when the status is final
	nameFree   chan struct{} // closed when a new pod may use the name
	endMutex   chan struct{} // of size 1: a mutex that can be waited for with a context, for terminate and tryForget

	mu         sync.Mutex // guards the fields below and whole's; never held while blocking or calling the embedder's code
	desired    desired
	containers containers
	ending     ending
	lastErrors map[string]error // the error of the last call of each kind, such as "Running"; nil: it has succeeded
}

// workload is what can run of a pod: its containers with a [Runtime], a wholePod with a [PodRuntime]. The record's mutex
// guards it.
type workload interface {
	mayRun() bool                     // whether anything may still run or restart, so that there is no final status yet
	hasWork() bool                    // whether the pod has work left: a regular container runs or will restart
	write(pod *v1.Pod, hasEnded bool) // writes the status into the pod; hasEnded: all containers have ended for good
}

// newRecord returns the record of a pod that has not started. It is not in the podTable yet.
func newRecord(ctx context.Context, a *agent, pod *v1.Pod) *record {
	pod = pod.DeepCopy()
	r := &record{
		agent: a, key: keyOf(pod), name: nameOf(pod), created: metav1.Now(),
		changed: make(chan struct{}, 1), exited: make(chan struct{}, 1),
		ended: make(chan struct{}), nameFree: make(chan struct{}), endMutex: make(chan struct{}, 1),
		desired: desired{pod: pod}, containers: newContainers(&pod.Spec),
	}
	r.ctx, r.cancel = a.context(ctx)
	r.active, r.deactivate = context.WithCancelCause(r.ctx)
	r.workload = &r.containers
	if a.opts.Pods != nil {
		r.whole = &wholePod{pod: r, changed: make(chan struct{})}
		r.workload = r.whole
	}
	return r
}

// isTerminating reports whether the pod's termination has begun, which stays true after its end.
func (r *record) isTerminating() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending.terminating
}

// hasCompleted reports whether the pod has completed on its own, without a termination: all its containers were started,
// and the regular ones have ended for good.
func (r *record) hasCompleted() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ending.terminating && !r.ending.startInProgress && !r.workload.hasWork()
}

// mustTerminateAgain reports whether a termination has ended without stopping all containers, and these have ended
// since. A pod ends only after a termination that has succeeded, so it needs another one, which finds nothing running.
func (r *record) mustTerminateAgain() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, stuck := r.ending.outcome()
	return stuck != nil && !r.workload.mayRun()
}

// endIfDone ends a pod whose work is done, or of which nothing is known to run any more. It is called after each end
// of a container.
func (r *record) endIfDone() {
	if r.hasCompleted() || r.mustTerminateAgain() {
		r.terminateRemaining()
	}
	r.finalizeIfEnded()
}

// finalStatus returns the final status, or nil if there is none yet. It must not be modified.
func (r *record) finalStatus() *v1.PodStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending.final
}

// podWithStatus returns a copy of the pod with its current status.
func (r *record) podWithStatus() *v1.Pod {
	r.mu.Lock()
	pod, isFinal := r.copyLocked(), r.ending.final != nil
	r.mu.Unlock()
	return r.addCustomStatus(pod, isFinal)
}

// copyLocked returns a copy of the pod with its current status, without the fields that Options.Status sets:
// Options.Status must not be called with the mutex held. The caller holds the mutex.
func (r *record) copyLocked() *v1.Pod {
	pod := r.desired.copy()
	if r.ending.final != nil {
		r.ending.final.DeepCopyInto(&pod.Status)
		return pod
	}
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &r.created
	}
	r.workload.write(pod, r.ending.finalizing)
	return pod
}

// addCustomStatus lets Options.Status set the fields that this package does not know, such as the podIP, and returns
// pod. A final status has them already.
func (r *record) addCustomStatus(pod *v1.Pod, isFinal bool) *v1.Pod {
	setStatus := r.agent.opts.Status
	if isFinal || setStatus == nil {
		return pod
	}
	annotations := maps.Clone(pod.Annotations)
	_ = r.callSafely("Status", func() { setStatus(pod) }) // a panic was logged
	r.mu.Lock()
	defer r.mu.Unlock()
	r.desired.annotate(annotations, pod.Annotations)
	return pod
}

// podForVirtualKubelet returns a copy of the pod with its current status, for GetPod. If the pod is terminating, the copy
// has the terminatingAnnotation, so that DeletePod recognizes the copy.
func (r *record) podForVirtualKubelet() *v1.Pod {
	pod := r.podWithStatus()
	if !r.isTerminating() {
		return pod
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[terminatingAnnotation] = "true"
	return pod
}
