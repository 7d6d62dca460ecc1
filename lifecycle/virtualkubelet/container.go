package virtualkubelet

import (
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// container is one container of a record.
type container struct {
	spec        *v1.Container
	init        bool // it is of spec.initContainers
	id          string
	preStopDone bool
	state       v1.ContainerState // empty: it has not started
	exited      chan struct{}     // closed once the state is terminated
}

// sidecar tells whether it is a restartable init container (KEP-753).
func (c *container) sidecar() bool {
	return c.init && c.spec.RestartPolicy != nil && *c.spec.RestartPolicy == v1.ContainerRestartPolicyAlways
}

// upLocked notes that a container runs.
func (c *container) upLocked(id string, since time.Time) {
	c.id = id
	c.state = v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.NewTime(since)}}
}

// downLocked notes that a container has ended, or never will start; the first word
// counts.
func (c *container) downLocked(end v1.ContainerStateTerminated) {
	if c.state.Terminated != nil {
		return
	}
	end.FinishedAt = metav1.Now()
	if c.id != "" {
		end.ContainerID = statusID(c.id)
	}
	if c.state.Running != nil {
		end.StartedAt = c.state.Running.StartedAt
	}
	c.state = v1.ContainerState{Terminated: &end}
	close(c.exited)
}
