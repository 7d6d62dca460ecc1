package virtualkubelet

import (
	"time"
)

// watchExit waits for the exit of a container, unless that cannot be watched. When the last
// regular container has exited, the pod has completed and its sidecars are terminated.
func (r *record) watchExit(c *container, id string) {
	exited := r.agent.opts.Runtime.Exited(id)
	if exited == nil {
		return
	}
	select {
	case <-exited:
	case <-c.exited: // it was stopped, and nobody reported its exit
		return
	case <-r.agent.workers.closing:
		return
	}
	r.markTerminated(c, exitedWith(r.agent.opts.Runtime.ExitCode(id)))
	if r.completed() {
		r.ender.endCompleted()
	}
	r.ender.finalize()
}

// awaitExit waits for watchExit to see the exit of a stopped container, because the
// runtime may report the exit later than the end of the stop. After until the container
// gets an unknown exit code.
func (r *record) awaitExit(id string, until time.Time) {
	c := r.containerOf(id)
	if c == nil {
		return
	}
	slack := time.NewTimer(time.Until(until))
	defer slack.Stop()
	select {
	case <-c.exited:
	case <-r.agent.workers.closing:
	case <-slack.C:
		r.markTerminated(c, unknownEnd())
	}
}
