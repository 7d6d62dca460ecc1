package virtualkubelet

import (
	"context"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
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

// StopContainer calls StopContainer of Options.Runtime.
func (a containerRuntime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	return a.opts.Runtime.StopContainer(ctx, id, timeoutSeconds)
}

// Running calls Running of Options.Runtime, and updates the pod's record. If the list lacks a container that was
// running, and the exit code of that container is unknown, the list may be wrong: Running then requests a second list,
// up to 1 s later, which decides.
func (a containerRuntime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	r := a.pods.find(pod)
	if r == nil { // forgotten: there is no record to update
		return a.opts.Runtime.Running(ctx, pod)
	}
	previousRuns := r.currentRuns()
	listed, err := a.opts.Runtime.Running(ctx, pod)
	if err != nil || r.endMissing(previousRuns, listed, false) {
		return listed, err
	}
	select {
	case <-time.After(min(maxRetryPause, a.opts.PollInterval)):
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	if listed, err = a.opts.Runtime.Running(ctx, pod); err == nil {
		r.endMissing(previousRuns, listed, true)
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

// endMissing records the end of each run that a list lacks. previousRuns has the runs that were known before the list
// was requested: a list need not have a run that is newer. A run without an exit code has ended only if a second list
// lacks it too. certain is false if that second list is needed.
func (r *record) endMissing(previousRuns []run, listed []lifecycle.Container, isSecond bool) (certain bool) {
	certain = true
	for _, previous := range previousRuns {
		if slices.ContainsFunc(listed, func(l lifecycle.Container) bool { return l.ID == previous.id }) {
			continue
		}
		end, hasExitCode := r.exitOf(previous.id)
		switch {
		case !hasExitCode && !isSecond:
			certain = false
		case r.tryNoticeEnd(previous):
			if !hasExitCode { // perhaps StartContainer returned another ID than the one that is listed
				klog.FromContext(r.ctx).Info("The runtime does not list a container and does not know its exit code",
					"pod", r.name, "containerName", previous.c.spec.Name, "containerID", previous.id, "listedIDs", idsOf(listed))
			}
			r.agent.spawn(r.name, func() { r.runEnded(previous, end) })
		}
	}
	return certain
}

// tryNoticeEnd records that a run has ended. mustReport is true for one caller, which must report the end, and false if
// the end was recorded before.
func (r *record) tryNoticeEnd(ended run) (mustReport bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	isCurrent := ended.c.isRunning() && ended.c.id == ended.id // false: the run has ended, and another one may have begun
	if !isCurrent || ended.c.endNoticed {
		return false
	}
	ended.c.endNoticed = true
	return true
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
