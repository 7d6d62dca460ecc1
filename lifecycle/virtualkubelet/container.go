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
	init       bool // it is in spec.initContainers
	id         string
	state      v1.ContainerState            // empty: not started
	gone       bool                         // this run has ended, which is still to be told
	exited     chan struct{}                // closed once it has ended for good
	reported   *v1.ContainerStatus          // by the pod runtime; nil: it reports nothing of it
	last       *v1.ContainerStateTerminated // the end of the run before; nil: there was none
	restarted  int32                        // how often
	restarting bool                         // it is to be started again
	againAt    time.Time                    // when
	pause      time.Duration                // the back-off of the next restart
}

// sidecar reports whether it is a restartable init container (KEP-753).
func (c *container) sidecar() bool {
	return c.init && c.spec.RestartPolicy != nil && *c.spec.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// running reports whether it has started and not terminated.
func (c *container) running() bool { return c.state.Running != nil }

// markRunning sets the state running.
func (c *container) markRunning(id string, since metav1.Time) {
	c.id, c.gone, c.restarting = id, false, false
	c.state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: since}}
}

// markTerminated sets the state terminated for good, also for a container that will never start.
// Only the first call has an effect.
func (c *container) markTerminated(end v1.ContainerStateTerminated) {
	if c.state.Terminated != nil {
		return
	}
	c.state, c.restarting = v1.ContainerState{Terminated: c.endedWith(end)}, false
	close(c.exited)
}

// endedWith completes the state of a run that ends now; one that has ended before stays.
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

// adoptStatus takes over what the status of an adopted container says of its last run, and returns
// the state of that; none if it has not been started.
func (c *container) adoptStatus(status *v1.ContainerStatus) (last v1.ContainerState) {
	_, c.id, _ = strings.Cut(status.ContainerID, "://")
	c.restarted = status.RestartCount
	if status.State.Terminated == nil && status.State.Running == nil {
		return status.LastTerminationState
	}
	return status.State
}

// adopt sets the state of an adopted container. id is its ID if it runs, and nil otherwise; last
// is the state of its status. mayRestart says that it may be started again.
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
		c.markAgain(pod, end)
	default:
		c.markTerminated(end)
	}
}

// status returns the container's status. A container that has not started has the empty
// state, which the API defines as waiting. virtual-kubelet does not take the empty state
// for terminated: otherwise it would remove a deleted pod from the API server, without
// asking the provider, while init containers run (virtual-kubelet#989).
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

// byPhase returns the state of a container of which only the phase of its pod is known.
func (c *container) byPhase(status *v1.PodStatus) (state v1.ContainerState) {
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
