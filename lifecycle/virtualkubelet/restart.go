package virtualkubelet

import (
	"cmp"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
)

// The kubelet's restart back-off: none before the first restart, then 10 s, doubled each time up to 5 min. After a run of more
// than 10 min it begins again with none.
const (
	backOffFirst = 10 * time.Second
	backOffMost  = 5 * time.Minute
	backOffReset = 10 * time.Minute
)

// errWillRestart means that a start has failed, and that the restart policy allows another one after a back-off.
var errWillRestart = errors.New("the container will be restarted")

// restartsAfter reports whether the container restarts after this end, by its own restart policy or its pod's, as in
// the kubelet. A plain init container that has succeeded does not restart.
func (c *container) restartsAfter(pod *v1.Pod, end v1.ContainerStateTerminated) bool {
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
		return !c.isPlainInit() || end.ExitCode != 0
	}
}

// markRestarting records the end of a run that is followed by another, and when the next run starts: after a pause of 0 s at
// first, then of 10 s, which doubles up to 5 min. After a run of more than 10 min the pause is 0 s again.
func (c *container) markRestarting(pod *v1.Pod, end v1.ContainerStateTerminated) {
	now := time.Now()
	if c.isRunning() && now.Sub(c.state.Running.StartedAt.Time) > backOffReset {
		c.pause = 0
	}
	c.lastEnd, c.awaitsContainerEnded = c.endedWith(end), false
	c.restarting, c.restartAt = true, now.Add(c.pause)
	waiting := &v1.ContainerStateWaiting{Reason: reasonCreating}
	if c.pause > 0 {
		waiting.Reason = reasonBackOff
		waiting.Message = fmt.Sprintf("back-off %v restarting failed container=%s pod=%s_%s(%s)", c.pause, c.spec.Name, pod.Name, pod.Namespace, pod.UID)
	}
	c.state = v1.ContainerState{Waiting: waiting}
	c.pause = min(max(2*c.pause, backOffFirst), backOffMost)
}
