package virtualkubelet

import (
	"time"
)

// watch notes the exit of a container. When the last regular one has exited, the pod
// is over, and its sidecars are ended.
func (r *record) watch(c *container, id string) {
	select {
	case <-r.agent.opts.Runtime.Exited(id):
	case <-r.agent.workers.closing:
		return
	}
	r.down(c, exitedWith(r.agent.opts.Runtime.ExitCode(id)))
	if r.overByItself() {
		r.ender.endItself()
	}
	r.ender.settle()
}

// awaitExit waits for the exit of a container that has been stopped: runtimes tell
// of it by another way, and later. One that does not in time has an unknown end.
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
		r.down(c, unknownEnd())
	}
}
