package virtualkubelet

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container is one container of a pod. The record's mutex guards the fields that change.
type container struct {
	spec       *v1.Container
	init       bool // an init container
	id         string
	state      v1.ContainerState            // empty: not started
	failed     failures                     // of the starts; only the start uses it
	gone       bool                         // this run has ended, but ContainerEnded has not returned
	exited     chan struct{}                // closed once the container has ended and will not restart
	reported   *v1.ContainerStatus          // from the PodRuntime; nil: none
	last       *v1.ContainerStateTerminated // the end of the previous run; nil: none
	restarted  int32                        // number of restarts
	restarting bool                         // waiting for a restart
	restartAt  time.Time
	pause      time.Duration // back-off of the next restart
}

// sidecar reports whether c is a restartable init container (KEP-753).
func (c *container) sidecar() bool {
	return c.init && c.spec.RestartPolicy != nil && *c.spec.RestartPolicy == v1.ContainerRestartPolicyAlways
}

func (c *container) running() bool { return c.state.Running != nil }

func (c *container) markRunning(id string, since metav1.Time) {
	c.id, c.gone, c.restarting = id, false, false
	c.state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: since}}
}

// markTerminated records the final end of a container, which may never have started. Only the first call
// has an effect.
func (c *container) markTerminated(end v1.ContainerStateTerminated) {
	if c.state.Terminated != nil {
		return
	}
	c.state, c.restarting = v1.ContainerState{Terminated: c.endedWith(end)}, false
	close(c.exited)
}

// endedWith fills in the ID and times of a run that ends now. An end with a FinishedAt is unchanged.
func (c *container) endedWith(end v1.ContainerStateTerminated) *v1.ContainerStateTerminated {
	if !end.FinishedAt.IsZero() {
		return &end
	}
	end.FinishedAt = metav1.Now()
	if c.id != "" {
		end.ContainerID = statusID(c.id)
	}
	if c.running() {
		end.StartedAt = c.state.Running.StartedAt
	}
	return &end
}

// adoptStatus reads the status of an adopted container and returns the state of its last run. The state
// is empty if the container was never started.
func (c *container) adoptStatus(status *v1.ContainerStatus) (last v1.ContainerState) {
	_, c.id, _ = strings.Cut(status.ContainerID, "://")
	c.restarted = status.RestartCount
	if status.State.Terminated == nil && status.State.Running == nil {
		return status.LastTerminationState
	}
	return status.State
}

// adopt sets the state of an adopted container. id is nil if it is not running; last is the state of its
// last run.
func (c *container) adopt(id *string, mayRestart bool, pod *v1.Pod, last v1.ContainerState) {
	end := unknownEnd()
	if last.Terminated != nil {
		end = *last.Terminated.DeepCopy()
	}
	switch {
	case id != nil && last.Running != nil:
		c.markRunning(*id, last.Running.StartedAt)
	case id != nil:
		c.markRunning(*id, metav1.Now())
	case mayRestart && c.restarts(pod, end) && (!c.init || c.sidecar()):
		c.markRestarting(pod, end)
	default:
		c.markTerminated(end)
	}
}

// status returns the container's status. The state of a container that has not started is empty, which
// the API defines as waiting. With an explicit waiting state virtual-kubelet would remove a deleted pod
// from the API server while its init containers run, without calling the provider (virtual-kubelet#989).
func (c *container) status() v1.ContainerStatus {
	running := c.running()
	if c.reported != nil {
		status := *c.reported.DeepCopy()
		status.State = *c.state.DeepCopy()
		status.Ready = status.Ready && (running || c.init)
		return status
	}
	status := v1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image,
		State: *c.state.DeepCopy(), Started: &running, RestartCount: c.restarted,
		Ready: running || c.init && c.state.Terminated != nil && c.state.Terminated.ExitCode == 0,
	}
	if c.id != "" {
		status.ContainerID = statusID(c.id)
	}
	if c.last != nil && c.restarted > 0 || c.restarting {
		status.LastTerminationState.Terminated = c.last.DeepCopy()
	}
	return status
}

// stateByPhase derives a container's state from its pod's phase, for a PodRuntime that reports no more.
func (c *container) stateByPhase(status *v1.PodStatus) (state v1.ContainerState) {
	unknown, done := unknownEnd(), exitedWith(0)
	switch {
	case status.Phase == v1.PodSucceeded, status.Phase == v1.PodRunning && c.init && !c.sidecar():
		state.Terminated = &done
	case status.Phase == v1.PodFailed:
		state.Terminated = &unknown
	case status.Phase == v1.PodRunning:
		state.Running = &v1.ContainerStateRunning{}
		if status.StartTime != nil {
			state.Running.StartedAt = *status.StartTime
		}
	}
	return state
}
