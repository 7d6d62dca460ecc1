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
	// answerTime bounds the wait for a function that should return at once.
	answerTime = time.Second
	// timerLag is how much later than a timer a goroutine may run that waits for the same time.
	timerLag = 100 * time.Millisecond
	// longestListTime bounds the wait for the first list of pods if the schedule depends on it.
	longestListTime = 30 * time.Second
)

// hooks calls the functions of the Options for one drain. Each call has its own goroutine, and
// each wait for it is bounded. A function that hangs is left running; Run names it at the end.
type hooks struct {
	opts    *Options
	ctx     context.Context // of Run, or of TerminateAll
	calls   *call.Group
	fail    func(error)             // logs and reports an error; ignores nil
	listing *call.Future[[]*v1.Pod] // the last call of Pods; nil: none was made
	report  *call.Future[struct{}]  // the call of OnReport; nil: none was made
}

// policy asks for the pod policy. If the answer is late or unknown, PolicySetTerminal counts.
func (h *hooks) policy(kind Kind) PodPolicy {
	answer := call.Start(h.ctx, h.calls, "Options.Policy", func(context.Context) (PodPolicy, error) { return h.opts.Policy(kind), nil })
	policy, err := answer.Await(h.ctx, time.Now().Add(answerTime))
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

// lateStart asks whether the drain is to begin late. If the answer is late, the drain begins at
// once.
func (h *hooks) lateStart(event Event) bool {
	answer := call.Start(h.ctx, h.calls, "Options.LateStart", func(context.Context) (bool, error) { return h.opts.LateStart(event), nil })
	late, err := answer.Await(h.ctx, time.Now().Add(answerTime))
	if err != nil {
		h.fail(fmt.Errorf("failed to ask whether the drain begins late, it begins at once: %w", err))
	}
	return late
}

// startListing calls Options.Pods and does not wait.
func (h *hooks) startListing() *call.Future[[]*v1.Pod] {
	h.listing = call.Start(h.ctx, h.calls, "Options.Pods", func(context.Context) ([]*v1.Pod, error) { return h.opts.Pods(), nil })
	return h.listing
}

// listPods returns the current pods. It waits for a call that is still running instead of making
// another one. If the list is not there by until, it returns no pods.
func (h *hooks) listPods(ctx context.Context, until time.Time) []*v1.Pod {
	listing := h.listing
	if listing != nil {
		select {
		case <-listing.Done():
			listing = nil
		default:
		}
	}
	if listing == nil {
		listing = h.startListing()
	}
	pods, err := listing.Await(ctx, until)
	if err != nil {
		h.fail(fmt.Errorf("failed to list the pods: %w", err))
	}
	return pods
}

// onPlan passes the plan to Options.OnPlan and does not wait. The plan has no pods if they cannot
// be listed.
func (h *hooks) onPlan(listed *call.Future[[]*v1.Pod], table plan.Timetable) {
	if h.opts.OnPlan == nil {
		return
	}
	call.Start(h.ctx, h.calls, "Options.OnPlan", func(ctx context.Context) (struct{}, error) {
		pods, _ := listed.Await(ctx, table.Release()) // listPods reports the error
		h.opts.OnPlan(ctx, table.Plan(pods, h.opts.Plan))
		return struct{}{}, nil
	})
}

// onReport passes the final report to Options.OnReport and does not wait.
func (h *hooks) onReport(report Report) {
	if h.opts.OnReport == nil {
		return
	}
	h.report = call.Start(h.ctx, h.calls, "Options.OnReport", func(ctx context.Context) (struct{}, error) {
		h.opts.OnReport(ctx, report)
		return struct{}{}, nil
	})
}

// awaitReport waits until Options.OnReport has returned. Call it after the end of the drain.
func (h *hooks) awaitReport(ctx context.Context, until time.Time) {
	if h.report != nil {
		_, _ = h.report.Await(ctx, until) // hangingError names a call that has not returned
	}
}

// hold waits for Options.Hold before the first kill, at most until a time. A hold that the end of
// the shutdown has cut short is no failure.
func (h *hooks) hold(shutdown context.Context, until time.Time) {
	if h.opts.Hold == nil || !time.Now().Before(until) {
		return
	}
	err := h.callUntil(shutdown, until, "Options.Hold", h.opts.Hold)
	if err != nil && shutdown.Err() == nil {
		h.fail(fmt.Errorf("failed to hold the shutdown: %w", err))
	}
}

// awaitUnmount waits until the volumes of the pods are unmounted.
func (h *hooks) awaitUnmount(ctx context.Context, of []*kills.Kill, until time.Time) {
	if h.opts.Volumes == nil {
		return
	}
	pods := podsOf(of)
	err := h.callUntil(ctx, until, "Options.Volumes", func(ctx context.Context) error {
		return h.opts.Volumes.WaitForAllPodsUnmount(ctx, pods)
	})
	if err != nil {
		h.fail(fmt.Errorf("failed while waiting for all the volumes belonging to pods in this group to unmount: %w", err))
	}
}

// onRelease calls Options.OnRelease and waits for it until a time.
func (h *hooks) onRelease(ctx context.Context, until time.Time) {
	if h.opts.OnRelease == nil {
		return
	}
	err := h.callUntil(ctx, until, "Options.OnRelease", func(ctx context.Context) error {
		h.opts.OnRelease(ctx)
		return nil
	})
	if err != nil {
		h.fail(fmt.Errorf("failed to say that the host is let go: %w", err))
	}
}

// callUntil calls a function whose context ends at a time, and waits for it until then.
func (h *hooks) callUntil(ctx context.Context, until time.Time, name string, f func(context.Context) error) error {
	ctx, cancel := context.WithDeadlineCause(ctx, until, errTimeSpent)
	defer cancel()
	called := call.Start(ctx, h.calls, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	_, err := called.Await(ctx, until)
	return err
}
