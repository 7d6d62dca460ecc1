//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// withStartTaking returns the script of a container whose start takes a while and ignores its context.
func withStartTaking(d time.Duration, s lifecycletest.Script) lifecycletest.Script {
	s.StartTakes, s.StartIgnoresContext = d, true
	return s
}

// Start does not call its function after the termination, until Forget says that the pod may be started
// again. After Close it never does.
func TestStartIsRefusedAfterTheTerminationHasBegun(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addStopped("app")
		b.killPod()
		err := b.Start(b.Context(), b.pod, "app", func(context.Context) error {
			require.Fail(b, "started")
			return nil
		})
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.ErrorContains(b, err, `failed to start container "app" of pod "pod_ns(uid)"`)
		b.Forget(b.pod)
		require.NoError(b, b.startContainer("app", "1", lifecycletest.Script{}))
		require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
		require.NoError(b, b.Close(b.Context()))
		require.ErrorIs(b, b.startContainer("app", "2", lifecycletest.Script{}), lifecycle.ErrClosed)
	})
}

// Invalid arguments are errors, and the start function is not called.
func TestStartRejectsInvalidArguments(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		nothing := func(context.Context) error { return nil }
		require.ErrorContains(b, b.Start(b.Context(), nil, "app", nothing), "the pod is nil")
		require.ErrorContains(b, b.Start(b.Context(), b.pod, "app", nil), "the start function is nil")
		require.ErrorContains(b, b.Start(b.Context(), b.pod, "app", nothing), "the pod's spec has no such container")
	})
}

// A sidecar waits for a container that is being started as for one that is running.
func TestContainerThatIsStartingIsStoppedWithTheOthers(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addStopped("late")
		started := startCall(func() error {
			return b.startContainer("late", "late", withStartTaking(5*time.Second, lifecycletest.Script{ExitAfterTerm: 2 * time.Second}))
		})
		result := b.killPod()
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
		b.requireStop("late", 25, 5*time.Second)
		b.requireStop("proxy", 23, 7*time.Second)
		require.Equal(b, "late", result.Containers[0].ID)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		b.requireEvents("Killing", "Killing")
	})
}

// The termination cancels the context of a start. Only the runtime's list decides: a failed start that
// left nothing is not RuntimeStuck.
func TestTerminationCancelsAStart(t *testing.T) {
	cancelled := errors.New("pull cancelled")
	for name, test := range map[string]struct {
		runs  bool
		panic bool
		want  lifecycle.Outcome
	}{
		"it fails, and nothing runs":           {want: lifecycle.OutcomeNotFound},
		"it fails, and its container runs":     {runs: true, want: lifecycle.OutcomeGraceful},
		"it panics, and nothing runs":          {panic: true, want: lifecycle.OutcomeNotFound},
		"it panics, and its container runs on": {panic: true, runs: true, want: lifecycle.OutcomeGraceful},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(30), func(b *testBed) {
				b.addStopped("app")
				started := startCall(func() error {
					return b.Start(b.quietContext(), b.pod, "app", func(ctx context.Context) error {
						<-ctx.Done()
						require.Equal(b, lifecycle.ErrTerminating, context.Cause(ctx))
						if test.runs {
							b.rt.Start(b.pod, "app", "1", lifecycletest.Script{})
						}
						if test.panic {
							panic("boom")
						}
						return cancelled
					})
				})
				require.Equal(b, test.want, b.killPod().Outcome())
				err := started()
				require.ErrorIs(b, err, lifecycle.ErrTerminating)
				if test.panic {
					require.ErrorContains(b, err, "the start panicked: boom")
				} else {
					require.ErrorIs(b, err, cancelled)
				}
				require.Zero(b, b.elapsed())
			})
		})
	}
}

// All starts are cancelled at once, also of sidecars, before the runtime has listed the containers.
func TestStartIsCancelledBeforeTheFirstList(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfter: time.Second})
		b.addMain("app", nil, lifecycletest.Script{})
		b.rt.SetLists(lifecycletest.Lists{Poll: 5 * time.Second})
		b.sleepUntil(2 * time.Second)
		started := startCall(func() error {
			return b.startContainer("proxy", "proxy-2", lifecycletest.Script{StartTakes: time.Hour})
		})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
		require.Equal(b, 2*time.Second, b.elapsed())
		<-termination.Done()
	}, func(o *lifecycle.TerminatorOptions) { o.StopTimeoutSlack = 10 * time.Second })
}

// A start ignores its cancellation. The termination waits for it until GiveUpAfter past the deadline,
// because it may still create a container, which is RuntimeStuck. The sidecar waits only until the
// deadline.
func TestStartThatNeverReturnsIsStuck(t *testing.T) {
	inBubble(t, graceSeconds(3), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addStopped("app")
		hangs := make(chan struct{})
		started := startCall(func() error {
			return b.Start(b.Context(), b.pod, "app", func(context.Context) error { <-hangs; return nil })
		})
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, `failed to stop container "app": its start has not returned`)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Containers[0].Outcome)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Containers[1].Outcome)
		b.requireStop("proxy", 2, 3*time.Second)
		require.Equal(b, 3*time.Second+lifecycle.DefaultGiveUpAfter, b.elapsed())
		close(hangs)
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
	})
}

// A start ignores its cancellation and returns at 10 s, when the termination has given up. Start itself
// then stops the container before it returns.
func TestContainerStartedAfterTheTerminationIsStopped(t *testing.T) {
	inBubble(t, graceSeconds(3), func(b *testBed) {
		b.addStopped("late")
		started := startCall(func() error {
			return b.startContainer("late", "late", withStartTaking(10*time.Second, lifecycletest.Script{IgnoreTerm: true}))
		})
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "its start has not returned")
		require.Equal(b, 4*time.Second, b.elapsed())
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
		require.Len(b, b.rt.Exits(), 1)
		require.GreaterOrEqual(b, b.elapsed(), 10*time.Second)
	}, giveUpAfterOneSecond)
}

// A container is started after the termination has given up, and cannot be stopped. Start is the only one
// left to report that, so its error has the error of the stop.
func TestContainerStartedAfterTheTerminationThatCannotBeStopped(t *testing.T) {
	inBubble(t, graceSeconds(3), func(b *testBed) {
		b.addStopped("late")
		started := startCall(func() error {
			return b.startContainer("late", "late", withStartTaking(10*time.Second, lifecycletest.Script{FailStops: -1}))
		})
		_, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "its start has not returned")
		err = started()
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
	}, giveUpAfterOneSecond)
}

// Two starts of one container run at the same time. Neither replaces the other, so the termination finds
// and stops both containers.
func TestTwoStartsOfOneContainer(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addStopped("app")
		first := startCall(func() error {
			return b.startContainer("app", "1", lifecycletest.Script{StartTakes: 2 * time.Second})
		})
		require.NoError(b, b.startContainer("app", "2", lifecycletest.Script{}))
		require.NoError(b, first())
		require.Len(b, b.killPod().Containers, 2)
		require.Len(b, b.rt.Exits(), 2)
	})
}

// The error of a failed start is that of the start function, and nothing is kept of the pod.
func TestFailedStartIsWrapped(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addStopped("app")
		broken := errors.New("no such image")
		err := b.startContainer("app", "1", lifecycletest.Script{StartErr: broken})
		require.ErrorIs(b, err, broken)
		require.NotErrorIs(b, err, lifecycle.ErrTerminating)
		require.Zero(b, b.Pods(), "nothing is kept of it")
	})
}

// Close cancels a start function in progress, even if its pod was forgotten.
func TestCloseEndsTheContextOfAStart(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addStopped("app")
		for _, isForgotten := range []bool{false, true} {
			started := startCall(func() error {
				return b.Start(b.Context(), b.pod, "app", func(ctx context.Context) error {
					<-ctx.Done()
					return context.Cause(ctx)
				})
			})
			if isForgotten {
				b.Forget(b.pod)
			}
			require.NoError(b, b.Close(b.Context()))
			require.ErrorIs(b, started(), lifecycle.ErrClosed)
		}
	})
}

// A start ignores its context. Close cannot wait for it, because it runs in the agent's goroutine.
func TestCloseDoesNotWaitForAStart(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addStopped("app")
		started := startCall(func() error {
			return b.startContainer("app", "1", withStartTaking(5*time.Second, lifecycletest.Script{}))
		})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		synctest.Wait()
		require.NoError(b, b.Close(b.Context()))
		require.Zero(b, b.elapsed())
		require.Equal(b, lifecycle.OutcomeLeftRunning, termination.Result().Outcome())
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
	})
}

// A start and a termination at the same time, 300 times, because they interleave at random. After both, no
// container may be running.
func TestNoContainerRunsAfterItsTermination(t *testing.T) {
	for range 300 {
		inBubble(t, graceSeconds(1), func(b *testBed) {
			b.addStopped("app")
			ended := make(chan error, 1)
			go func() { ended <- b.startContainer("app", "1", lifecycletest.Script{}) }()
			b.killPod()
			if err := <-ended; err != nil { // either result is correct
				require.ErrorIs(b, err, lifecycle.ErrTerminating)
			}
			if exited := b.rt.Exited("1"); exited != nil {
				<-exited
			}
		})
	}
}
