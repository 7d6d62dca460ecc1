package virtualkubelet

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	// callTimeout bounds each call of the author's runtime but the starts, so that one that gets no
	// answer is made again.
	callTimeout = 30 * time.Second
	// askAgain is the longest pause before the runtime is asked again for what is missing in its list.
	askAgain = time.Second
)

// containerRuntime is the author's [Runtime], from whose lists the records of the pods learn what has
// ended. It is a [lifecycle.Runtime].
type containerRuntime struct{ *agent }

// StopContainer is that of the author.
func (a containerRuntime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	return a.opts.Runtime.StopContainer(ctx, id, timeoutSeconds)
}

// Running asks the author's runtime what runs of a pod. If a container is missing that was running,
// and its exit code is not known, the list may be wrong: it is asked for once more.
func (a containerRuntime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	r := a.pods.find(pod)
	if r == nil {
		return a.opts.Runtime.Running(ctx, pod)
	}
	before := r.running()
	listed, err := a.opts.Runtime.Running(ctx, pod)
	if err != nil || r.take(before, listed, false) {
		return listed, err
	}
	select {
	case <-time.After(min(askAgain, a.opts.PollInterval)):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if listed, err = a.opts.Runtime.Running(ctx, pod); err == nil {
		r.take(before, listed, true)
	}
	return listed, err
}

// run is one run of a container.
type run struct {
	c  *container
	id string
}

// running returns the containers that run, as far as is known.
func (r *record) running() (runs []run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers.all {
		if c.running() && !c.gone {
			runs = append(runs, run{c, c.id})
		}
	}
	return runs
}

// take takes over a list that was asked for after some containers were known to run: those that it
// lacks have ended. One without an exit code has ended only if two lists lack it; false if a second
// list is needed.
func (r *record) take(before []run, listed []lifecycle.Container, isSecond bool) (certain bool) {
	certain = true
	for _, was := range before {
		if slices.ContainsFunc(listed, func(l lifecycle.Container) bool { return l.ID == was.id }) {
			continue
		}
		end, known := r.exitOf(was.id)
		switch {
		case !known && !isSecond:
			certain = false
		case r.leave(was):
			if !known {
				klog.FromContext(r.ctx).Info("The runtime no longer lists a container, whose exit code is not known",
					"pod", r.name, "containerName", was.c.spec.Name, "containerID", was.id)
			}
			r.agent.spawn(r.name, func() { r.runEnded(was, end) })
		}
	}
	return certain
}

// exitOf asks for the exit code of a container that has ended, and returns its state.
func (r *record) exitOf(id string) (end v1.ContainerStateTerminated, known bool) {
	end = unknownEnd()
	_ = safely(r.ctx, "ExitCode", func() { // a panic was logged
		var code int32
		if code, known = r.agent.opts.Runtime.ExitCode(id); known {
			end = exitedWith(code)
		}
	})
	return end, known
}

// leave marks that a run has ended, and returns true for the first one who says so.
func (r *record) leave(was run) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	if was.c.gone || !was.c.running() || was.c.id != was.id {
		return false
	}
	was.c.gone = true
	return true
}

// runEnded tells the end of a run, and starts the container again if the restart policy of the pod
// says so. When the last regular container has ended for good, the pod has completed, and its
// sidecars are terminated.
func (r *record) runEnded(was run, end v1.ContainerStateTerminated) {
	if !r.tellEnd(was.c, was.id, end) {
		return
	}
	if r.markEnded(was.c, end) {
		_ = (&starter{agent: r.agent, r: r}).again(was.c) // shows in the state of the container
	}
	r.over()
}

// watch asks the runtime what runs of a pod, once in each interval and when a container has exited,
// until the pod is forgotten.
func (r *record) watch() {
	failure, pause := "", r.agent.opts.PollInterval
	for {
		select {
		case <-r.exited:
		case <-time.After(pause):
		case <-r.ctx.Done():
			return
		}
		if len(r.running()) == 0 {
			continue
		}
		_, err := r.list()
		failure = logFailure(r.ctx, err, failure, "Failed to list the containers of a pod, which is tried again", "pod", r.name)
		if pause = r.agent.opts.PollInterval; err != nil {
			pause = min(askAgain, pause)
		}
	}
}

// list asks the runtime once what runs of the pod.
func (r *record) list() (listed []lifecycle.Container, err error) {
	ctx, cancel := context.WithTimeout(r.ctx, callTimeout)
	defer cancel()
	pod := r.view()
	err = guarded(ctx, "Running", func() (err error) {
		listed, err = containerRuntime{r.agent}.Running(ctx, pod)
		return err
	})
	return listed, err
}

// logFailure logs the error of a call that is made again and again, once until it changes. It returns
// the text of the error, "" for none.
func logFailure(ctx context.Context, err error, before, message string, about ...any) string {
	if err == nil {
		return ""
	}
	if err.Error() != before && ctx.Err() == nil {
		klog.FromContext(ctx).Error(err, message, about...)
	}
	return err.Error()
}

// listedAs returns the ID of a container that a start that has failed has started all the same, ""
// if it does not run. It asks until the runtime has answered, or the pod is to be started no longer.
func (r *record) listedAs(c *container) (id string, err error) {
	for failure := ""; ; {
		listed, err := r.list()
		if err == nil {
			for _, l := range listed {
				if l.Name == c.spec.Name {
					return l.ID, checkID(l.ID)
				}
			}
			return "", nil
		}
		failure = logFailure(r.ctx, err, failure, "Failed to list the containers of a pod after a start that has failed, which is tried again", "pod", r.name)
		select {
		case <-time.After(askAgain):
		case <-r.active.Done():
			return "", context.Cause(r.active)
		}
	}
}

// checkID returns the error for an ID that no container may have.
func checkID(id string) error {
	if scheme, _, found := strings.Cut(id, "://"); found || id == "" {
		return fmt.Errorf("the ID of a container must be set, without a prefix such as %q, is %q", scheme+"://", id)
	}
	return nil
}

// markRunning records that a container runs, and has the runtime asked when it has exited.
func (r *record) markRunning(c *container, id string) {
	r.mu.Lock()
	c.markRunning(id, metav1.Now())
	r.containers.refreshReady()
	r.notifier.wake()
	r.mu.Unlock()
	r.watchExit(id)
}

// watchExit has the runtime asked what runs when a container has exited, if the author can tell that.
func (r *record) watchExit(id string) {
	watcher, ok := r.agent.opts.Runtime.(lifecycle.ExitWatcher)
	if !ok {
		return
	}
	var exited <-chan struct{}
	_ = safely(r.ctx, "Exited", func() { exited = watcher.Exited(id) }) // a panic was logged
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
		default: // it is still to be asked
		}
	})
}

// tellEnd calls [Options.ContainerEnded], with increasing pauses until it succeeds; false if the
// provider is closed before.
func (r *record) tellEnd(c *container, id string, end v1.ContainerStateTerminated) (told bool) {
	ended := r.agent.opts.ContainerEnded
	if ended == nil || id == "" {
		return true
	}
	for pause := backOffFirst; ; pause = min(2*pause, backOffMost) {
		again := r.isStartedAgain(c, end)
		err := guarded(r.ctx, "ContainerEnded", func() error { return ended(r.ctx, r.view(), c.spec, id, again) })
		if err == nil {
			return true
		}
		klog.FromContext(r.ctx).V(1).Info("What is left of a container was not removed", "pod", r.name, "containerID", id, "err", err)
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return false
		}
	}
}

// isStartedAgain reports whether a container is to be started again after an end.
func (r *record) isStartedAgain(c *container, end v1.ContainerStateTerminated) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return !r.ending.terminating && c.restarts(r.desired.pod, end)
}

// markEnded records the end of a run of a container, and reports whether the container is to be
// started again.
func (r *record) markEnded(c *container, end v1.ContainerStateTerminated) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	again = !r.ending.terminating && c.restarts(r.desired.pod, end)
	switch {
	case r.ending.terminating && c.restarting: // again gives it the state of its last end
	case again:
		c.markAgain(r.desired.pod, end)
	default:
		c.markTerminated(end)
	}
	r.containers.refreshReady()
	r.notifier.wake()
	return again
}
