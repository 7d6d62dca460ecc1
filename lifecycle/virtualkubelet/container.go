package virtualkubelet

import (
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container is one container of a pod. The mutex of the record guards what changes.
type container struct {
	spec        *v1.Container
	init        bool // it is of spec.initContainers
	id          string
	preStopDone bool
	state       v1.ContainerState // empty: it has not started
	lost        bool              // its start was cancelled, and has not said whether it runs
	exited      chan struct{}     // closed once the state is terminated
}

// sidecar tells whether it is a restartable init container (KEP-753).
func (c *container) sidecar() bool {
	return c.init && c.spec.RestartPolicy != nil && *c.spec.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// running tells whether it has started and not ended.
func (c *container) running() bool { return c.state.Running != nil }

// up notes that it runs.
func (c *container) up(id string, since metav1.Time) {
	c.id = id
	c.state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: since}}
}

// down notes that it has ended, or never will start; the first word counts.
func (c *container) down(end v1.ContainerStateTerminated) {
	if c.state.Terminated != nil {
		return
	}
	end.FinishedAt = metav1.Now()
	if c.id != "" {
		end.ContainerID = statusID(c.id)
	}
	if c.running() {
		end.StartedAt = c.state.Running.StartedAt
	}
	c.state = v1.ContainerState{Terminated: &end}
	close(c.exited)
}

// adopt fills in how it is, by what runs, nil if it does not, and by what its status
// had.
func (c *container) adopt(id *string, preStopDone bool, last v1.ContainerState) {
	c.preStopDone = preStopDone
	switch {
	case id != nil && last.Running != nil:
		c.up(*id, last.Running.StartedAt)
	case id != nil:
		c.up(*id, metav1.Now())
	case last.Terminated != nil:
		c.state = v1.ContainerState{Terminated: last.Terminated.DeepCopy()}
		close(c.exited)
	default:
		c.down(unknownEnd())
	}
}

// status is that of a container. One that has not started has the empty
// state, which the API defines as waiting, and in which virtual-kubelet does not see
// the end of the container: it would remove a deleted pod without asking its
// provider while init containers run (virtual-kubelet#989).
func (c *container) status() v1.ContainerStatus {
	running := c.running()
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
