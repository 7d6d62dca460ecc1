//go:build go1.25

package lifecycle_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// failingUntilMended is a runtime whose StopContainer fails until it is mended.
type failingUntilMended struct {
	lifecycle.Runtime

	mended bool
}

func (m *failingUntilMended) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	if m.mended {
		return m.Runtime.StopContainer(ctx, id, timeoutSeconds)
	}
	return lifecycletest.ErrScripted
}

// If a container was given up and a later kill stops it, the result is that of the later kill.
func TestAKillAfterOneThatGotStuckHasAResultOfItsOwn(t *testing.T) {
	var runtime failingUntilMended
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		app := lifecycle.Container{Name: "app", ID: "app"}
		result, err := b.KillContainer(b.silentContext(), b.pod, app, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome)

		runtime.mended = true
		result, err = b.KillContainer(b.silentContext(), b.pod, app, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.NoError(b, result.Err)
		require.NotEqual(b, lifecycle.RuntimeStuck, result.Outcome)
	}, func(o *lifecycle.TerminatorOptions) {
		runtime.Runtime = o.Runtime
		o.Runtime = &runtime
	})
}

// A kill after Close leaves the container running. Its error says once that the agent stops.
func TestAKillAfterCloseIsRefusedOnce(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{})
		require.NoError(b, b.Close(b.Context()))
		result, err := b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "app", ID: "app"}, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycle.AgentStopping)
		require.Equal(b, lifecycle.LeftRunning, result.Outcome)
		require.Equal(b, 1, strings.Count(result.Err.Error(), lifecycle.AgentStopping.Error()))
	})
}

// If a pod is forgotten during its termination, the terminator keeps its table until the
// termination has ended.
func TestAForgottenTerminationLeavesNothingBehind(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		synctest.Wait()
		b.Forget(b.pod.UID)
		require.Equal(b, 1, b.Tables())
		<-termination.Done()
		synctest.Wait()
		require.Zero(b, b.Tables())
	})
}

// A recorder of events that panics late does not change a result that is final.
func TestALateErrorIsNoPartOfTheResult(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		for range 2 {
			result, err := b.KillContainer(b.silentContext(), b.pod, lifecycle.Container{Name: "app", ID: "app"}, lifecycle.ContainerRequest{})
			require.NoError(b, err)
			require.NoError(b, result.Err)
			<-time.After(time.Minute)
		}
	}, func(o *lifecycle.TerminatorOptions) {
		o.Events = neverReturning(func() {
			<-time.After(30 * time.Second)
			panic("late")
		})
	})
}

// Without an ExitWatcher a hook sleeps to its end, which is no error.
func TestASleepHookWithoutAnExitWatcher(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", sleep(5), lifecycletest.Script{ExitAfter: 2 * time.Second})
		result := b.kill()
		require.NoError(b, result.Containers[0].Err)
		require.Equal(b, 5*time.Second, b.at())
	}, func(o *lifecycle.TerminatorOptions) { o.Exits = nil })
}

// A container that Start has started is stopped with its pod, also after its postStart hook and
// if the request and the status do not have it.
func TestAPostStartHookDoesNotHideItsContainer(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		app := b.startWithPostStart("app")
		require.NoError(b, b.PostStart(b.Context(), b.pod, app))
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Complete: true})
		require.NoError(b, err)
		b.requireStop("app", 10, 0)
	})
}

// startWithPostStart calls Start for a container that has an exec as its postStart hook.
func (b *bed) startWithPostStart(name string) lifecycle.Container {
	b.Helper()
	c := container(name, nil)
	c.Lifecycle = &v1.Lifecycle{PostStart: exec()}
	b.pod.Spec.Containers = append(b.pod.Spec.Containers, c)
	require.NoError(b, b.Start(b.Context(), b.pod, name, func(context.Context) (string, error) {
		b.rt.Start(name, lifecycletest.Script{Exec: commandTaking(time.Second)})
		return name, nil
	}))
	b.start = time.Now().Add(time.Second) // when the hook will have ended
	return lifecycle.Container{Name: name, ID: name}
}

// A container whose postStart hook is under way counts as running. The hook's context ends with
// the reason that the pod is being terminated.
func TestAKillDuringAPostStartHook(t *testing.T) {
	var cause error
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: exec()}
		ended := make(chan error, 1)
		go func() { ended <- b.PostStart(b.Context(), b.pod, lifecycle.Container{Name: "app", ID: "app"}) }()
		synctest.Wait()
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Complete: true})
		require.NoError(b, err)
		b.requireStop("app", 10, 0)
		require.ErrorIs(b, <-ended, lifecycle.ErrTerminating)
		require.ErrorIs(b, cause, lifecycle.ErrTerminating)
	}, withHooks(func(ctx context.Context) error {
		<-ctx.Done()
		cause = context.Cause(ctx)
		return cause
	}))
}

// A cancelled postStart hook gives the hook's own error, wrapped with the reason for the
// cancellation.
func TestTheErrorOfAPostStartHookThatWasCancelled(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		app := b.startWithPostStart("app")
		ended := make(chan error, 1)
		go func() { ended <- b.PostStart(b.Context(), b.pod, app) }()
		synctest.Wait()
		b.kill()
		err := <-ended
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
	}, withHooks(func(ctx context.Context) error {
		<-ctx.Done()
		return lifecycletest.ErrScripted
	}))
}

func TestAskingForATerminationEntersNothing(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		_, found := b.Termination("unknown")
		require.False(b, found)
		require.Zero(b, b.Tables())
	})
}

// A failed stop has an event unless the failure before it still goes on, whatever the number of
// successful stops in between.
func TestEachFailureOfStopsHasAnEvent(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		for _, name := range []string{"good", "bad", "fine", "worse"} {
			fails := 0
			if name == "bad" || name == "worse" {
				fails = 1
			}
			b.addMain(name, nil, lifecycletest.Script{FailStops: fails})
		}
		for _, c := range b.pod.Spec.Containers {
			_, err := b.KillContainer(b.silentContext(), b.pod, lifecycle.Container{Name: c.Name, ID: c.Name}, lifecycle.ContainerRequest{})
			require.NoError(b, err)
		}
		b.requireEvents("Killing", "Killing", "FailedKillPod", "Killing", "Killing", "FailedKillPod")
	})
}

// Wait records an event if its context ends when the pod should have ended, 2 s after its grace
// period, and none if the context ends before that.
func TestTheEventOfAWaitInVain(t *testing.T) {
	for wait, events := range map[time.Duration][]string{
		time.Second:                           {"Killing"},
		11*time.Second + 999*time.Millisecond: {"Killing"},
		12 * time.Second:                      {"Killing", "ExceededGracePeriod"},
	} {
		inBubble(t, 10, func(b *bed) {
			b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
			termination := b.Terminate(b.silentContext(), b.pod, lifecycle.Request{})
			ctx, cancel := context.WithTimeout(b.silentContext(), wait)
			defer cancel()
			_, err := termination.Wait(ctx)
			require.ErrorIs(b, err, context.DeadlineExceeded)
			b.requireEvents(events...)
			require.NoError(b, b.Close(b.silentContext()))
		})
	}
}

// Every ephemeral container is found in its pod's spec.
func TestSeveralEphemeralContainersAreStopped(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		for _, name := range []string{"shell", "debugger", "tracer"} {
			b.pod.Spec.EphemeralContainers = append(b.pod.Spec.EphemeralContainers,
				v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon(container(name, nil))})
			b.runContainer(&b.pod.Status.EphemeralContainerStatuses, name, lifecycletest.Script{})
		}
		result := b.kill()
		require.Len(b, result.Containers, 3)
		for _, c := range result.Containers {
			require.NoError(b, c.Err, "it is in the spec")
		}
	})
}
