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
	// callTimeout bounds each call of the Runtime or PodRuntime except starts. A call that hangs is repeated.
	callTimeout = 30 * time.Second
	// maxRetryPause bounds the pause before the runtime's list is repeated.
	maxRetryPause = time.Second
)

// containerRuntime is the [lifecycle.Runtime] that the terminator gets. It calls Options.Runtime, and also passes
// each list to the pod's record, which learns from it which containers have ended.
type containerRuntime struct{ *agent }

// StopContainer calls that of Options.Runtime.
func (a containerRuntime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	return a.opts.Runtime.StopContainer(ctx, id, timeoutSeconds)
}

// Running calls Running of Options.Runtime, and updates the pod's record. If the list lacks a container that was
// running, and the exit code of that container is unknown, the list may be wrong: Running then asks for another one,
// up to 1 s later, which decides.
func (a containerRuntime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	r := a.pods.find(pod)
	if r == nil { // forgotten: there is no record to update
		return a.opts.Runtime.Running(ctx, pod)
	}
	before := r.currentRuns()
	listed, err := a.opts.Runtime.Running(ctx, pod)
	if err != nil || r.endMissing(before, listed, false) {
		return listed, err
	}
	select {
	case <-time.After(min(maxRetryPause, a.opts.PollInterval)):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if listed, err = a.opts.Runtime.Running(ctx, pod); err == nil {
		r.endMissing(before, listed, true)
	}
	return listed, err
}

// run is one run of a container, which has another ID after a restart.
type run struct {
	c  *container
	id string
}

// currentRuns returns the runs that are not known to have ended.
func (r *record) currentRuns() (runs []run) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, c := range r.containers.all {
		if c.isRunning() && !c.endNoticed {
			runs = append(runs, run{c, c.id})
		}
	}
	return runs
}

// endMissing records the end of each run that a list lacks. before has the runs that were known before the list was
// requested: a newer run may be missing because it is newer. A run without an exit code has ended only if a
// second list lacks it too. The result is false if that second list is needed.
func (r *record) endMissing(before []run, listed []lifecycle.Container, isSecond bool) (certain bool) {
	certain = true
	for _, was := range before {
		if slices.ContainsFunc(listed, func(l lifecycle.Container) bool { return l.ID == was.id }) {
			continue
		}
		end, known := r.exitOf(was.id)
		switch {
		case !known && !isSecond:
			certain = false
		case r.tryNoticeEnd(was):
			if !known { // perhaps StartContainer returned another ID than the one that is listed
				klog.FromContext(r.ctx).Info("The runtime does not list a container and does not know its exit code",
					"pod", r.name, "containerName", was.c.spec.Name, "containerID", was.id, "listedIDs", idsOf(listed))
			}
			r.agent.spawn(r.name, func() { r.runEnded(was, end) })
		}
	}
	return certain
}

// exitOf calls ExitCode for a container that has ended, and returns its terminated state. known is false if the
// Runtime does not know the exit code or panics; the exit code is then 137.
func (r *record) exitOf(id string) (end v1.ContainerStateTerminated, known bool) {
	end = unknownEnd()
	_ = r.callSafely("ExitCode", func() { // a panic was logged
		var code int32
		if code, known = r.agent.opts.Runtime.ExitCode(id); known {
			end = exitedWith(code)
		}
	})
	return end, known
}

// idsOf returns the IDs of the containers, for the log.
func idsOf(listed []lifecycle.Container) (ids []string) {
	for _, c := range listed {
		ids = append(ids, c.ID)
	}
	return ids
}

// tryNoticeEnd records that a run has ended. isFirst is true for one caller, which must report the end, and false if
// the end was recorded before.
func (r *record) tryNoticeEnd(was run) (isFirst bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isCurrent := was.c.isRunning() && was.c.id == was.id // otherwise it has ended and perhaps restarted meanwhile
	if !isCurrent || was.c.endNoticed {
		return false
	}
	was.c.endNoticed = true
	return true
}

// runEnded reports the end of a run, and restarts the container if the restart policy says so. When the
// last regular container has ended for good, the pod has completed, and its sidecars are terminated.
func (r *record) runEnded(was run, end v1.ContainerStateTerminated) {
	if !r.reportEnd(was.c, was.id) {
		return
	}
	if r.markEnded(was.c, end) {
		_ = (&starter{agent: r.agent, record: r}).restart(was.c) // an error shows in the container's state
	}
	r.endIfDone()
}

// watchContainers lists the pod's containers in each PollInterval, when a container exits, and soon after a failed list,
// until the pod is forgotten. That is how ends are noticed. While nothing runs it lists nothing.
func (r *record) watchContainers() {
	var failed failures
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
		failed.log(r.ctx, err, "Failed to list the containers of a pod, will try again", "Listed the containers of a pod after earlier failures", "pod", r.name)
		if pause = r.agent.opts.PollInterval; err != nil {
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

// findStarted returns the ID of a container that runs although its start has failed, or "" if it does not run. It
// lists until a list succeeds. The error is that of an invalid ID, or the cause why the pod may start nothing any
// more.
func (r *record) findStarted(c *container) (id string, err error) {
	for failed := (failures{}); ; {
		listed, err := r.list()
		if err == nil {
			for _, l := range listed {
				if l.Name == c.spec.Name {
					return l.ID, r.checkID("Running", c, l.ID)
				}
			}
			return "", nil
		}
		failed.log(r.ctx, err, "Failed to list the containers of a pod after a failed start, will try again", "", "pod", r.name)
		select {
		case <-time.After(maxRetryPause):
		case <-r.active.Done():
			return "", context.Cause(r.active)
		}
	}
}

// checkID returns an error for an invalid container ID. from is the call that has returned it.
func checkID(from, name, id string) error {
	if id == "" {
		return fmt.Errorf("%s has returned no ID of container %q", from, name)
	}
	if scheme, _, found := strings.Cut(id, "://"); found {
		return fmt.Errorf("%s has returned the ID %q of container %q, which must be without the prefix %q", from, id, name, scheme+"://")
	}
	return nil
}

// checkID returns an error for an invalid container ID, and for the ID of another container of the pod that is
// running. from is the call that has returned it.
func (r *record) checkID(from string, c *container, id string) error {
	if err := checkID(from, c.spec.Name, id); err != nil {
		return err
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, other := range r.containers.all {
		if other != c && other.isRunning() && other.id == id {
			return fmt.Errorf("%s has returned the ID %q of container %q, which container %q has", from, id, c.spec.Name, other.spec.Name)
		}
	}
	return nil
}

// markRunning records that a container runs, and watches for its exit.
func (r *record) markRunning(c *container, id string) {
	r.mu.Lock()
	c.markRunning(id, metav1.Now())
	r.containers.refreshReady()
	r.notifier.wake()
	r.mu.Unlock()
	r.watchExit(id)
}

// watchExit makes watchContainers list at once when this container exits, instead of after PollInterval. It does
// nothing if the runtime is no [lifecycle.ExitWatcher].
func (r *record) watchExit(id string) {
	watcher, ok := r.agent.opts.Runtime.(lifecycle.ExitWatcher)
	if !ok {
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
		default: // watchContainers has not yet listed after an earlier exit, and will see this one too
		}
	})
}

// reportEnd calls [Options.ContainerEnded] until it succeeds, with increasing pauses. It returns false if the provider
// is closed before that; the end then must not become visible, so that the next agent reports it.
func (r *record) reportEnd(c *container, id string) (reported bool) {
	ended := r.agent.opts.ContainerEnded
	if ended == nil || id == "" {
		return true
	}
	var failed failures
	for pause := backOffFirst; ; pause = min(2*pause, backOffMost) {
		err := r.callGuarded(r.ctx, "ContainerEnded of container "+c.spec.Name, callTimeout, func() error { return ended(r.ctx, r.podWithStatus(), c.spec, id) })
		failed.log(r.ctx, err, "Failed to clean up after a container, will try again", "Cleaned up after a container after earlier failures", "pod", r.name, "containerID", id)
		if err == nil {
			return true
		}
		select {
		case <-time.After(pause):
		case <-r.ctx.Done():
			return false
		}
	}
}

// markEnded records the end of a run, as final or as followed by a restart. again is true if the caller must restart
// the container.
func (r *record) markEnded(c *container, end v1.ContainerStateTerminated) (again bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	again = !r.ending.terminating && c.restartsAfter(r.desired.pod, end)
	switch {
	case r.ending.terminating && c.restarting: // a failed restart is no end: keepLastEnd makes that of the last run final
	case again:
		c.markRestarting(r.desired.pod, end)
	default:
		c.markTerminated(end)
	}
	r.containers.refreshReady()
	r.notifier.wake()
	return again
}
