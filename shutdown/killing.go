package shutdown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// hangTime is how long Run waits for a call that ignores its context, counted from the end of ctx
// or of the host's time, whichever is later.
const hangTime = 10 * time.Second

// killing picks and kills the pods of one drain.
type killing struct {
	opts           *Options
	calls          *call.Group
	halt           halt
	statuses       *podStatuses
	storePodChange func()          // has the new state of a pod stored
	fail           func(error)     // logs and reports an error; ignores nil
	earlier        []*kills.Roster // of drains whose pods may still end, the latest first
	roster         *kills.Roster
	batches        []*kills.Batch
}

// pick returns the kills of bucket i: of each pod whose priority belongs to this bucket or a
// lower one, and that was not picked before.
func (g *killing) pick(ctx context.Context, pods []*v1.Pod, schedule plan.Schedule, i int) []*kills.Kill {
	priority := g.opts.Plan.Priority
	if g.opts.Plan.PriorityOf != nil {
		priority = g.askPriorities(ctx, pods)
	}
	return g.roster.Pick(pods, schedule[i].Priority, func(pod *v1.Pod) (int32, bool) {
		priority := priority(pod)
		return priority, schedule.Index(priority) <= i
	})
}

// askPriorities calls Options.Plan.PriorityOf for all pods. If it does not answer in time,
// classes that only the embedder knows count as priority 0.
func (g *killing) askPriorities(ctx context.Context, pods []*v1.Pod) func(*v1.Pod) int32 {
	asked := call.Start(ctx, g.calls, "Options.Plan.PriorityOf", func(context.Context) (map[*v1.Pod]int32, error) {
		priorities := make(map[*v1.Pod]int32, len(pods))
		for _, pod := range pods {
			if pod != nil {
				priorities[pod] = g.opts.Plan.Priority(pod)
			}
		}
		return priorities, nil
	})
	priorities, err := asked.Await(ctx, time.Now().Add(answerTime))
	if err == nil {
		return func(pod *v1.Pod) int32 { return priorities[pod] }
	}
	g.fail(fmt.Errorf("failed to ask for the values of priority classes: %w", err))
	options := g.opts.Plan
	options.PriorityOf = nil
	return options.Priority
}

// start kills pods in the window of their bucket and does not wait. ctx is the context of the
// calls of KillPod.
func (g *killing) start(ctx context.Context, pods []*kills.Kill, window plan.Window) *kills.Batch {
	logger := klog.FromContext(ctx).V(1)
	k := &kills.Killing{
		Context: ctx,
		Calls:   g.calls,
		Halted:  g.halt.halted,
		Seconds: func(pod *v1.Pod) int64 { return window.Seconds(pod, time.Now()) },
		Kill: func(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error) {
			return g.kill(ctx, pod, seconds)
		},
		Final:   func(err error) bool { return errors.Is(err, ErrNoRetry) },
		Earlier: g.findEarlier,
		Signalled: func(k *kills.Kill) {
			g.storePodChange()
			if logger.Enabled() {
				logger.Info("Shutdown manager killing pod with gracePeriod", "pod", klog.KObj(k.Pod), "gracePeriod", k.State().Seconds)
			}
		},
		Failed: func(k *kills.Kill, err error) {
			klog.FromContext(ctx).Error(err, "Shutdown manager failed killing pod, will try again", "pod", klog.KObj(k.Pod))
		},
	}
	k.Ended = func(k *kills.Kill) {
		state := k.State()
		g.storePodChange()
		g.opts.Metrics.PodKilled(outcomeLabel(state))
		switch {
		case state.Err != nil && g.halt.interrupted():
			logger.Info("Shutdown manager no longer waits for a pod, because the agent ends", "pod", klog.KObj(k.Pod), "err", state.Err)
		case state.Err != nil:
			klog.FromContext(ctx).Error(state.Err, "Shutdown manager failed killing pod", "pod", klog.KObj(k.Pod))
		case logger.Enabled():
			logger.Info("Shutdown manager finished killing pod", "pod", klog.KObj(k.Pod), "outcome", state.Result.Outcome)
		}
		g.statuses.queueFinal(k)
	}
	if g.statuses.marksReadiness(window, time.Now()) {
		k.Before = func(k *kills.Kill) { g.statuses.markNotReady(k, g.halt, window.Ready) }
	}
	batch := k.Start(pods)
	g.batches = append(g.batches, batch)
	return batch
}

// kill calls Options.Killer. If the error says that the kill goes on, kill waits for its end.
func (g *killing) kill(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error) {
	result, err := g.opts.Killer.KillPod(ctx, pod, KillRequest{
		GracePeriodSeconds: seconds,
		SetStatus:          g.statuses.policy.of(pod).setStatus(),
	})
	if err != nil {
		result, err = awaitKill(ctx, result, err)
	}
	return kills.Result(result), err
}

// awaitKill waits for a kill whose error has an Await method, as podkiller's *OverdueError. It
// returns any other error unchanged.
func awaitKill(ctx context.Context, result KillResult, err error) (KillResult, error) {
	var goesOn interface {
		Await(ctx context.Context) (KillResult, error)
	}
	if errors.As(err, &goesOn) {
		return goesOn.Await(ctx)
	}
	return result, err
}

// findEarlier returns the kill of a pod that still runs in an earlier drain; nil if there is
// none. It looks at all earlier drains: the latest of them may have given up a kill that an older
// one still waits for.
func (g *killing) findEarlier(key types.UID) *kills.Kill {
	for _, roster := range g.earlier {
		if k := roster.Find(key); k != nil && k.Signalled() && k.State().Ended.IsZero() {
			return k
		}
	}
	return nil
}

// hasSignalled reports whether this drain or an earlier one has signalled a pod.
func (g *killing) hasSignalled(pod *v1.Pod) bool {
	key := kills.Key(pod)
	return slices.ContainsFunc(append([]*kills.Roster{g.roster}, g.earlier...), func(roster *kills.Roster) bool {
		k := roster.Find(key)
		return k != nil && k.Signalled()
	})
}

// awaitAll waits for all pods until a time or the end of ctx, and reports whether all have ended.
func (g *killing) awaitAll(ctx context.Context, until time.Time) bool {
	for _, batch := range g.batches {
		if _, err := batch.Done.Await(ctx, until); err != nil {
			return false
		}
	}
	return true
}

// awaitStragglers waits for pods that outlive the shutdown, without a limit until ctx ends. After
// that, and after the host's time, it waits for at most hangTime.
func (g *killing) awaitStragglers(ctx context.Context, release time.Time) {
	for _, batch := range g.batches {
		_, _ = batch.Done.Wait(ctx) // the loop below waits on after the end of ctx
	}
	until := maxTime(release, time.Now()).Add(hangTime)
	for _, batch := range g.batches {
		_, _ = batch.Done.Await(context.WithoutCancel(ctx), until) // a pod that still runs has no end in the report
	}
}

// outcomeLabel returns the outcome that the killer named, or else Failed or Ended.
func outcomeLabel(state kills.State) string {
	switch {
	case state.Result.Outcome != "":
		return state.Result.Outcome
	case state.Err != nil:
		return "Failed"
	default:
		return "Ended"
	}
}

// podsOf returns the pods of kills.
func podsOf(of []*kills.Kill) []*v1.Pod {
	pods := make([]*v1.Pod, len(of))
	for i, k := range of {
		pods[i] = k.Pod
	}
	return pods
}

// scheduleFromPods returns the schedule for a node that has none configured: one bucket that
// lasts as long as the longest grace period of a pod.
func scheduleFromPods(pods []*v1.Pod) plan.Schedule {
	seconds := graceperiod.DefaultSeconds
	for _, pod := range pods {
		if pod != nil && pod.Spec.TerminationGracePeriodSeconds != nil {
			seconds = max(seconds, *pod.Spec.TerminationGracePeriodSeconds)
		}
	}
	return plan.Schedule{{Seconds: seconds}}
}
