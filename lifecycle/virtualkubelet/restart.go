package virtualkubelet

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// The kubelet's back-off of containers that exit: none before the first restart, then 10 s,
// twice as much each time, and none again for a container that has run for 10 min.
const (
	backOffFirst = 10 * time.Second
	backOffMost  = 5 * time.Minute
	backOffReset = 10 * time.Minute
)

// errAgain is the error of a start that has failed and that the restart policy has repeated.
var errAgain = errors.New("it is started again")

// restarts reports whether the container is started again after an end, by its own restart
// policy or that of its pod, as the kubelet does. Init containers that have succeeded are not.
func (c *container) restarts(pod *v1.Pod, end v1.ContainerStateTerminated) bool {
	policy := pod.Spec.RestartPolicy
	if own := c.spec.RestartPolicy; own != nil {
		policy = v1.RestartPolicy(*own)
	}
	switch cmp.Or(policy, v1.RestartPolicyAlways) {
	case v1.RestartPolicyNever:
		return false
	case v1.RestartPolicyOnFailure:
		return end.ExitCode != 0
	default:
		return !c.init || c.sidecar() || end.ExitCode != 0
	}
}

// markAgain sets the state of a container that is to be started again, and when.
func (c *container) markAgain(pod *v1.Pod, end v1.ContainerStateTerminated) {
	now := time.Now()
	if c.running() && now.Sub(c.state.Running.StartedAt.Time) > backOffReset {
		c.pause = 0
	}
	c.last, c.restarting, c.againAt = c.endedWith(end), true, now.Add(c.pause)
	waiting := &v1.ContainerStateWaiting{Reason: reasonCreating}
	if c.pause > 0 {
		waiting.Reason = reasonBackOff
		waiting.Message = fmt.Sprintf("back-off %v restarting failed container=%s pod=%s_%s(%s)", c.pause, c.spec.Name, pod.Name, pod.Namespace, pod.UID)
	}
	c.state = v1.ContainerState{Waiting: waiting}
	c.pause = min(max(2*c.pause, backOffFirst), backOffMost)
}
