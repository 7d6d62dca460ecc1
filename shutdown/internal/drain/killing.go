package drain

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/timetable"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// killing kills the pods of one drain and waits for them.
type killing struct {
	*hooks

	published *outbox.Publication     // nil: nothing was published
	life      context.Context         // of the calls of the killer; set before the first kill
	end       context.CancelCauseFunc // of life
	until     time.Time               // a call that fails later is not made again
	batches   []*kills.Batch

	mu      sync.Mutex // guards all below
	failed  int        // readiness marks of this bucket that were not acknowledged in time
	markErr error      // the error of the first of them
}

// priorities returns the priorities of pods. If Options.Plan.PriorityOf does not answer in time,
// classes that only the embedder knows count as priority 0.
func (g *killing) priorities(pods []*v1.Pod) []int32 {
	resolve := func(options plan.Options) []int32 {
		of := make([]int32, len(pods))
		for i, pod := range pods {
			of[i] = options.Priority(pod)
		}
		return of
	}
	if g.Plan.PriorityOf == nil {
		return resolve(g.Plan)
	}
	asked := call.Start(g.run, g.Calls, "Options.Plan.PriorityOf", func(context.Context) ([]int32, error) {
		return resolve(g.Plan), nil
	})
	of, err := asked.Await(g.run, time.Now().Add(answerTime))
	if err == nil {
		return of
	}
	g.listener.Fail(fmt.Errorf("failed to ask for the values of priority classes: %w", err))
	options := g.Plan
	options.PriorityOf = nil
	return resolve(options)
}

// start kills pods in the window of their bucket and does not wait.
func (g *killing) start(pods []*kills.Kill, window timetable.Window) *kills.Batch {
	logger := klog.FromContext(g.life).V(1)
	k := &kills.Killing{
		Context: g.life, RetryUntil: g.until, Calls: g.Calls,
		Unless:  g.unlessHalted,
		Seconds: func(pod *v1.Pod) int64 { return window.Seconds(pod, time.Now()) },
		Kill:    g.Kill,
		Final:   g.NoRetry,
		Signalled: func(k *kills.Kill) {
			g.listener.Signalled(k)
			if logger.Enabled() {
				logger.Info("Shutdown manager killing pod with gracePeriod", "pod", klog.KObj(k.Pod()), "gracePeriod", k.State().Seconds)
			}
		},
		Ended: func(k *kills.Kill) {
			if logger.Enabled() {
				logger.Info("Shutdown manager finished killing pod", "pod", klog.KObj(k.Pod()), "outcome", k.State().Result.Outcome)
			}
			g.listener.Ended(k)
		},
		Failed: func(k *kills.Kill, err error) {
			klog.FromContext(g.life).Error(err, "Shutdown manager failed killing pod, will try again", "pod", klog.KObj(k.Pod()))
		},
		GaveUp: func(k *kills.Kill, err error) {
			if g.run.Err() != nil {
				logger.Info("Shutdown manager no longer waits for a pod, because the agent ends", "pod", klog.KObj(k.Pod()), "err", err)
			} else {
				klog.FromContext(g.life).Error(err, "Shutdown manager failed killing pod", "pod", klog.KObj(k.Pod()))
			}
			g.listener.GaveUp(k, err)
		},
	}
	if g.Marks && time.Now().Before(window.Ready) {
		k.Before = func(k *kills.Kill) { g.markNotReady(k, window.Ready) }
	}
	batch := k.Start(pods)
	g.batches = append(g.batches, batch)
	return batch
}

// markNotReady takes a pod out of its services before the pod is killed. It waits until the API
// server has the mark, at most until a time. It does not wait if the API server has acknowledged
// nothing since the publication of the node state began. A pod with a deletion timestamp is out
// of its services already, and one that was signalled before needs no mark.
func (g *killing) markNotReady(k *kills.Kill, until time.Time) {
	pod := k.Pod()
	if pod.DeletionTimestamp != nil || k.Signalled() {
		return
	}
	waits := g.published == nil || g.published.AnsweredSince()
	var mark *call.Future[struct{}]
	if !g.unlessHalted(func() { mark = g.Outbox.Mark(pod, until) }) || !waits {
		return
	}
	if _, err := mark.Await(g.ctx, until); err != nil && !g.halted() {
		g.mu.Lock()
		defer g.mu.Unlock()
		if g.failed++; g.markErr == nil {
			g.markErr = err
		}
	}
}

// finishMarks reports the marks of a bucket that have failed, when all its pods are signalled.
func (g *killing) finishMarks() {
	g.mu.Lock()
	failed, cause := g.failed, g.markErr
	g.failed, g.markErr = 0, nil
	g.mu.Unlock()
	if failed > 0 {
		g.listener.Fail(fmt.Errorf("failed to mark %d pods not ready: %w", failed, cause))
	}
}

// awaitSignalled waits until all pods of the batches are signalled, and returns when that was.
func (g *killing) awaitSignalled(batches []*kills.Batch, window timetable.Window) (killed time.Time) {
	for _, batch := range batches {
		at, err := batch.Signalled.Await(g.run, window.Ready.Add(times.Lag))
		if err != nil {
			at = time.Now()
		}
		killed = times.Later(killed, at)
	}
	return killed
}

// await waits for all pods of the batches until a time, and reports whether all have ended.
func (g *killing) await(batches []*kills.Batch, until time.Time) bool {
	for _, batch := range batches {
		if _, err := batch.Done.Await(g.run, until); err != nil {
			return false
		}
	}
	return true
}

// awaitStatuses waits for the final statuses of the pods of a bucket that have ended, as long as
// the API server answers and the bucket lasts. Before that it waits for half of the reserve for
// pods that are just about to end, as those that use all of their grace period do.
func (g *killing) awaitStatuses(batches []*kills.Batch, pods []*kills.Kill, window timetable.Window, reserve time.Duration) {
	if !g.Flushes {
		return
	}
	g.await(batches, times.Earlier(window.End, time.Now().Add(reserve/2))) // the others are not waited for
	g.Outbox.Await(g.run, anyUnacknowledged(pods), window.End, reserve)
}

// anyUnacknowledged returns a function that reports whether a pod has ended whose final status is
// not acknowledged. The function is called after each acknowledgement, so it does not look again
// at acknowledged pods.
func anyUnacknowledged(pods []*kills.Kill) func() bool {
	var running []*kills.Kill
	return func() bool {
		for ; len(pods) > 0; pods = pods[1:] {
			switch {
			case !pods[0].HasEnded():
				running = append(running, pods[0])
			case !pods[0].Acknowledged():
				return true
			}
		}
		return slices.ContainsFunc(running, func(k *kills.Kill) bool { return k.HasEnded() && !k.Acknowledged() })
	}
}

// awaitStragglers waits for pods that outlive the drain, without a limit until the end of Run.
func (g *killing) awaitStragglers() {
	for _, batch := range g.batches {
		_, _ = batch.Done.Wait(g.run) // awaitHanging waits on after the end of Run
	}
}

// awaitHanging waits for pods that outlive the drain, after the host's time for at most hang.
func (g *killing) awaitHanging(release time.Time, hang time.Duration) {
	until := times.Later(release, time.Now()).Add(hang)
	for _, batch := range g.batches {
		_, _ = batch.Done.Await(context.WithoutCancel(g.run), until) // a pod that still runs has no end in the report
	}
	g.end(nil)
}
