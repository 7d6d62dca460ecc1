package virtualkubelet

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// record is what the provider knows of one pod. What stands above the mutex
// does not change.
type record struct {
	agent    *agent
	key      types.UID
	name     types.NamespacedName
	ctx      context.Context // the values of the call that brought the pod; it never ends
	created  metav1.Time
	deleting chan struct{} // closed once it is terminating
	ended    chan struct{} // closed once the status is final
	ender    *ender
	teller   *teller

	mu         sync.Mutex // never held while anything blocks, nor while others are called
	orders     orders
	containers containers
	ending     ending
}

// newRecord makes the record of a pod that has not started. It is not in the table.
func newRecord(ctx context.Context, a *agent, pod *v1.Pod) *record {
	pod = pod.DeepCopy()
	r := &record{
		agent: a, key: keyOf(pod), name: nameOf(pod), ctx: context.WithoutCancel(ctx),
		created:  metav1.Now(),
		deleting: make(chan struct{}), ended: make(chan struct{}),
		orders: orders{pod: pod}, containers: newContainers(&pod.Spec),
	}
	r.ender = &ender{record: r, turn: make(chan struct{}, 1)}
	r.teller = &teller{record: r, changed: make(chan struct{}, 1)}
	return r
}

// isDeleting tells whether the termination has begun.
func (r *record) isDeleting() bool {
	select {
	case <-r.deleting:
		return true
	default:
		return false
	}
}

// up notes that a container runs.
func (r *record) up(c *container, id string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.up(id, metav1.Now())
	r.containers.refresh()
	r.teller.wake()
}

// down notes the end of a container.
func (r *record) down(c *container, end v1.ContainerStateTerminated) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.down(end)
	r.containers.refresh()
	r.teller.wake()
}

// lose notes that a container was perhaps started.
func (r *record) lose(c *container) {
	r.mu.Lock()
	defer r.mu.Unlock()
	c.lost = true
}

// containerOf finds a container by its ID, nil if it has none.
func (r *record) containerOf(id string) *container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers.withID(id)
}

// running are the containers that run; never nil.
func (r *record) running() []lifecycle.Container {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.containers.running()
}

// overByItself tells whether the pod has nothing more to do, though nobody has ended it.
func (r *record) overByItself() bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ending.begun && !r.ending.starting && !r.containers.regularRuns()
}

// final is the final status, nil before it is there. It does not change.
func (r *record) final() *v1.PodStatus {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ending.final
}

// view is a copy of the pod with its status of now.
func (r *record) view() *v1.Pod {
	r.mu.Lock()
	pod, final := r.copyLocked(), r.ending.final != nil
	r.mu.Unlock()
	return r.agent.complete(pod, final)
}

// copyLocked is a copy of the pod with what is known of its status.
func (r *record) copyLocked() *v1.Pod {
	pod := r.orders.pod.DeepCopy()
	if r.ending.final != nil {
		r.ending.final.DeepCopyInto(&pod.Status)
		return pod
	}
	if pod.Status.StartTime == nil {
		pod.Status.StartTime = &r.created
	}
	r.containers.write(pod, r.ending.settling)
	return pod
}

// complete adds what only the author knows; a final status has it.
func (a *agent) complete(pod *v1.Pod, final bool) *v1.Pod {
	if !final && a.opts.Status != nil {
		a.opts.Status(pod)
	}
	return pod
}
