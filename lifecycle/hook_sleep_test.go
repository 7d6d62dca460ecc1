//go:build go1.25

package lifecycle_test

import (
	"cmp"
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

const sleepCutText = "container terminated before sleep hook finished"

// The cases of KEP-3960 and KEP-4818 for the runner alone. The context may end during the sleep. If less than 0.1 s of the sleep is
// left then, the sleep has completed. If the container has exited, the sleep has not failed (k/k#134338). Otherwise the sleep is
// cut, and the hook fails with the kubelet's error.
func TestSleepHook(t *testing.T) {
	const (
		never    = time.Duration(0)
		hasEnded = -time.Second
	)
	for name, test := range map[string]struct {
		seconds      int64           // of the sleep
		contextEnds  time.Duration   // after this time; never: it does not
		cause        lifecycle.Cause // with which the context ends; "": GraceSpent
		featureIsOff bool            // the feature gate PodLifecycleSleepAction is off
		took         time.Duration   // how long the hook takes; zero: it returns at once
		isCut        bool            // the hook fails, and the cut is counted
		endsByExit   bool            // the exit is counted
	}{
		"shorter than the grace":                      {seconds: 5, contextEnds: 30 * time.Second, took: 5 * time.Second},
		"without a deadline":                          {seconds: 5, contextEnds: never, took: 5 * time.Second},
		"as long as the grace":                        {seconds: 30, contextEnds: 30 * time.Second, took: 30 * time.Second},
		"as long as a grace that began 20 ms earlier": {seconds: 30, contextEnds: 30*time.Second - 20*time.Millisecond, took: 30*time.Second - 20*time.Millisecond},
		"longer than the grace":                       {seconds: 3, contextEnds: 2 * time.Second, took: 2 * time.Second, isCut: true},
		"longer than the grace by 0.1 s":              {seconds: 3, contextEnds: 2900 * time.Millisecond, took: 2900 * time.Millisecond, isCut: true},
		"longer than time.Duration":                   {seconds: math.MaxInt64, contextEnds: time.Hour, took: time.Hour, isCut: true},
		"cut by a shortened grace":                    {seconds: 20, contextEnds: 2 * time.Second, cause: lifecycle.CauseShortened, took: 2 * time.Second, isCut: true},
		"its container exits":                         {seconds: 20, contextEnds: 2 * time.Second, cause: lifecycle.CauseContainerExited, took: 2 * time.Second, endsByExit: true},
		"its container has exited earlier":            {seconds: 20, contextEnds: hasEnded, cause: lifecycle.CauseContainerExited, endsByExit: true},
		"zero":                                        {seconds: 0, contextEnds: 30 * time.Second},
		"zero, the context has ended":                 {seconds: 0, contextEnds: hasEnded},
		"negative":                                    {seconds: -5, contextEnds: 30 * time.Second},
		"the smallest int64":                          {seconds: math.MinInt64, contextEnds: never},
		"the feature is off":                          {seconds: 20, contextEnds: never, featureIsOff: true},
		"the feature is off, the context has ended":   {seconds: 20, contextEnds: hasEnded, featureIsOff: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				ctx, cause := t.Context(), cmp.Or(test.cause, lifecycle.CauseGraceSpent)
				if test.contextEnds != never {
					var cancel context.CancelFunc
					ctx, cancel = context.WithTimeoutCause(ctx, test.contextEnds, cause)
					defer cancel()
				}
				counters, count := countingMetrics(t)
				options := lifecycle.HandlerRunnerOptions{Metrics: counters}
				if test.featureIsOff {
					options.Gates = gateWithout{off: lifecycle.PodLifecycleSleepAction}
				}
				began := time.Now()
				_, err := runHook(ctx, options, sleepHandler(test.seconds))
				require.Equal(t, test.took, time.Since(began))
				require.Equal(t, test.isCut, count("kubelet_sleep_action_terminated_early_total") > 0)
				require.Equal(t, test.endsByExit, count("kubelet_sleep_action_ended_by_container_exit_total") > 0)
				if !test.isCut {
					require.NoError(t, err)
					return
				}
				require.EqualError(t, err, sleepCutText)
				require.ErrorIs(t, err, cause)
			})
		})
	}
}

// The container of a sleep hook of 20 s exits after 3 s, which ends the hook's context. The agent's own hook runner then
// returns, with an error or without. In both cases the hook is Cut, and has not failed: there is no FailedPreStopHook event.
func TestCustomRunnersSleepIsCutByContainerExit(t *testing.T) {
	for _, hookErr := range []error{nil, context.Canceled} {
		inBubble(t, graceSeconds(30), func(b *testBed) {
			b.addMainWithHook("app", sleepHandler(20), lifecycletest.Script{ExitAfter: 3 * time.Second})
			hook := b.killPod().Containers[0].Hook
			require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Cause: lifecycle.CauseContainerExited, Took: 3 * time.Second}, hook)
			b.requireEvents("Killing")
		}, withHookRunner(func(ctx context.Context) error { <-ctx.Done(); return hookErr }))
	}
}

// The terminator skips a sleep hook of 40 s, and takes no time, if it knows that the sleep feature is off: by its own gate, or
// by that of the request's hook runner.
func TestSleepHookIsSkippedWithTheFeatureOff(t *testing.T) {
	off := gateWithout{off: lifecycle.PodLifecycleSleepAction}
	for name, test := range map[string]struct {
		gates   featuregate.FeatureGate // of the terminator
		request lifecycle.Request
	}{
		"in the terminator":          {gates: off},
		"in the runner of a request": {request: lifecycle.Request{Hooks: lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{Gates: off})}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(60), func(b *testBed) {
				b.addMainWithHook("app", sleepHandler(40), lifecycletest.Script{})
				result, err := b.KillPod(b.Context(), b.pod, test.request)
				require.NoError(b, err)
				require.Equal(b, lifecycle.HookSkipped, result.Containers[0].Hook.Outcome)
				require.Zero(b, b.elapsed())
				b.requireEvents("Killing")
			}, func(o *lifecycle.TerminatorOptions) { o.Gates = test.gates })
		})
	}
}
