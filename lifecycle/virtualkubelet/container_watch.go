package virtualkubelet

import (
	"context"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// watchContainers lists the pod's containers in each PollInterval, when a container exits, and soon after a failed list,
// until the pod is forgotten or the provider is closed. From these lists the record learns which containers have ended.
// While no container runs, watchContainers lists nothing.
func (r *record) watchContainers() {
	var listFailures failures
	pause := r.agent.opts.PollInterval
	for {
		select {
		case <-r.exited:
		case <-time.After(pause):
		case <-r.ctx.Done():
			return
		}
		if len(r.currentRuns()) == 0 {
			continue
		}
		_, err := r.list()
		listFailures.log(r.ctx, err, "Failed to list the containers of a pod, will try again", "Listed the containers of a pod after earlier failures", "pod", r.name)
		pause = r.agent.opts.PollInterval
		if err != nil {
			pause = min(maxRetryPause, pause)
		}
	}
}

// list calls Running through containerRuntime, so that the record learns what has ended.
func (r *record) list() (listed []lifecycle.Container, err error) {
	pod := r.podWithStatus()
	err = r.callWithin(r.ctx, "Running", callTimeout, func(ctx context.Context) (err error) {
		listed, err = containerRuntime{r.agent}.Running(ctx, pod)
		return err
	})
	return listed, err
}

// watchExit makes watchContainers list at once when this container exits, instead of after PollInterval. It does
// nothing if the runtime is no [lifecycle.ExitWatcher].
func (r *record) watchExit(id string) {
	watcher, isWatcher := r.agent.opts.Runtime.(lifecycle.ExitWatcher)
	if !isWatcher {
		return
	}
	var exited <-chan struct{}
	_ = r.callSafely("Exited", func() { exited = watcher.Exited(id) }) // a panic was logged
	if exited == nil {
		return
	}
	r.agent.spawn(r.name, func() {
		select {
		case <-exited:
		case <-r.ctx.Done():
			return
		}
		select {
		case r.exited <- struct{}{}:
		default: // the list for an earlier exit is still to come, and shows this exit too
		}
	})
}
