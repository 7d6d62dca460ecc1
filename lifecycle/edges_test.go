package lifecycle_test

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

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
