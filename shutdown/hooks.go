package shutdown

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

const (
	// answerTime is how long a drain waits for a function that has nothing to wait for.
	answerTime = time.Second
	// timerLag is how late a goroutine may be that waits for the same time.
	timerLag = 100 * time.Millisecond
	// longestList is how long the first list of pods is waited for where the schedule is
	// made from it.
	longestList = 30 * time.Second
)

// hooks calls the functions of the options for one drain. Each call has a goroutine of
// its own and an end to the waiting for it: a function that hangs is left behind, and
// Run knows of it.
type hooks struct {
	opts    *Options
	ctx     context.Context // of Run, or of TerminateAll
	calls   *call.Group
	fail    func(error)             // has an error logged and reported; nil is none
	listing *call.Future[[]*v1.Pod] // the last call of Pods; nil: there was none
}

// policy asks what becomes of the pods. Without a known answer in time the default counts.
func (h *hooks) policy(kind Kind) PodPolicy {
	asked := call.Start(h.ctx, h.calls, "Options.Policy", func(context.Context) (PodPolicy, error) { return h.opts.Policy(kind), nil })
	policy, err := asked.Await(h.ctx, time.Now().Add(answerTime))
	switch {
	case err != nil:
		h.fail(fmt.Errorf("failed to ask for the pod policy, %s counts: %w", PolicySetTerminal, err))
		return PolicySetTerminal
	case policy.known():
		return policy
	default:
		h.fail(fmt.Errorf("pod policy %q for a shutdown of kind %q is not known, %s counts", policy, kind, PolicySetTerminal))
		return PolicySetTerminal
	}
}

// late asks whether the drain is to begin late. Without an answer in time it begins at
// once.
func (h *hooks) late(event Event) bool {
	asked := call.Start(h.ctx, h.calls, "Options.LateStart", func(context.Context) (bool, error) { return h.opts.LateStart(event), nil })
	late, err := asked.Await(h.ctx, time.Now().Add(answerTime))
	if err != nil {
		h.fail(fmt.Errorf("failed to ask whether the drain begins late, it begins at once: %w", err))
	}
	return late
}

// startList asks for the pods and does not wait.
func (h *hooks) startList() *call.Future[[]*v1.Pod] {
	h.listing = call.Start(h.ctx, h.calls, "Options.Pods", func(context.Context) ([]*v1.Pod, error) { return h.opts.Pods(), nil })
	return h.listing
}

// list gives the pods of now, or of a call that has not returned yet. Without an answer
// by the given time there are none.
func (h *hooks) list(ctx context.Context, until time.Time) []*v1.Pod {
	under := h.listing
	if under != nil {
		select {
		case <-under.Done():
			under = nil
		default:
		}
	}
	if under == nil {
		under = h.startList()
	}
	pods, err := under.Await(ctx, until)
	if err != nil {
		h.fail(fmt.Errorf("failed to list the pods: %w", err))
	}
	return pods
}

// planned tells what the drain is about to do, once the pods are listed; without pods where
// they cannot be. It does not wait.
func (h *hooks) planned(listed *call.Future[[]*v1.Pod], table plan.Timetable) {
	if h.opts.OnPlan == nil {
		return
	}
	call.Start(h.ctx, h.calls, "Options.OnPlan", func(ctx context.Context) (struct{}, error) {
		pods, _ := listed.Await(ctx, table.Release()) // that they are not listed is reported where they are needed
		h.opts.OnPlan(ctx, table.Plan(pods, h.opts.Plan))
		return struct{}{}, nil
	})
}

// reported hands in the report of a drain that is over. It does not wait.
func (h *hooks) reported(report Report) {
	if h.opts.OnReport == nil {
		return
	}
	call.Start(h.ctx, h.calls, "Options.OnReport", func(ctx context.Context) (struct{}, error) {
		h.opts.OnReport(ctx, report)
		return struct{}{}, nil
	})
}

// hold gives an external actor its time before the first kill, until then. The end of
// the shutdown ends it, and is no failure.
func (h *hooks) hold(shutdown context.Context, until time.Time) {
	if h.opts.Hold == nil || !time.Now().Before(until) {
		return
	}
	err := h.within(shutdown, until, "Options.Hold", h.opts.Hold)
	if err != nil && shutdown.Err() == nil {
		h.fail(fmt.Errorf("failed to hold the shutdown: %w", err))
	}
}

// unmount waits for the volumes of pods.
func (h *hooks) unmount(ctx context.Context, of []*kills.Kill, until time.Time) {
	if h.opts.Volumes == nil {
		return
	}
	pods := podsOf(of)
	err := h.within(ctx, until, "Options.Volumes", func(ctx context.Context) error {
		return h.opts.Volumes.WaitForAllPodsUnmount(ctx, pods)
	})
	if err != nil {
		h.fail(fmt.Errorf("failed while waiting for all the volumes belonging to pods in this group to unmount: %w", err))
	}
}

// released calls OnRelease, which has what is left of the host's time.
func (h *hooks) released(ctx context.Context, until time.Time) {
	if h.opts.OnRelease == nil {
		return
	}
	err := h.within(ctx, until, "Options.OnRelease", func(ctx context.Context) error {
		h.opts.OnRelease(ctx)
		return nil
	})
	if err != nil {
		h.fail(fmt.Errorf("failed to say that the host is let go: %w", err))
	}
}

// within calls a function whose context ends at a time, and waits for it until then.
func (h *hooks) within(ctx context.Context, until time.Time, name string, f func(context.Context) error) error {
	ctx, cancel := context.WithDeadlineCause(ctx, until, errTimeSpent)
	defer cancel()
	called := call.Start(ctx, h.calls, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	_, err := called.Await(ctx, until)
	return err
}
