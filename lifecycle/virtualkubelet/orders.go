package virtualkubelet

import (
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// handedBack marks the copies of pods that [Provider.GetPod] gives while they are
// being terminated. virtual-kubelet hands such a copy to DeletePod when the API server
// has the pod no more, and finds by the mark that a new pod of the name is another.
const handedBack = "virtualkubelet.kubegrace.dev/terminating"

// orders are what virtual-kubelet has said of a pod. The mutex of the record guards
// them.
type orders struct {
	pod        *v1.Pod // as it was given last; replaced, never changed
	adopted    bool    // and not known to have been alive since: its deletion may be an old one
	announced  bool    // it was deleted with a deletionTimestamp
	deleted    bool    // it is to be forgotten once virtual-kubelet knows of its end
	superseded bool    // a newer pod has its name: virtual-kubelet is told nothing any more
}

// show notes that a pod was given that is not being deleted.
func (o *orders) show(pod *v1.Pod) { o.pod, o.adopted = pod.DeepCopy(), false }

// supersede notes that a newer pod has the name.
func (o *orders) supersede() { o.superseded, o.deleted = true, true }

// remove notes that the pod was deleted, and gives the grace in seconds that overrides
// its own; nil: none does. terminating tells whether its termination has begun.
func (o *orders) remove(pod *v1.Pod, terminating bool) (override *int64) {
	o.deleted = true
	if _, marked := pod.Annotations[handedBack]; marked && terminating {
		return o.forced()
	}
	if o.adopted {
		override = ptr.To(graceperiod.LeftOfDeletion(pod, time.Now()))
	}
	o.pod = pod.DeepCopy()
	o.announced = o.announced || pod.DeletionTimestamp != nil
	return override
}

// forced is the grace of a pod that the API server has no more: 1 s if its deletion was
// announced, for then it was hurried by force, else nil: its own.
func (o *orders) forced() *int64 {
	if o.announced {
		return ptr.To(graceperiod.MinimumPodSeconds)
	}
	return nil
}
