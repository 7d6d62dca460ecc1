package virtualkubelet

import (
	"cmp"
	"context"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// terminatingAnnotation is on the copies that [Provider.GetPod] returns of terminating
// pods. When the API server no longer has a pod, virtual-kubelet passes such a copy to
// DeletePod, which recognizes it by the annotation. The annotation also makes
// virtual-kubelet see that a new pod of the same name differs.
const terminatingAnnotation = "virtualkubelet.kubegrace.dev/terminating"

// desired is what virtual-kubelet has requested for a pod. The record's mutex guards it.
type desired struct {
	pod          *v1.Pod           // as of the last call; replaced and never modified
	adopted      bool              // adopted and not seen without a deletion since, so a deletion may be an old one
	deletionSeen bool              // a deletion with a deletionTimestamp was seen
	deleted      bool              // to be forgotten once virtual-kubelet has the final status
	annotations  map[string]string // that the author has put on the pod; nil: none
	superseded   bool              // a newer pod has the name: virtual-kubelet gets no more statuses
}

// update replaces the pod by one that is not deleted.
func (d *desired) update(pod *v1.Pod) {
	d.replace(pod)
	d.adopted = false
}

// replace replaces the pod, which keeps its UID if the other has none.
func (d *desired) replace(pod *v1.Pod) {
	uid := d.pod.UID
	d.pod = pod.DeepCopy()
	d.pod.UID = cmp.Or(pod.UID, uid)
}

// annotate keeps the annotations that the author has put on a copy of the pod, which had others.
func (d *desired) annotate(before, after map[string]string) {
	for key, value := range after {
		if old, had := before[key]; had && old == value {
			continue
		}
		if d.annotations == nil {
			d.annotations = map[string]string{}
		}
		d.annotations[key] = value
	}
}

// copy returns a copy of the pod with the annotations of the author.
func (d *desired) copy() *v1.Pod {
	pod := d.pod.DeepCopy()
	if pod.Annotations == nil {
		pod.Annotations = maps.Clone(d.annotations)
	} else {
		maps.Copy(pod.Annotations, d.annotations)
	}
	return pod
}

// supersede marks that a newer pod has the name.
func (d *desired) supersede() { d.superseded, d.deleted = true, true }

// remove marks the pod as deleted and returns the grace period in seconds that replaces
// the pod's own; nil means that none does. terminating reports whether its termination has
// begun.
func (d *desired) remove(pod *v1.Pod, terminating bool) (override *int64) {
	d.deleted = true
	if _, isCopy := pod.Annotations[terminatingAnnotation]; isCopy && terminating {
		return d.forcedGrace()
	}
	if d.adopted {
		override = ptr.To(graceperiod.LeftOfDeletion(pod, time.Now()))
	}
	d.replace(pod)
	d.deletionSeen = d.deletionSeen || pod.DeletionTimestamp != nil
	return override
}

// forcedGrace returns the grace period of a pod that the API server no longer has. If a
// deletion was seen before, a second one has forced it: 1 s. Otherwise it is nil, which
// means the pod's own.
func (d *desired) forcedGrace() *int64 {
	if d.deletionSeen {
		return ptr.To(graceperiod.MinimumPodSeconds)
	}
	return nil
}

// update replaces the pod's metadata and spec, and reports whether its termination has begun. A pod
// that the pod runtime has listed without a spec has containers from now on.
func (r *record) update(pod *v1.Pod) (isTerminating bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.desired.update(pod)
	w := r.whole()
	if w == nil || len(r.containers.all) > 0 || r.ending.terminating {
		return r.ending.terminating
	}
	if r.containers = newContainers(&r.desired.pod.Spec); w.status != nil {
		r.containers.observe(w.status)
	}
	r.notifier.wake()
	return false
}

// supersede marks that a newer pod has the name. It returns the grace period in seconds
// that replaces the pod's own; nil means that none does.
func (r *record) supersede() (override *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.desired.supersede()
	r.notifier.wake()
	return r.desired.forcedGrace()
}

// remove marks the pod as deleted. It returns the grace period in seconds that replaces
// the pod's own; nil means that none does.
func (r *record) remove(pod *v1.Pod) (override *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	override = r.desired.remove(pod, r.ending.terminating)
	if r.ending.finalSent {
		r.notifier.wake() // so that it forgets the pod
	}
	return override
}

// addKill counts a KillPod, which keeps the pod known until removeKill, and sets the
// function that modifies the final status. It returns false if the pod has been
// forgotten.
func (r *record) addKill(set func(*v1.PodStatus)) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ending.forgotten {
		return false
	}
	r.ending.kills++
	if set != nil {
		r.ending.setStatus = set
	}
	return true
}

// removeKill ends what addKill began.
func (r *record) removeKill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending.kills--
	r.notifier.wake() // the pod may now be forgotten
}

// awaitFinal waits for the final status of a pod whose containers have been stopped: its
// start or the report of an exit may end a moment later. It returns nil if ctx ends
// first.
func (r *record) awaitFinal(ctx context.Context) *v1.PodStatus {
	select {
	case <-r.ended:
		return r.final()
	case <-ctx.Done():
		return nil
	}
}
