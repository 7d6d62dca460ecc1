package virtualkubelet

import (
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
	pod          *v1.Pod // as of the last call; replaced and never modified
	adopted      bool    // adopted and not seen without a deletion since, so a deletion may be an old one
	deletionSeen bool    // a deletion with a deletionTimestamp was seen
	deleted      bool    // to be forgotten once virtual-kubelet has the final status
	superseded   bool    // a newer pod has the name: virtual-kubelet gets no more statuses
}

// update replaces the pod by one that is not deleted.
func (d *desired) update(pod *v1.Pod) { d.pod, d.adopted = pod.DeepCopy(), false }

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
	d.pod = pod.DeepCopy()
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
