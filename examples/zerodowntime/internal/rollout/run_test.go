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

// TestMain lets the test's own program be a backend, as zerodowntime is its own.
func TestMain(m *testing.M) {
	if len(os.Args) > 1 && os.Args[1] == "backend" {
		if err := command.New(os.Stdout, os.Stderr).Execute(); err != nil {
			fmt.Fprintln(os.Stderr, err)
		}
		return
	}
	m.Run()
}

// brief are settings for a test. What must not fail has seconds to spare.
func brief(t *testing.T) rollout.Settings {
	t.Helper()
	self, err := os.Executable()
	require.NoError(t, err)
	return rollout.Settings{
		Backend: []string{self, "backend"}, Replicas: 2, Rate: 50, Delay: 500 * time.Millisecond, SleepSeconds: 4,
		GraceSeconds: 30, ShortGraceSeconds: 1, Task: 5 * time.Second, Websockets: 6, MinReady: 200 * time.Millisecond,
	}
}

// scenario is the one of a name.
func scenario(s rollout.Settings, name string) rollout.Scenario {
	i := slices.Index(rollout.Names(), name)
	return rollout.Scenarios(s)[i]
}

// TestScenarios runs all scenarios at the same time, and then asks each what it measured.
func TestScenarios(t *testing.T) {
	usual, late, tooLate := brief(t), brief(t), brief(t)
	late.Delay = time.Second
	tooLate.SleepSeconds, tooLate.Delay = 1, 2500*time.Millisecond
	tests := []struct {
		name     string
		settings rollout.Settings
		scenario string
		check    func(*testing.T, rollout.Result)
	}{
		{"without a sleep requests are refused", late, rollout.NoSleep, func(t *testing.T, r rollout.Result) {
			require.NotZero(t, r.Requests.Refused)
			require.Positive(t, r.LastRefusalSeconds)
			for _, pod := range r.Pods {
				require.Empty(t, pod.PreStop)
				require.Equal(t, string(lifecycle.Graceful), pod.Outcome)
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
		{"a sleep that is shorter than the delay is not enough", tooLate, rollout.Sleep, func(t *testing.T, r rollout.Result) {
			require.NotZero(t, r.Requests.Refused)
		}},
		{"long requests end within the grace", usual, rollout.LongRequests, func(t *testing.T, r rollout.Result) {
			require.Zero(t, r.Requests.Failed())
			require.Zero(t, r.Killed())
			require.GreaterOrEqual(t, r.LongestAnswerSeconds, usual.Task.Seconds())
			require.Greater(t, r.LongestStopSeconds(), 5.0, "pods wait for what they have begun")
		}},
		{"a short grace cuts long requests", usual, rollout.ShortGrace, func(t *testing.T, r rollout.Result) {
			require.NotZero(t, r.Requests.Cut)
			require.Equal(t, usual.Replicas, r.Killed())
			for _, pod := range r.Pods {
				require.Equal(t, string(lifecycle.HookCut), pod.PreStop, "the sleep is longer than the grace")
				require.Equal(t, string(lifecycle.GraceExceeded), pod.Outcome)
				require.Equal(t, "signal: killed", pod.Exit)
			}
		}},
		{"websockets break that nobody closes", usual, rollout.WebsocketsCut, func(t *testing.T, r rollout.Result) {
			require.NotZero(t, r.Requests.Cut)
			require.Zero(t, r.Requests.Moved)
		}},
		{"websockets move that are closed with notice", usual, rollout.WebsocketsDrain, func(t *testing.T, r rollout.Result) {
			require.Zero(t, r.Requests.Failed())
			require.NotZero(t, r.Requests.Moved)
		}},
	}
	results, errs := make([]rollout.Result, len(tests)), make([]error, len(tests))
	var running sync.WaitGroup
	for i, test := range tests {
		running.Go(func() {
			results[i], errs[i] = rollout.Run(t.Context(), test.settings, scenario(test.settings, test.scenario), nil)
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

// ended ends a context after so many events of the pods.
func ended(t *testing.T, after int) (context.Context, rollout.Progress, error) {
	t.Helper()
	ctx, cancel := context.WithCancelCause(t.Context())
	reason := errors.New("the user has had enough")
	events := make(chan struct{}, 100)
	t.Cleanup(func() { cancel(nil) })
	return ctx, func(_, _, _ string, _ time.Duration) {
		if events <- struct{}{}; len(events) == after {
			cancel(reason)
		}
	}, reason
}

func TestRunEndsWithItsContext(t *testing.T) {
	s := brief(t)
	ctx, progress, reason := ended(t, 1)
	began := time.Now()
	_, err := rollout.Run(ctx, s, scenario(s, rollout.Sleep), progress)
	require.ErrorIs(t, err, reason)
	require.Less(t, time.Since(began), 30*time.Second)
	ctx, progress, reason = ended(t, 2)
	_, err = rollout.Run(ctx, s, scenario(s, rollout.NoSleep), progress)
	require.ErrorIs(t, err, reason)
}

func TestABackendThatDoesNotStart(t *testing.T) {
	s := brief(t)
	s.Backend = []string{"/bin/false"}
	_, err := rollout.Run(t.Context(), s, scenario(s, rollout.NoSleep), nil)
	require.ErrorContains(t, err, "failed to start a backend")
	require.ErrorContains(t, err, "has ended before it was ready: exit status 1")
}
