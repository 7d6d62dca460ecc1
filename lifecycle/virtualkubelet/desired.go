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

// terminatingAnnotation marks the copies of terminating pods that [Provider.GetPod] returns. When the API
// server no longer has a pod, virtual-kubelet passes such a copy to DeletePod, which recognizes it by
// the annotation. It also lets virtual-kubelet see that a new pod of the same name differs.
const terminatingAnnotation = "virtualkubelet.kubegrace.dev/terminating"

// desired is what virtual-kubelet has requested for a pod. The record's mutex guards it.
type desired struct {
	pod          *v1.Pod           // from the last call; replaced, never modified
	adopted      bool              // adopted, and a deletion may predate this process
	deletionSeen bool              // a pod with a deletionTimestamp was seen
	deleted      bool              // forget the pod once virtual-kubelet has the final status
	annotations  map[string]string // set by the author; nil: none
	superseded   bool              // a newer pod has the name: virtual-kubelet gets no more statuses
}

// update replaces the pod with one that is not deleted.
func (d *desired) update(pod *v1.Pod) {
	d.replace(pod)
	d.adopted = false
}

// replace replaces the pod but keeps its UID if the new one has none.
func (d *desired) replace(pod *v1.Pod) {
	uid := d.pod.UID
	d.pod = pod.DeepCopy()
	d.pod.UID = cmp.Or(pod.UID, uid)
}

// annotate keeps the annotations that the author has added or changed.
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

func (d *desired) supersede() { d.superseded, d.deleted = true, true }

// markDeleted marks the pod as deleted. It returns the grace period in seconds that overrides the pod's
// own, or nil.
func (d *desired) markDeleted(pod *v1.Pod, terminating bool) (override *int64) {
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

// forcedGrace returns the grace period for a pod that the API server no longer has: 1 s if a deletion
// was seen before, because the pod was then deleted by force, and otherwise nil, the pod's own.
func (d *desired) forcedGrace() *int64 {
	if d.deletionSeen {
		return ptr.To(graceperiod.MinimumPodSeconds)
	}
	return nil
}

// update replaces the pod's metadata and spec, and reports whether its termination has begun. A pod that
// a PodRuntime has listed without a spec gets its containers here.
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

// supersede records that a newer pod has the name. It returns the grace period in seconds that overrides
// the pod's own, or nil.
func (r *record) supersede() (override *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.desired.supersede()
	r.notifier.wake()
	return r.desired.forcedGrace()
}

// markDeleted marks the pod as deleted. It returns the grace period in seconds that overrides the pod's
// own, or nil.
func (r *record) markDeleted(pod *v1.Pod) (override *int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	override = r.desired.markDeleted(pod, r.ending.terminating)
	if r.ending.finalSent {
		r.notifier.wake() // to forget the pod
	}
	return override
}

// addKill counts a KillPod, which keeps the pod from being forgotten until removeKill. set modifies the
// final status. addKill returns false if the pod has been forgotten.
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

// removeKill undoes addKill.
func (r *record) removeKill() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.ending.kills--
	r.notifier.wake() // the pod may now be forgotten
}

// awaitFinal waits for the final status of a pod whose containers have been stopped: its start or
// ContainerEnded may return a little later. It returns nil if ctx ends first.
func (r *record) awaitFinal(ctx context.Context) *v1.PodStatus {
	select {
	case <-r.ended:
		return r.final()
	case <-ctx.Done():
		return nil
	}
}
