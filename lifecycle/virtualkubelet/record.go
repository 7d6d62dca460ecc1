package virtualkubelet

import (
	"context"
	"slices"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// record is what the provider knows of one pod. Its fields down to the channels do
// not change; the provider's mutex guards the others, but for termination.
type record struct {
	key      types.UID
	name     types.NamespacedName
	ctx      context.Context // the values of the call that brought the pod; it never ends
	created  metav1.Time
	turn     chan struct{} // a place of one: terminating and forgetting take turns
	changed  chan struct{} // holds one: there is news for virtual-kubelet
	deleting chan struct{} // closed once it is terminating
	ended    chan struct{} // closed once the status is final

	termination *lifecycle.Termination // the last one, which belongs to whose turn it is; nil: none has begun

	pod        *v1.Pod // as virtual-kubelet gave it last; replaced, never changed
	containers []*container
	starting   bool // its start has not ended
	ready      bool
	readySince metav1.Time

	adopted     bool                // and not known to have been alive since: its deletion may be an old one
	announced   bool                // it was deleted with a deletionTimestamp
	deleted     bool                // it is to be forgotten once virtual-kubelet knows of its end
	superseded  bool                // a newer pod has its name: virtual-kubelet is told nothing any more
	terminating bool                // its termination has begun, or is about to
	kills       int                 // calls of KillPod, during which it is not forgotten
	setStatus   func(*v1.PodStatus) // of the last kill; nil: there was none
	settled     bool                // a termination has ended, and exits are known
	stuck       error               // why containers run all the same
	settling    bool                // the status is being made final
	final       *v1.PodStatus       // not changed once ended is closed; nil: it is not final
	told        bool                // virtual-kubelet has heard of that
	forgotten   bool
}

// keyOf is how a pod is known, as package lifecycle does: by its UID, or by its
// namespace and name where it has none.
func keyOf(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(nameOf(pod).String())
}

func nameOf(pod *v1.Pod) types.NamespacedName {
	return types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}
}

// newRecord makes the record of a pod that has not started.
func newRecord(ctx context.Context, pod *v1.Pod) *record {
	r := &record{
		key: keyOf(pod), name: nameOf(pod), ctx: context.WithoutCancel(ctx),
		created: metav1.Now(), readySince: metav1.Now(),
		turn: make(chan struct{}, 1), changed: make(chan struct{}, 1),
		deleting: make(chan struct{}), ended: make(chan struct{}),
		pod: pod.DeepCopy(),
	}
	spec := r.pod.Spec
	for i := range spec.InitContainers {
		r.containers = append(r.containers, &container{spec: &spec.InitContainers[i], init: true, exited: make(chan struct{})})
	}
	for i := range spec.Containers {
		r.containers = append(r.containers, &container{spec: &spec.Containers[i], exited: make(chan struct{})})
	}
	return r
}

// changeLocked notes that a state has changed, and that there is news.
func (r *record) changeLocked() {
	if ready := r.allReadyLocked(); ready != r.ready {
		r.ready, r.readySince = ready, metav1.Now()
	}
	r.wakeLocked()
}

// wakeLocked wakes the one who tells virtual-kubelet.
func (r *record) wakeLocked() {
	select {
	case r.changed <- struct{}{}:
	default:
	}
}

// allReadyLocked tells whether all regular containers and sidecars run.
func (r *record) allReadyLocked() bool {
	return !slices.ContainsFunc(r.containers, func(c *container) bool {
		return (!c.init || c.sidecar()) && c.state.Running == nil
	})
}

// runningLocked are the containers that run; never nil.
func (r *record) runningLocked() []lifecycle.Container {
	running := []lifecycle.Container{}
	for _, c := range r.containers {
		if c.state.Running != nil {
			running = append(running, lifecycle.Container{Name: c.spec.Name, ID: c.id, PreStopDone: c.preStopDone})
		}
	}
	return running
}

// doneLocked tells whether the pod is over by itself: its start has ended, and no
// regular container runs.
func (r *record) doneLocked() bool {
	return !r.starting && !slices.ContainsFunc(r.containers, func(c *container) bool { return !c.init && c.state.Running != nil })
}
