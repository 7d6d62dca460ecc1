package shutdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// drainOptions returns the embedder's functions as a drain of a shutdown calls them. policy
// returns the pod policy when the drain has asked for it.
func (m *Manager) drainOptions(calls *call.Group, event Event, policy func() PodPolicy) drain.Options {
	e := drain.Embedder{
		Pods: m.opts.Pods, Prepare: m.opts.Prepare, Hold: m.opts.Hold, OnPlan: m.opts.OnPlan,
		NoRetry:    func(err error) bool { return errors.Is(err, ErrNoRetry) },
		LateStart:  func() bool { return m.opts.LateStart(event) },
		BucketDone: m.opts.Metrics.Bucket,
		Marks:      m.marks(),
		Flushes:    m.flushes(),
	}
	if m.opts.Volumes != nil {
		e.AwaitUnmount = m.opts.Volumes.WaitForAllPodsUnmount
	}
	e.Kill = func(ctx context.Context, pod *v1.Pod, seconds int64) (kills.Result, error) {
		result, err := m.opts.Killer.KillPod(ctx, pod, KillRequest{GracePeriodSeconds: seconds, SetStatus: policy().of(pod).setStatus()})
		if err != nil {
			result, err = awaitKill(ctx, result, err)
		}
		return kills.Result(result), err
	}
	return drain.Options{Embedder: e, Plan: m.opts.Plan, Outbox: m.outbox, Calls: calls}
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

// outboxOptions returns the reporter as the outbox calls it.
func (m *Manager) outboxOptions() outbox.Options {
	o := outbox.Options{PublishAttempt: plan.NewBudget(nil, m.opts.Plan).Publish}
	if m.opts.StateDir != "" && m.store.BootErr() == nil {
		o.Changed = m.recorder.savePods
	}
	if reporter := m.opts.Reporter; reporter != nil {
		o.Publish = func(ctx context.Context, state any) error {
			return reporter.PublishNode(ctx, state.(NodeState)) //nolint:forcetypeassert // the manager publishes nothing else
		}
	}
	if flusher, ok := m.opts.Reporter.(StatusFlusher); ok {
		o.FlushPod = flusher.FlushPod
	}
	if marker, ok := m.opts.Reporter.(ReadinessMarker); ok {
		o.MarkNotReady = marker.MarkNotReady
	}
	if restorer, ok := m.opts.Reporter.(ReadinessRestorer); ok {
		o.RestoreReadiness = restorer.RestoreReadiness
	}
	return o
}

// policy asks for the pod policy of a kind of shutdown. If the answer is late or unknown,
// PolicySetTerminal counts.
func (m *Manager) policy(ctx context.Context, calls *call.Group, kind Kind, fail func(error)) PodPolicy {
	answer := call.Start(ctx, calls, "Options.Policy", func(context.Context) (PodPolicy, error) { return m.opts.Policy(kind), nil })
	policy, err := answer.Await(ctx, time.Now().Add(answerTime))
	switch {
	case err != nil:
		fail(fmt.Errorf("failed to ask for the pod policy, %s counts: %w", PolicySetTerminal, err))
		return PolicySetTerminal
	case policy.known():
		return policy
	default:
		fail(fmt.Errorf("pod policy %q for a shutdown of kind %q is not known, %s counts", policy, kind, PolicySetTerminal))
		return PolicySetTerminal
	}
}
