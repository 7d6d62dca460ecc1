//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// addWaitingContainer adds a regular container to the pod that does not run yet.
func (b *bed) addWaitingContainer(name string) {
	b.pod.Spec.Containers = append(b.pod.Spec.Containers, container(name, nil))
	b.pod.Status.ContainerStatuses = append(b.pod.Status.ContainerStatuses, v1.ContainerStatus{
		Name: name, State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}},
	})
}

// startAfter calls Start for a declared container, which runs after a while even if the context
// has ended. result waits for Start and returns its error.
func (b *bed) startAfter(name string, after time.Duration, script lifecycletest.Script) (result func() error) {
	var wg sync.WaitGroup
	var err error
	wg.Go(func() {
		err = b.Start(b.Context(), b.pod, name, func(context.Context) (string, error) {
			<-time.After(after)
			b.rt.Start(name, script)
			return name, nil
		})
	})
	synctest.Wait()
	return func() error { wg.Wait(); return err }
}

func TestStartIsRefusedAfterTheTerminationHasStarted(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("late")
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		refused := func() error {
			return b.Start(b.Context(), b.pod, "late", func(context.Context) (string, error) {
				require.Fail(b, "started")
				return "", nil
			})
		}
		require.ErrorIs(b, refused(), lifecycle.ErrTerminating)
		require.ErrorContains(b, refused(), `failed to start container "late" of pod "pod_ns(uid)"`)
		b.Forget(b.pod.UID)
		require.NoError(b, b.Start(b.Context(), b.pod, "late", func(context.Context) (string, error) { return "late", nil }))
		require.NoError(b, b.Close(b.Context()))
		require.ErrorIs(b, refused(), lifecycle.AgentStopping)
	})
}

func TestAContainerThatIsStartingIsStoppedWithTheOthers(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addWaitingContainer("late")
		started := b.startAfter("late", 5*time.Second, lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
		result := b.kill()
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
		b.requireStop("late", 25, 5*time.Second)
		b.requireStop("proxy", 23, 7*time.Second)
		require.Equal(b, "late", result.Containers[1].ID)
		require.Equal(b, lifecycle.Graceful, result.Containers[1].Outcome)
		b.requireEvents("Killing", "Killing")
	})
}

func TestTerminationEndsTheContextOfAStart(t *testing.T) {
	cancelled := errors.New("pull cancelled")
	for name, test := range map[string]struct {
		id   string
		err  error
		want lifecycle.Outcome
	}{
		"and knows that nothing runs":    {"", fmt.Errorf("%w: %w", lifecycle.ErrContainerNotFound, cancelled), lifecycle.NotFound},
		"and does not know whether":      {"", cancelled, lifecycle.RuntimeStuck},
		"and knows what it may have run": {"late", cancelled, lifecycle.Graceful},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 30, func(b *bed) {
				b.addWaitingContainer("late")
				var cause error
				var wg sync.WaitGroup
				var err error
				wg.Go(func() {
					err = b.Start(b.Context(), b.pod, "late", func(ctx context.Context) (string, error) {
						<-ctx.Done()
						cause = context.Cause(ctx)
						b.rt.Start("late", lifecycletest.Script{})
						return test.id, test.err
					})
				})
				synctest.Wait()
				result, _ := b.KillPod(b.Context(), b.pod, lifecycle.Request{}) // its error is in the outcome
				wg.Wait()
				require.Equal(b, lifecycle.ErrTerminating, cause)
				require.ErrorIs(b, err, lifecycle.ErrTerminating)
				require.ErrorIs(b, err, cancelled)
				require.Equal(b, test.want, result.Outcome())
				require.Len(b, b.rt.Exits(), len(test.id)/len("late"))
				require.Zero(b, b.at())
			})
		})
	}
}

func TestContainerThatIsStartedTooLateIsStoppedByStart(t *testing.T) {
	inBubble(t, 3, func(b *bed) {
		b.addWaitingContainer("late")
		started := b.startAfter("late", 10*time.Second, lifecycletest.Script{IgnoreTerm: true})
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "its start had not returned")
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
		require.Equal(b, 3*time.Second, b.at())
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
		b.requireStop("late", 2, 10*time.Second)
		require.Equal(b, 12*time.Second, b.at())
		require.Len(b, b.rt.Exits(), 1)
	})
}

// The error of a Start that could not stop its container is that of the stop.
func TestContainerThatIsStartedTooLateAndNotStopped(t *testing.T) {
	inBubble(t, 3, func(b *bed) {
		b.addWaitingContainer("late")
		started := b.startAfter("late", 10*time.Second, lifecycletest.Script{FailStops: -1})
		_, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "its start had not returned")
		err = started()
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
	}, withShortGiveUp)
}

// The termination does not end before the container that is stopped by its Start.
func TestPodWaitsForAContainerThatIsStartedTooLate(t *testing.T) {
	inBubble(t, 3, func(b *bed) {
		b.addMain("app", sleep(60), lifecycletest.Script{IgnoreTerm: true})
		b.addWaitingContainer("late")
		started := b.startAfter("late", 4*time.Second, lifecycletest.Script{IgnoreTerm: true})
		result := b.kill()
		require.Equal(b, 6*time.Second, b.at(), "app is killed after 5 s, and late, with 2 s of its own, after 6")
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
		require.Equal(b, lifecycle.GraceExceeded, result.Containers[1].Outcome)
	})
}

func TestStartedContainerThatTheRequestLacksIsStopped(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		b.addWaitingContainer("ended")
		require.NoError(b, b.startAfter("app", 0, lifecycletest.Script{})())
		require.NoError(b, b.startAfter("ended", 0, lifecycletest.Script{})())
		b.rt.Exit("ended")
		b.kill() // with a status from before
		require.Len(b, b.rt.Stops(), 1)
		b.requireStop("app", 30, 0)
	})
}

func TestAFailedStartIsWrapped(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		broken := fmt.Errorf("%w: no such image", lifecycle.ErrContainerNotFound)
		err := b.Start(b.Context(), b.pod, "app", func(context.Context) (string, error) { return "", broken })
		require.ErrorIs(b, err, broken)
		require.NotErrorIs(b, err, lifecycle.ErrTerminating)
		require.Zero(b, b.Tables(), "nothing is kept of it")
	})
}

func TestCloseEndsTheContextOfAStart(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		var cause error
		var wg sync.WaitGroup
		wg.Go(func() {
			err := b.Start(b.Context(), b.pod, "app", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				cause = context.Cause(ctx)
				return "", cause
			})
			require.ErrorIs(b, err, lifecycle.AgentStopping)
		})
		synctest.Wait()
		require.NoError(b, b.Close(b.Context()))
		wg.Wait()
		require.Equal(b, lifecycle.AgentStopping, cause)
	})
}

func TestTheResultOfAnAgentThatStopsIsFinal(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("late")
		var wg sync.WaitGroup
		wg.Go(func() {
			err := b.Start(b.Context(), b.pod, "late", func(context.Context) (string, error) {
				<-time.After(5 * time.Second)
				return "", errors.New("too late")
			})
			require.ErrorContains(b, err, "too late")
		})
		synctest.Wait()
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		require.NoError(b, b.Close(b.Context()))
		wg.Wait()
		require.Equal(b, lifecycle.LeftRunning, termination.Result().Outcome())
	})
}

func TestCloseStopsWorkForAForgottenPod(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		var wg sync.WaitGroup
		wg.Go(func() {
			err := b.Start(b.Context(), b.pod, "app", func(ctx context.Context) (string, error) {
				<-ctx.Done()
				return "", context.Cause(ctx)
			})
			require.ErrorIs(b, err, lifecycle.AgentStopping)
		})
		synctest.Wait()
		b.Forget(b.pod.UID)
		require.NoError(b, b.Close(b.Context()))
		wg.Wait()
	})
}

// slowExits is an ExitWatcher that answers after a while.
type slowExits struct{ lifecycle.ExitWatcher }

func (s slowExits) Exited(id string) <-chan struct{} {
	<-time.After(time.Second)
	return s.ExitWatcher.Exited(id)
}

// If a mutex were held meanwhile, no time would pass in the bubble, and the test would hang.
func TestSlowExitWatcherHoldsNoMutex(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", sleep(10), lifecycletest.Script{ExitAfter: 4 * time.Second})
		b.addWaitingContainer("other")
		require.NoError(b, b.startAfter("other", 0, lifecycletest.Script{})())
		time.AfterFunc(500*time.Millisecond, func() { b.Forget("another pod") })
		require.Equal(b, lifecycle.ContainerExited, b.kill().Containers[0].Hook.Cause)
		require.Equal(b, 4*time.Second, b.at())
	}, func(o *lifecycle.TerminatorOptions) { o.Exits = slowExits{o.Exits} })
}

// No container runs after the termination has ended, whenever the start and the termination
// meet.
func TestNoContainerRunsAfterItsTermination(t *testing.T) {
	for range 300 {
		inBubble(t, 1, func(b *bed) {
			b.addWaitingContainer("app")
			var wg sync.WaitGroup
			wg.Go(func() {
				_ = b.Start(b.Context(), b.pod, "app", func(context.Context) (string, error) { // either answer is right
					b.rt.Start("app", lifecycletest.Script{})
					return "app", nil
				})
			})
			b.kill()
			wg.Wait()
			if exited := b.rt.Exited("app"); exited != nil { // nil: it was not started
				<-exited
			}
		})
	}
}
