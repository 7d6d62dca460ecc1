package virtualkubelet

import (
	"context"
	"maps"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// record is the state of one pod. The fields above the mutex do not change.
type record struct {
	agent    *agent
	key      types.UID
	name     types.NamespacedName
	ctx      context.Context // has the values of the call that added the pod; ends when the pod is forgotten or the provider is closed
	cancel   context.CancelFunc
	active   context.Context // ends with the cause ErrTerminating when the termination begins, or with ErrClosed
	inactive context.CancelCauseFunc
	created  metav1.Time
	exited   chan struct{} // of size 1: has an element when a container has exited
	ended    chan struct{} // closed when the status is final
	ender    *ender
	notifier *notifier

	mu         sync.Mutex // never held while blocking or calling the author's code
	desired    desired
	containers containers
	ending     ending
	body       body
	lastErrors map[string]error // by call of the author's code: that of the last one; nil: it has returned none
}

// body is a pod's containers, or a wholePod. The record's mutex guards it.
type body interface {
	mayRun() bool                  // whether a container may run, or will restart
	incomplete() bool              // whether the pod has not completed
	write(pod *v1.Pod, ended bool) // writes the status; ended: all containers have ended for good
}

// newRecord returns the record of a pod that has not started. It is not in the podTable yet.
func newRecord(ctx context.Context, a *agent, pod *v1.Pod) *record {
	pod = pod.DeepCopy()
	r := &record{
		agent: a, key: keyOf(pod), name: nameOf(pod), created: metav1.Now(),
		exited: make(chan struct{}, 1), ended: make(chan struct{}),
		desired: desired{pod: pod}, containers: newContainers(&pod.Spec),
	}
	r.ctx, r.cancel = a.context(ctx)
	r.active, r.inactive = context.WithCancelCause(r.ctx)
	r.body = &r.containers
	if a.opts.Pods != nil {
		r.body = &wholePod{record: r, changed: make(chan struct{})}
	}
	r.ender = &ender{record: r, turn: make(chan struct{}, 1), nameFree: make(chan struct{})}
	r.notifier = &notifier{record: r, changed: make(chan struct{}, 1)}
	return r
}

// whole returns the body of a pod of a [PodRuntime], or nil with a [Runtime].
func (r *record) whole() *wholePod {
	whole, _ := r.body.(*wholePod)
	return whole
}

func (r *record) isTerminating() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending.terminating
}

// completed reports whether the pod has completed on its own.
func (r *record) completed() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ending.terminating && !r.ending.starting && !r.body.incomplete()
}

// isStuck reports whether the termination has failed although no container is known to run.
func (r *record) isStuck() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, stuck := r.ender.outcome()
	return stuck != nil && !r.body.mayRun()
}

// endIfDone ends a pod of which no container is known to run.
func (r *record) endIfDone() {
	if r.completed() || r.isStuck() {
		r.ender.endCompleted()
	}
	r.ender.finalize()
}

// markTerminated records the final end of a container.
func (r *record) markTerminated(c *container, end v1.ContainerStateTerminated) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.markTerminated(end)
	r.containers.refreshReady()
	r.notifier.wake()
}

// final returns the final status, which must not be modified, or nil.
func (r *record) final() *v1.PodStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending.final
}

// view returns a copy of the pod with its current status.
func (r *record) view() *v1.Pod {
	r.mu.Lock()
	pod, final := r.copyLocked(), r.ending.final != nil
	r.mu.Unlock()
	return r.complete(pod, final)
}

// copyLocked is view without the fields that Options.Status sets. The caller holds the mutex.
func (r *record) copyLocked() *v1.Pod {
	pod := r.desired.copy()
	if r.ending.final != nil {
		r.ending.final.DeepCopyInto(&pod.Status)
		return pod
	}
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &r.created
	}
	r.body.write(pod, r.ending.finalizing)
	return pod
}

// complete calls Options.Status, unless the status is final and therefore has its fields.
func (r *record) complete(pod *v1.Pod, final bool) *v1.Pod {
	if set := r.agent.opts.Status; !final && set != nil {
		given := maps.Clone(pod.Annotations)
		_ = r.safely("Status", func() { set(pod) }) // a panic was logged
		r.mu.Lock()
		defer r.mu.Unlock()
		r.desired.annotate(given, pod.Annotations)
	}
	return pod
}

// markedView is view with the terminatingAnnotation of a terminating pod.
func (r *record) markedView() *v1.Pod {
	pod := r.view()
	if !r.isTerminating() {
		return pod
	}
	if pod.Annotations == nil {
		pod.Annotations = map[string]string{}
	}
	pod.Annotations[terminatingAnnotation] = "true"
	return pod
}
