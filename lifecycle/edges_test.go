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

// mending is a runtime whose stops fail until it is mended.
type mending struct {
	lifecycle.Runtime

	mended bool
}

func (m *mending) StopContainer(ctx context.Context, id string, timeoutSeconds int64) error {
	if m.mended {
		return m.Runtime.StopContainer(ctx, id, timeoutSeconds)
	}
	return lifecycletest.ErrScripted
}

// A container that was given up, and is stopped by a later kill, has the result of that one.
func TestAKillAfterOneThatGotStuckHasAResultOfItsOwn(t *testing.T) {
	var runtime mending
	inBubble(t, 10, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{})
		app := lifecycle.Container{Name: "app", ID: "app"}
		result, err := b.KillContainer(b.quiet(), b.pod, app, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome)

		runtime.mended = true
		result, err = b.KillContainer(b.quiet(), b.pod, app, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.NoError(b, result.Err)
		require.NotEqual(b, lifecycle.RuntimeStuck, result.Outcome)
	}, func(o *lifecycle.TerminatorOptions) {
		runtime.Runtime = o.Runtime
		o.Runtime = &runtime
	})
}

// What a kill finds that comes after Close is left running, and said so once.
func TestAKillAfterCloseIsRefusedOnce(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.main("app", exec(), lifecycletest.Script{})
		require.NoError(b, b.Close(b.Context()))
		result, err := b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "app", ID: "app"}, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycle.AgentStopping)
		require.Equal(b, lifecycle.LeftRunning, result.Outcome)
		require.Equal(b, 1, strings.Count(result.Err.Error(), lifecycle.AgentStopping.Error()))
	})
}

// A pod that is forgotten while it is being stopped is known until that is over, and no longer.
func TestAForgottenTerminationLeavesNothingBehind(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
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
		b.main("app", nil, lifecycletest.Script{})
		for range 2 {
			result, err := b.KillContainer(b.quiet(), b.pod, lifecycle.Container{Name: "app", ID: "app"}, lifecycle.ContainerRequest{})
			require.NoError(b, err)
			require.NoError(b, result.Err)
			<-time.After(time.Minute)
		}
	}, func(o *lifecycle.TerminatorOptions) {
		o.Events = broken(func() {
			<-time.After(30 * time.Second)
			panic("late")
		})
	})
}

// Without an ExitWatcher a hook sleeps to its end, which is no error.
func TestASleepHookWithoutAnExitWatcher(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.main("app", sleep(5), lifecycletest.Script{ExitAfter: 2 * time.Second})
		result := b.kill()
		require.NoError(b, result.Containers[0].Err)
		require.Equal(b, 5*time.Second, b.at())
	}, func(o *lifecycle.TerminatorOptions) { o.Exits = nil })
}

// A container that Start has started is stopped with its pod after its postStart hook too,
// whatever the agent says of it.
func TestAPostStartHookDoesNotHideItsContainer(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		app := b.started("app")
		require.NoError(b, b.PostStart(b.Context(), b.pod, app))
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{}})
		require.NoError(b, err)
		b.requireStop("app", 10, 0)
	})
}

// started has Start start a container with a postStart hook, which an exec serves.
func (b *bed) started(name string) lifecycle.Container {
	b.Helper()
	c := container(name, nil)
	c.Lifecycle = &v1.Lifecycle{PostStart: exec()}
	b.pod.Spec.Containers = append(b.pod.Spec.Containers, c)
	require.NoError(b, b.Start(b.Context(), b.pod, name, func(context.Context) (string, error) {
		b.rt.Start(name, lifecycletest.Script{Exec: takes(time.Second)})
		return name, nil
	}))
	b.start = time.Now().Add(time.Second) // when the hook will have ended
	return lifecycle.Container{Name: name, ID: name}
}

// A postStart hook that is under way shows that its container runs, and is told that the pod
// is being terminated.
func TestAKillDuringAPostStartHook(t *testing.T) {
	var cause error
	inBubble(t, 10, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{})
		b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: exec()}
		ended := make(chan error, 1)
		go func() { ended <- b.PostStart(b.Context(), b.pod, lifecycle.Container{Name: "app", ID: "app"}) }()
		synctest.Wait()
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{}})
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

// The error of a postStart hook that was cancelled is that of the hook, with the reason.
func TestTheErrorOfAPostStartHookThatWasCancelled(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		app := b.started("app")
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

// Every failure that comes after another one is over has an event, however many stops went
// well meanwhile.
func TestEachFailureOfStopsHasAnEvent(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		for _, name := range []string{"good", "bad", "fine", "worse"} {
			fails := 0
			if name == "bad" || name == "worse" {
				fails = 1
			}
			b.main(name, nil, lifecycletest.Script{FailStops: fails})
		}
		for _, c := range b.pod.Spec.Containers {
			_, err := b.KillContainer(b.quiet(), b.pod, lifecycle.Container{Name: c.Name, ID: c.Name}, lifecycle.ContainerRequest{})
			require.NoError(b, err)
		}
		b.requireEvents("Killing", "Killing", "FailedKillPod", "Killing", "Killing", "FailedKillPod")
	})
}

// Who waits in vain has an event recorded once the pod should have ended, not before.
func TestTheEventOfAWaitInVain(t *testing.T) {
	for wait, events := range map[time.Duration][]string{
		time.Second:                           {"Killing"},
		11*time.Second + 999*time.Millisecond: {"Killing"},
		12 * time.Second:                      {"Killing", "ExceededGracePeriod"},
	} {
		inBubble(t, 10, func(b *bed) {
			b.main("app", nil, lifecycletest.Script{HangStops: -1})
			termination := b.Terminate(b.quiet(), b.pod, lifecycle.Request{})
			ctx, cancel := context.WithTimeout(b.quiet(), wait)
			defer cancel()
			_, err := termination.Wait(ctx)
			require.ErrorIs(b, err, context.DeadlineExceeded)
			b.requireEvents(events...)
			require.NoError(b, b.Close(b.quiet()))
		})
	}
}

// Every ephemeral container is found in its pod's spec.
func TestSeveralEphemeralContainersAreStopped(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		for _, name := range []string{"shell", "debugger", "tracer"} {
			b.pod.Spec.EphemeralContainers = append(b.pod.Spec.EphemeralContainers,
				v1.EphemeralContainer{EphemeralContainerCommon: v1.EphemeralContainerCommon(container(name, nil))})
			b.run(&b.pod.Status.EphemeralContainerStatuses, name, lifecycletest.Script{})
		}
		result := b.kill()
		require.Len(b, result.Containers, 3)
		for _, c := range result.Containers {
			require.NoError(b, c.Err, "it is in the spec")
		}
	})
}
