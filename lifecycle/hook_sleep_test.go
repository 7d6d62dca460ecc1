//go:build go1.25

package lifecycle_test

import (
	"context"
	"math"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

const (
	cutShortCounter    = "kubelet_sleep_action_terminated_early_total"
	endedByExitCounter = "kubelet_sleep_action_ended_by_container_exit_total"
	sleepCutText       = "container terminated before sleep hook finished"
)

// The cases of KEP-3960 and KEP-4818 for the runner alone: a sleep of some seconds under a context that ends
// after grace. A sleep that lacks less than 0.1 s at the end of its context has completed, any other is cut.
func TestSleepHook(t *testing.T) {
	const none = 0
	tests := map[string]struct {
		seconds int64
		grace   time.Duration // none: no deadline
		took    time.Duration // how long the hook takes; zero: it returns at once
		cut     bool          // the hook fails because its context has ended
	}{
		"its duration":                {seconds: 5, grace: 30 * time.Second, took: 5 * time.Second},
		"without a deadline":          {seconds: 5, grace: none, took: 5 * time.Second},
		"as long as the grace":        {seconds: 30, grace: 30 * time.Second, took: 30 * time.Second},
		"a grace set a moment before": {seconds: 30, grace: 30*time.Second - 20*time.Millisecond, took: 30*time.Second - 20*time.Millisecond},
		"longer than the grace":       {seconds: 3, grace: 2 * time.Second, took: 2 * time.Second, cut: true},
		"longer by a tenth of second": {seconds: 3, grace: 2900 * time.Millisecond, took: 2900 * time.Millisecond, cut: true},
		"longer than time.Duration":   {seconds: math.MaxInt64, grace: time.Hour, took: time.Hour, cut: true},
		"zero":                        {seconds: 0, grace: 30 * time.Second},
		"negative":                    {seconds: -5, grace: 30 * time.Second},
		"as negative as can be":       {seconds: math.MinInt64, grace: none},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx := t.Context()
				if tt.grace != none {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeoutCause(ctx, tt.grace, lifecycle.CauseGraceSpent)
					defer cancel()
				}
				handle, count := countingMetrics(t)
				began := time.Now()
				msg, err := runHook(ctx, lifecycle.HandlerRunnerOptions{Metrics: handle}, sleepHandler(tt.seconds))
				require.Equal(t, tt.took, time.Since(began))
				require.Zero(t, count(endedByExitCounter))
				if !tt.cut {
					require.NoError(t, err)
					require.Empty(t, msg)
					require.Zero(t, count(cutShortCounter))
					return
				}
				require.EqualError(t, err, sleepCutText)
				require.ErrorIs(t, err, lifecycle.CauseGraceSpent)
				require.EqualValues(t, 1, count(cutShortCounter))
			})
		})
	}
}

// A sleep of 0 s or less succeeds even if its context has ended, and is not counted as terminated early.
func TestSleepHookOfZeroSecondsIsNeverCut(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(lifecycle.CauseGraceSpent)
	handle, count := countingMetrics(t)
	for _, seconds := range []int64{0, -1, math.MinInt64} {
		msg, err := runHook(ctx, lifecycle.HandlerRunnerOptions{Metrics: handle}, sleepHandler(seconds))
		require.NoError(t, err)
		require.Empty(t, msg)
	}
	require.Zero(t, count(cutShortCounter))
}

// A sleep of 20 s whose context ends after 2 s fails then, with the cause of the context and the kubelet's text.
func TestCancelledSleepHookFails(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(2*time.Second, func() { cancel(lifecycle.CauseShortened) })
		began := time.Now()
		msg, err := runHook(ctx, lifecycle.HandlerRunnerOptions{}, sleepHandler(20))
		require.Equal(t, 2*time.Second, time.Since(began))
		require.ErrorIs(t, err, lifecycle.CauseShortened)
		require.Equal(t, `Sleep lifecycle hook (20) for Container "server" in Pod "web_shop(42)" failed - error: `+sleepCutText, msg)
	})
}

// A sleep ends when its container exits (k/k#134338). It has not failed, and is not counted as
// terminated early.
func TestSleepHookEndsWhenItsContainerExits(t *testing.T) {
	tests := map[string]time.Duration{
		"while it sleeps":     2 * time.Second,
		"before it has begun": 0,
	}
	for name, after := range tests {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cancel := context.WithCancelCause(t.Context())
				if after == 0 {
					cancel(lifecycle.CauseContainerExited)
				} else {
					time.AfterFunc(after, func() { cancel(lifecycle.CauseContainerExited) })
				}
				handle, count := countingMetrics(t)
				began := time.Now()
				msg, err := runHook(ctx, lifecycle.HandlerRunnerOptions{Metrics: handle}, sleepHandler(20))
				require.NoError(t, err)
				require.Empty(t, msg)
				require.Equal(t, after, time.Since(began))
				require.EqualValues(t, 1, count(endedByExitCounter))
				require.Zero(t, count(cutShortCounter))
			})
		})
	}
}

// With the feature off, a sleep hook succeeds at once, as in the kubelet, even if its context has ended.
func TestSleepHookWithTheFeatureOff(t *testing.T) {
	gate := featuregate.NewFeatureGate()
	require.NoError(t, lifecycle.AddFeatureGates(gate))
	require.NoError(t, gate.Set("PodLifecycleSleepAction=false"))
	synctest.Test(t, func(t *testing.T) {
		ended, cancel := context.WithCancel(t.Context())
		cancel()
		handle, count := countingMetrics(t)
		began := time.Now()
		for _, ctx := range []context.Context{t.Context(), ended} {
			msg, err := runHook(ctx, lifecycle.HandlerRunnerOptions{Gates: gate, Metrics: handle}, sleepHandler(20))
			require.NoError(t, err)
			require.Empty(t, msg)
		}
		require.Zero(t, time.Since(began))
		require.Zero(t, count(cutShortCounter))
	})
}

// The container of a sleep hook exits after 3 s. The agent's own runner then ends the sleep, with an error or
// without. The hook is Cut either way, and has not failed.
func TestCustomRunnersSleepIsCutByContainerExit(t *testing.T) {
	for _, err := range []error{nil, context.Canceled} {
		inBubble(t, graceSeconds(30), func(b *testBed) {
			b.addMain("app", sleepHandler(20), lifecycletest.Script{ExitAfter: 3 * time.Second})
			hook := b.killPod().Containers[0].Hook
			require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.CauseContainerExited, Took: 3 * time.Second}, hook)
			b.requireEvents("Killing")
		}, withHooks(func(ctx context.Context) error { <-ctx.Done(); return err }))
	}
}

// The sleep feature may be off in the terminator, in its runner, or in the runner of a request. In each case a sleep of
// 40 s takes no time, as in a kubelet without the feature. The hook is Skipped if the terminator knows that the feature is
// off. It is Completed if only the runner knows: inBubble wraps the runner, so that the terminator cannot see its gate.
func TestSleepFeatureOff(t *testing.T) {
	off := gateWithout{off: lifecycle.PodLifecycleSleepAction}
	runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Gates: off})
	for name, test := range map[string]struct {
		options func(*lifecycle.TerminatorOptions)
		request lifecycle.Request
		want    lifecycle.HookOutcome
	}{
		"in the terminator":          {options: func(o *lifecycle.TerminatorOptions) { o.Gates = off }, want: lifecycle.HookSkipped},
		"in its runner":              {options: func(o *lifecycle.TerminatorOptions) { o.Hooks = runner }, want: lifecycle.HookCompleted},
		"in the runner of a request": {options: func(*lifecycle.TerminatorOptions) {}, request: lifecycle.Request{Hooks: runner}, want: lifecycle.HookSkipped},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(60), func(b *testBed) {
				b.addMain("app", sleepHandler(40), lifecycletest.Script{})
				result, err := b.KillPod(b.Context(), b.pod, test.request)
				require.NoError(b, err)
				require.Equal(b, test.want, result.Containers[0].Hook.Outcome)
				require.Zero(b, b.elapsed())
				b.requireEvents("Killing")
			}, test.options)
		})
	}
}
