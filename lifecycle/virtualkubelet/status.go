package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// The kubelet's words for the end of a container.
const (
	reasonCompleted  = "Completed"
	reasonError      = "Error"
	reasonStartError = "StartError"
	reasonUnknown    = "ContainerStatusUnknown"
	messageUnknown   = "The container could not be located when the pod was terminated"

	exitStartError int32 = 128
	exitUnknown    int32 = 137
)

// exitedWith is the end of a container whose exit code is known.
func exitedWith(code int32) v1.ContainerStateTerminated {
	if code == 0 {
		return v1.ContainerStateTerminated{Reason: reasonCompleted}
	}
	return v1.ContainerStateTerminated{ExitCode: code, Reason: reasonError}
}

// notStarted is the end of a container that could not be started.
func notStarted(err error) v1.ContainerStateTerminated {
	return v1.ContainerStateTerminated{ExitCode: exitStartError, Reason: reasonStartError, Message: err.Error()}
}

// unknownEnd is the end of a container of which nobody can tell it.
func unknownEnd() v1.ContainerStateTerminated {
	return v1.ContainerStateTerminated{ExitCode: exitUnknown, Reason: reasonUnknown, Message: messageUnknown}
}

// view is a copy of a pod with its status of now.
func (p *Provider) view(r *record) *v1.Pod {
	p.mu.Lock()
	pod, final := r.copyLocked(), r.final != nil
	p.mu.Unlock()
	return p.complete(pod, final)
}

// copyLocked is a copy of a pod with what is known of its status.
func (r *record) copyLocked() *v1.Pod {
	pod := r.pod.DeepCopy()
	if r.final != nil {
		r.final.DeepCopyInto(&pod.Status)
	} else {
		r.writeStatusLocked(&pod.Status)
	}
	return pod
}

// complete adds what only the author knows; a final status has it.
func (p *Provider) complete(pod *v1.Pod, final bool) *v1.Pod {
	if !final && p.opts.Status != nil {
		p.opts.Status(pod)
	}
	return pod
}

// writeStatusLocked writes what is known into a status; the rest of it stays.
func (r *record) writeStatusLocked(status *v1.PodStatus) {
	status.Phase = r.phaseLocked()
	status.ObservedGeneration = r.pod.Generation
	if status.StartTime == nil {
		status.StartTime = &r.created
	}
	status.InitContainerStatuses, status.ContainerStatuses = nil, nil
	for _, c := range r.containers {
		if c.init {
			status.InitContainerStatuses = append(status.InitContainerStatuses, c.statusLocked())
		} else {
			status.ContainerStatuses = append(status.ContainerStatuses, c.statusLocked())
		}
	}
	r.writeConditionsLocked(status)
}

// statusLocked is the status of a container. One that has not started has the empty
// state, which the API defines as waiting, and in which virtual-kubelet does not see
// the end of the container: it would remove a deleted pod without asking its
// provider while init containers run (virtual-kubelet#989).
func (c *container) statusLocked() v1.ContainerStatus {
	running := c.state.Running != nil
	status := v1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image,
		State: *c.state.DeepCopy(), Started: &running,
		Ready: running || c.init && c.state.Terminated != nil && c.state.Terminated.ExitCode == 0,
	}
	if c.id != "" {
		status.ContainerID = statusID(c.id)
	}
	return status
}

// statusID is a container ID as statuses have it; [lifecycle.ContainersOf] reads it.
func statusID(id string) string { return "virtual-kubelet://" + id }

// unknownLocked gives those containers an unknown end that have none.
func (r *record) unknownLocked() {
	for _, c := range r.containers {
		c.downLocked(unknownEnd())
	}
	r.ready, r.readySince = false, metav1.Now()
}
