package virtualkubelet

import (
	"cmp"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// terminatingAnnotation marks the copies of terminating pods that [Provider.GetPod] returns. When the API
// server no longer has a pod, virtual-kubelet passes such a copy to DeletePod, which must tell it from a pod
// of the API server. The annotation also makes the copy differ from a new pod with the same name, so that
// virtual-kubelet notices the new one.
const terminatingAnnotation = "virtualkubelet.kubegrace.dev/terminating"

// desired has what virtual-kubelet has requested for a pod. The managedPod's mutex guards it.
type desired struct {
	pod              *v1.Pod           // from the last call; it is replaced, never modified
	deletionMayBeOld bool              // the pod is from a previous agent, and its deletion may be older than this process
	deletionSeen     bool              // DeletePod was called with a deletionTimestamp: the pod was deleted at the API server
	deleted          bool              // the provider forgets the pod once virtual-kubelet has the final status
	annotations      map[string]string // set by the embedder's callbacks; nil: none
	superseded       bool              // a newer pod has the name: virtual-kubelet gets no more statuses of this one
}

// replace replaces the pod but keeps its UID if the new one has none.
func (d *desired) replace(pod *v1.Pod) {
	uid := d.pod.UID
	d.pod = pod.DeepCopy()
	d.pod.UID = cmp.Or(pod.UID, uid)
}

// keepAnnotations keeps the annotations that a callback of the embedder, Options.Status or Create of the PodRuntime,
// has added or changed, for all later copies of the pod. before and after are the pod's annotations before and after
// the callback.
func (d *desired) keepAnnotations(before, after map[string]string) {
	for key, value := range after {
		if oldValue, hadKey := before[key]; hadKey && oldValue == value {
			continue
		}
		if d.annotations == nil {
			d.annotations = map[string]string{}
		}
		d.annotations[key] = value
	}
}

// copy returns a copy of the pod with the annotations that the embedder's callbacks have set (keepAnnotations): d.pod comes from
// virtual-kubelet and lacks them.
func (d *desired) copy() *v1.Pod {
	pod := d.pod.DeepCopy()
	if pod.Annotations == nil {
		pod.Annotations = maps.Clone(d.annotations)
	} else {
		maps.Copy(pod.Annotations, d.annotations)
	}
	return pod
}

// forcedGrace returns the grace period for a pod that has vanished from the API server while it runs. If its
// deletion was seen before, somebody has since deleted the pod by force, and it gets 1 s. Otherwise the result is nil:
// the pod keeps its own.
func (d *desired) forcedGrace() *int64 {
	if d.deletionSeen {
		return ptr.To(graceperiod.MinimumPodSeconds)
	}
	return nil
}

// update replaces the pod's metadata and spec, and reports whether its termination has begun. The call shows that the
// pod was not deleted before this process began, so a later deletion has its full grace period.
func (m *managedPod) update(pod *v1.Pod) (isTerminating bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.desired.replace(pod)
	m.desired.deletionMayBeOld = false
	if !m.ending.terminating {
		m.workload.setSpec(&m.desired.pod.Spec)
	}
	return m.ending.terminating
}

// supersede records that a newer pod has the name of this one. virtual-kubelet then knows only the newer one: it gets no more
// statuses of this one and cannot delete it, so the provider forgets this one once it has ended. supersede returns the grace
// period in seconds that replaces the pod's own; nil: the pod's own.
func (m *managedPod) supersede() (override *int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.desired.superseded, m.desired.deleted = true, true
	m.wakeSender()
	return m.desired.forcedGrace()
}

// markDeleted records a call of DeletePod with this pod, whose termination may already be in progress. It returns the
// grace period in seconds that replaces the pod's own; nil: the pod's own. A pod whose final status was sent is now
// forgotten. There are three cases:
//
//   - The pod is terminating, and the API server no longer has it. virtual-kubelet then passes a copy that GetPod or
//     GetPods returned, which the terminatingAnnotation marks. forcedGrace decides.
//   - The pod is from a previous agent, and its deletion may be older than this process (deletionMayBeOld): it gets only
//     the rest of its grace period.
//   - Any other pod keeps its own grace period.
func (m *managedPod) markDeleted(pod *v1.Pod) (override *int64) {
	m.mu.Lock()
	defer m.mu.Unlock()
	d := &m.desired
	d.deleted = true
	if m.ending.finalSent {
		m.wakeSender() // its goroutine forgets the pod
	}
	if _, isCopy := pod.Annotations[terminatingAnnotation]; isCopy && m.ending.terminating {
		return d.forcedGrace()
	}
	if d.deletionMayBeOld {
		override = ptr.To(graceperiod.LeftOfDeletion(pod, time.Now()))
	}
	d.replace(pod)
	d.deletionSeen = d.deletionSeen || pod.DeletionTimestamp != nil
	return override
}
