package virtualkubelet

import (
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container is one container of a pod. The managedPod's mutex guards the fields that change.
type container struct {
	spec   *v1.Container
	isInit bool
	id     string
	state  v1.ContainerState // empty: not started
	// awaitsContainerEnded is set while the run is known to have ended, but ContainerEnded has not succeeded for it.
	awaitsContainerEnded bool
	exited               chan struct{}                // closed by markTerminated: the container has ended and will not restart
	reported             *v1.ContainerStatus          // the status from the PodRuntime's last list; nil: it has none
	lastEnd              *v1.ContainerStateTerminated // the end of the previous run; nil: none
	restartCount         int32
	restarting           bool          // waiting for a restart
	restartAt            time.Time     // the end of the back-off; valid while restarting
	pause                time.Duration // the back-off of the next restart to be scheduled
}

// isSidecar reports whether c is a restartable init container (KEP-753).
func (c *container) isSidecar() bool {
	return c.isInit && c.spec.RestartPolicy != nil && *c.spec.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// isPlainInit reports whether c is an init container that must succeed before the next container starts.
func (c *container) isPlainInit() bool { return c.isInit && !c.isSidecar() }

func (c *container) isRunning() bool { return c.state.Running != nil }

// wasStarted reports whether this agent or a previous one has tried to start c.
func (c *container) wasStarted() bool { return c.state != v1.ContainerState{} }

// markRunning records that a new run of c has begun.
func (c *container) markRunning(id string, startedAt metav1.Time) {
	c.id, c.awaitsContainerEnded, c.restarting = id, false, false
	c.state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: startedAt}}
}

// markTerminated records the final end of a container, even of one that was never started. The first end that is recorded
// stays: later calls have no effect.
func (c *container) markTerminated(end v1.ContainerStateTerminated) {
	if c.state.Terminated != nil {
		return
	}
	c.state = v1.ContainerState{Terminated: c.endedWith(end)}
	c.awaitsContainerEnded, c.restarting = false, false
	close(c.exited)
}

// endedWith completes end, the terminated state of a run that ends now, with the run's ID and times. An end with
// a FinishedAt comes from an earlier agent and is complete.
func (c *container) endedWith(end v1.ContainerStateTerminated) *v1.ContainerStateTerminated {
	if !end.FinishedAt.IsZero() {
		return &end
	}
	end.FinishedAt = metav1.Now()
	if c.id != "" {
		end.ContainerID = statusID(c.id)
	}
	if c.isRunning() {
		end.StartedAt = c.state.Running.StartedAt
	}
	return &end
}

// adoptStatus takes the ID and restart count from the status that a previous agent has written, and returns the
// state of the container's last run in it: running, terminated, or empty if it was never started.
func (c *container) adoptStatus(status *v1.ContainerStatus) (lastState v1.ContainerState) {
	_, c.id, _ = strings.Cut(status.ContainerID, "://")
	c.restartCount = status.RestartCount
	if status.State.Terminated == nil && status.State.Running == nil {
		return status.LastTerminationState
	}
	return status.State
}

// lastRun is what is known of the last run of a container that a previous agent has started.
type lastRun struct {
	listedID *string           // the ID of the run if the runtime lists it, so that it is running; nil: it is not listed
	state    v1.ContainerState // from the pod's status; empty: the status has no run
}

// exists reports whether the container was started at all.
func (r lastRun) exists() bool { return r.listedID != nil || r.state != v1.ContainerState{} }

// adopt sets the state of a container after its last run. If the run is not listed, the container restarts if mayRestart is true
// and its restart policy says so; otherwise it has ended for good. If the status has no end of the run, the exit code is unknown.
func (c *container) adopt(pod *v1.Pod, last lastRun, mayRestart bool) {
	end := unknownEnd()
	if last.state.Terminated != nil {
		end = *last.state.Terminated.DeepCopy()
	}
	switch {
	case last.listedID != nil && last.state.Running != nil:
		c.markRunning(*last.listedID, last.state.Running.StartedAt)
	case last.listedID != nil:
		c.markRunning(*last.listedID, metav1.Now())
	case mayRestart && c.restartsAfter(pod, end):
		c.markRestarting(pod, end)
	default:
		c.markTerminated(end)
	}
}

// letsLaterRestart reports whether the containers after c in the spec may restart: a plain init container must succeed first, and
// a sidecar must not have failed for good.
func (c *container) letsLaterRestart() bool {
	if c.state.Terminated != nil {
		return !c.isInit || c.state.Terminated.ExitCode == 0
	}
	return !c.isPlainInit()
}

// status returns the container's status for the API server. A container that has not started has an empty state,
// which the API defines as waiting. An explicit waiting state would trigger virtual-kubelet#989: a pod that is
// deleted while its init containers run would vanish from the API server without a call of DeletePod.
func (c *container) status() v1.ContainerStatus {
	running := c.isRunning()
	if c.reported != nil { // a PodRuntime has listed this status; only its state may be out of date
		status := *c.reported.DeepCopy()
		status.State = *c.state.DeepCopy()
		status.Ready = status.Ready && (running || c.isInit)
		return status
	}
	hasSucceeded := c.state.Terminated != nil && c.state.Terminated.ExitCode == 0
	status := v1.ContainerStatus{
		Name: c.spec.Name, Image: c.spec.Image,
		State: *c.state.DeepCopy(), Started: &running, RestartCount: c.restartCount,
		Ready: running || c.isInit && hasSucceeded,
	}
	if c.id != "" {
		status.ContainerID = statusID(c.id)
	}
	wasRestarted := c.lastEnd != nil && c.restartCount > 0
	if wasRestarted || c.restarting {
		status.LastTerminationState.Terminated = c.lastEnd.DeepCopy()
	}
	return status
}

// stateByPhase derives a container's state from its pod's phase, for a PodRuntime that reports no container states.
func (c *container) stateByPhase(status *v1.PodStatus) (state v1.ContainerState) {
	unknown, succeeded := unknownEnd(), exitedWith(0)
	isPastInit := status.Phase == v1.PodRunning && c.isPlainInit() // it has succeeded, or the pod would be Pending
	switch {
	case status.Phase == v1.PodSucceeded || isPastInit:
		state.Terminated = &succeeded
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
