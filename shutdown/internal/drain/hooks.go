package drain

import (
	"context"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// Embedder has the functions of the embedder that a drain calls; nil: there is none, except for
// Pods, Kill, NoRetry, LateStart and BucketDone, which are never nil.
type Embedder struct {
	Pods          func(context.Context) ([]*v1.Pod, error)
	Kill          func(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error)
	NoRetry       func(error) bool
	LateStart     func() bool
	Prepare, Hold func(context.Context) error
	AwaitUnmount  func(context.Context, []*v1.Pod) error
	OnPlan        func(context.Context, plan.Plan)
	BucketDone    func(time.Duration) // counts the time of a bucket; returns at once
	Marks         bool                // pods are marked not ready before they are killed
	Flushes       bool                // final statuses are sent
}

// hooks calls the functions of the embedder for one drain, and has what all parts of the drain use.
// A function that hangs is left running; Run names it at the end.
type hooks struct {
	Options
	halt

	listener Listener
}

// lateStart asks whether the drain is to begin late. If the answer is late, the drain begins at
// once.
func (h *hooks) lateStart() bool {
	answer := call.Start(h.run, h.Calls, "Options.LateStart", func(context.Context) (bool, error) { return h.LateStart(), nil })
	late, err := answer.Await(h.run, time.Now().Add(answerTime))
	if err != nil {
		h.listener.Fail(fmt.Errorf("failed to ask whether the drain begins late, it begins at once: %w", err))
	}
	return late
}

// onPlan passes the plan to Options.OnPlan and does not wait.
func (h *hooks) onPlan(planned func() plan.Plan) {
	if h.OnPlan == nil {
		return
	}
	call.Start(h.run, h.Calls, "Options.OnPlan", func(ctx context.Context) (struct{}, error) {
		h.OnPlan(ctx, planned()) // planned calls Options.Plan.PriorityOf
		return struct{}{}, nil
	})
}

// awaitUnmount waits until the volumes of the pods are unmounted.
func (h *hooks) awaitUnmount(ctx context.Context, of []*kills.Kill, until time.Time) {
	if h.AwaitUnmount == nil {
		return
	}
	pods := make([]*v1.Pod, len(of))
	for i, k := range of {
		pods[i] = k.Pod()
	}
	err := h.callUntil(ctx, until, "Options.Volumes", func(ctx context.Context) error { return h.AwaitUnmount(ctx, pods) })
	if err != nil {
		h.listener.Fail(fmt.Errorf("Failed while waiting for all the volumes belonging to Pods in this group to unmount: %w", err)) //nolint:staticcheck // the kubelet's text
	}
}

// callUntil calls a function whose context ends at a time, and waits for it until then.
func (h *hooks) callUntil(ctx context.Context, until time.Time, name string, f func(context.Context) error) error {
	ctx, cancel := context.WithDeadlineCause(ctx, until, call.ErrTimeSpent)
	defer cancel()
	called := call.Start(ctx, h.Calls, name, func(ctx context.Context) (struct{}, error) { return struct{}{}, f(ctx) })
	_, err := called.Await(ctx, until)
	return err
}
