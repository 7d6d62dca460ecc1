package virtualkubelet

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	// callTimeout bounds each call of the Runtime or PodRuntime except starts. A call that hangs is repeated.
	callTimeout = 30 * time.Second
	// maxRetryPause bounds the pause before the runtime's list is repeated.
	maxRetryPause = time.Second
)

// containerRuntime is the [lifecycle.Runtime] that the terminator gets. It calls Options.Runtime, and also passes
// each list to the containerPod, which learns from it which containers have ended.
type containerRuntime struct{ *Provider }

// StopContainer calls StopContainer of Options.Runtime.
func (r containerRuntime) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	return r.opts.Runtime.StopContainer(ctx, id, timeoutSeconds)
}

// Running calls Running of Options.Runtime, and updates the containerPod. If the list lacks a container that was
// running, and the exit code of that container is unknown, the list may be wrong: Running then requests a second list,
// up to 1 s later, which decides.
func (r containerRuntime) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	m := r.pods.find(pod)
	if m == nil { // forgotten
		return r.opts.Runtime.Running(ctx, pod)
	}
	p, _ := m.workload.(*containerPod)
	previousRuns := p.currentRuns()
	listed, err := r.opts.Runtime.Running(ctx, pod)
	p.logResult(p.ctx, "the search for runs of a previous agent", checkSingleRuns(listed)) // an error that lasts is logged once
	if err != nil {
		return listed, err
	}
	const isFirst, isSecond = false, true // for the parameter isSecond of endMissing
	if isCertain := p.endMissing(previousRuns, listed, isFirst); isCertain {
		return listed, nil
	}
	if err := times.Sleep(ctx, min(maxRetryPause, r.opts.PollInterval)); err != nil {
		return nil, err
	}
	if listed, err = r.opts.Runtime.Running(ctx, pod); err == nil {
		p.endMissing(previousRuns, listed, isSecond)
	}
	return listed, err
}

// checkSingleRuns returns an error if the list has two runs of a container. The provider starts a container only when it
// knows of no other run, so a previous agent has left one of the two.
func checkSingleRuns(listed []lifecycle.Container) error {
	for i, c := range listed {
		for _, other := range listed[:i] {
			if other.Name == c.Name && other.ID != c.ID {
				return fmt.Errorf("the runtime lists container %q twice, with the IDs %q and %q: was the pod not adopted after a restart of the agent", c.Name, other.ID, c.ID)
			}
		}
	}
	return nil
}

// run is one run of a container, which has another ID after a restart.
type run struct {
	c  *container
	id string
}

// currentRuns returns the runs that are not known to have ended.
func (p *containerPod) currentRuns() (runs []run) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, c := range p.all {
		if c.isRunning() && !c.awaitsContainerEnded {
			runs = append(runs, run{c, c.id})
		}
	}
	return runs
}

// endMissing records the end of each run that a list lacks. previousRuns has the runs that were known before the list
// was requested: a list need not have a run that is newer. A run without an exit code has ended only if a second list
// lacks it too. isCertain is false if that second list is needed.
func (p *containerPod) endMissing(previousRuns []run, listed []lifecycle.Container, isSecond bool) (isCertain bool) {
	listedIDs := idsOf(listed)
	isListed := func(r run) bool { return slices.Contains(listedIDs, r.id) }
	isCertain = true
	for _, missing := range slices.DeleteFunc(slices.Clone(previousRuns), isListed) {
		end, hasExitCode := p.exitOf(missing.id)
		if !hasExitCode && !isSecond {
			isCertain = false
			continue
		}
		if mustReport := p.tryNoticeEnd(missing); !mustReport {
			continue
		}
		if !hasExitCode { // perhaps StartContainer returned another ID than the one that is listed
			klog.FromContext(p.ctx).Info("The runtime does not list a container and does not know its exit code",
				"pod", p.name, "containerName", missing.c.spec.Name, "containerID", missing.id, "listedIDs", listedIDs)
		}
		p.provider.spawn(p.name, func() { p.runEnded(missing, end) })
	}
	return isCertain
}

// tryNoticeEnd records that a run has ended. mustReport is true only for the first call for a run, whose caller must report
// the end.
func (p *containerPod) tryNoticeEnd(ended run) (mustReport bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	isCurrent := ended.c.isRunning() && ended.c.id == ended.id // false: the run has ended, and another one may have begun
	if !isCurrent || ended.c.awaitsContainerEnded {
		return false
	}
	ended.c.awaitsContainerEnded = true
	return true
}

// exitOf calls ExitCode for a container that has ended, and returns its terminated state. known is false if the
// Runtime does not know the exit code or panics; the exit code is then 137.
func (p *containerPod) exitOf(id string) (end v1.ContainerStateTerminated, known bool) {
	end = unknownEnd()
	_ = p.callSafely(p.ctx, "ExitCode", func() { // a panic was logged
		var code int32
		if code, known = p.provider.opts.Runtime.ExitCode(id); known {
			end = exitedWith(code)
		}
	})
	return end, known
}

// idsOf returns the IDs of the containers.
func idsOf(listed []lifecycle.Container) (ids []string) {
	for _, c := range listed {
		ids = append(ids, c.ID)
	}
	return ids
}
