package rollout_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/command"
	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// TestMain makes the test binary a backend if its argument says so, as in zerodowntime itself.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "backend" {
		if err := command.New(os.Stdout, os.Stderr).Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	m.Run()
}

// testSettings returns settings for short runs. Requests that must not fail have seconds to
// spare on a slow machine.
func testSettings(t *testing.T) rollout.Settings {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return rollout.Settings{
		Backend: []string{self, "backend"}, Replicas: 2, Rate: 50, Delay: 500 * time.Millisecond, SleepSeconds: 4,
		GraceSeconds: 30, ShortGraceSeconds: 1, Task: 5 * time.Second, Websockets: 6, MinReady: 200 * time.Millisecond,
	}
}

// scenarioOf returns the scenario with a name.
func scenarioOf(s rollout.Settings, name string) rollout.Scenario {
	i := slices.Index(rollout.Names(), name)
	return rollout.Scenarios(s)[i]
}

// TestScenarios runs all scenarios at the same time, because each takes many seconds, and then
// checks the result of each.
func TestScenarios(t *testing.T) {
	usual, longDelay, shortSleep := testSettings(t), testSettings(t), testSettings(t)
	longDelay.Delay = time.Second
	shortSleep.SleepSeconds, shortSleep.Delay = 1, 2500*time.Millisecond
	tests := []struct {
		name     string
		settings rollout.Settings
		scenario string
		check    func(*testing.T, rollout.Result)
	}{
		{"without a sleep requests are refused", longDelay, rollout.NoSleep, func(t *testing.T, r rollout.Result) {
			require.NotZero(t, r.Requests.Refused)
			require.Positive(t, r.LastRefusalSeconds)
			for _, pod := range r.Pods {
				require.Empty(t, pod.PreStop)
				require.Equal(t, string(lifecycle.OutcomeGraceful), pod.Outcome)
				require.Equal(t, "exit status 0", pod.Exit)
			}
		}},
		{"with a sleep nothing fails", usual, rollout.Sleep, func(t *testing.T, r rollout.Result) {
			require.Zero(t, r.Requests.Failed())
			for _, pod := range r.Pods {
				require.Equal(t, string(lifecycle.HookCompleted), pod.PreStop)
				require.GreaterOrEqual(t, pod.SignalSeconds-pod.DeletedSeconds, 3.99, "SIGTERM comes after the sleep")
				require.Equal(t, "exit status 0", pod.Exit)
			}
		}},
		{"a sleep that is shorter than the delay is not enough", shortSleep, rollout.Sleep, func(t *testing.T, r rollout.Result) {
			require.NotZero(t, r.Requests.Refused)
		}},
		{"long requests end within the grace", usual, rollout.LongRequests, func(t *testing.T, r rollout.Result) {
			require.Zero(t, r.Requests.Failed())
			require.Zero(t, r.Killed())
			require.GreaterOrEqual(t, r.LongestAnswerSeconds, usual.Task.Seconds())
			require.Greater(t, r.LongestStopSeconds(), 5.0, "pods answer the requests that they have accepted")
		}},
		{"a short grace cuts long requests", usual, rollout.ShortGrace, func(t *testing.T, r rollout.Result) {
			require.NotZero(t, r.Requests.Cut)
			require.Equal(t, usual.Replicas, r.Killed())
			for _, pod := range r.Pods {
				require.Equal(t, string(lifecycle.HookCut), pod.PreStop, "the sleep is longer than the grace")
				require.Equal(t, string(lifecycle.OutcomeGraceExceeded), pod.Outcome)
				require.Equal(t, "signal: killed", pod.Exit)
			}
		}},
		{"websockets without a close frame break", usual, rollout.WebsocketsCut, func(t *testing.T, r rollout.Result) {
			require.NotZero(t, r.Requests.Cut)
			require.Zero(t, r.Requests.Moved)
		}},
		{"websockets with a close frame move", usual, rollout.WebsocketsDrain, func(t *testing.T, r rollout.Result) {
			require.Zero(t, r.Requests.Failed())
			require.NotZero(t, r.Requests.Moved)
		}},
	}
	results, errs := make([]rollout.Result, len(tests)), make([]error, len(tests))
	var running sync.WaitGroup
	for i, test := range tests {
		running.Go(func() {
			results[i], errs[i] = rollout.Run(t.Context(), test.settings, scenarioOf(test.settings, test.scenario), nil)
		})
	}
	running.Wait()
	for i, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			t.Cleanup(func() {
				if t.Failed() {
					t.Logf("measured: %+v", results[i])
				}
			})
			require.NoError(t, errs[i])
			require.Equal(t, test.scenario, results[i].Scenario)
			require.Len(t, results[i].Pods, test.settings.Replicas)
			require.NotZero(t, results[i].Requests.Answered)
			test.check(t, results[i])
		})
	}
}

// cancelAfter returns a context, a Progress that cancels it after a number of events, and the
// cause of the cancellation.
func cancelAfter(t *testing.T, number int) (context.Context, rollout.Progress, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	cause := errors.New("the user has interrupted the run")
	events := make(chan struct{}, 100)
	t.Cleanup(func() { cancel(nil) })
	return ctx, func(_, _, _ string, _ time.Duration) {
		if events <- struct{}{}; len(events) == number {
			cancel(cause)
		}
	}, cause
}

func TestRunEndsWithItsContext(t *testing.T) {
	s := testSettings(t)
	ctx, progress, cause := cancelAfter(t, 1)
	start := time.Now()
	_, err := rollout.Run(ctx, s, scenarioOf(s, rollout.Sleep), progress)
	require.ErrorIs(t, err, cause)
	require.Less(t, time.Since(start), 30*time.Second)
	ctx, progress, cause = cancelAfter(t, 2)
	_, err = rollout.Run(ctx, s, scenarioOf(s, rollout.NoSleep), progress)
	require.ErrorIs(t, err, cause)
}

func TestABackendThatDoesNotStart(t *testing.T) {
	s := testSettings(t)
	s.Backend = []string{"/bin/false"}
	_, err := rollout.Run(t.Context(), s, scenarioOf(s, rollout.NoSleep), nil)
	require.ErrorContains(t, err, "failed to start a backend")
	require.ErrorContains(t, err, "has ended before it was ready: exit status 1")
}
