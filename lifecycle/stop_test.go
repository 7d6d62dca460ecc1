package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

func TestAFailedStopIsForced(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.sidecar("proxy", nil, lifecycletest.Script{})
		b.main("app", nil, lifecycletest.Script{FailStops: 1})
		result := b.kill()
		require.Equal(b, lifecycle.Forced, result.Containers[0].Outcome)
		require.ErrorIs(b, result.Containers[0].Err, lifecycletest.ErrScripted)
		require.Zero(b, b.at())
	})
}

func TestASilentRuntimeIsBounded(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.sidecar("proxy", nil, lifecycletest.Script{})
		b.main("app", nil, lifecycletest.Script{HangStops: -1})
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(10))})
		require.ErrorContains(b, err, "silent")
		require.Equal(b, lifecycle.RuntimeStuck, result.Containers[0].Outcome)
		require.Equal(b, 20*time.Second, b.at())
		require.Len(b, b.rt.Stops(), 3)
	})
}

func TestARuntimeThatDoesNotKnowTheContainerHasStoppedIt(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{})
		b.rt.Remove("app")
		result := b.kill()
		require.Equal(b, lifecycle.NotFound, result.Outcome())
		require.NoError(b, result.Containers[0].Err)
		require.Len(b, b.rt.Stops(), 1)
	})
}

func TestAStopThatFailsTwiceIsStuckAndReleasesTheOthers(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.sidecar("proxy", nil, lifecycletest.Script{})
		b.main("app", exec(), lifecycletest.Script{FailStops: -1})
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.ErrorContains(b, err, `failed to stop container "app" (id="app")`)
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
		require.Equal(b, lifecycle.Graceful, result.Containers[1].Outcome)
		require.Zero(b, b.at())
		require.Len(b, b.rt.Stops(), 3)
		require.Len(b, b.rt.Execs(), 1)
	})
}

func TestASilentStopIsForced(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{HangStops: 1})
		result := b.kill()
		require.Equal(b, lifecycle.Forced, result.Outcome())
		require.ErrorContains(b, result.Containers[0].Err, "silent for 12s")
		require.Equal(b, 12*time.Second, b.at())
		require.EqualValues(b, 0, b.rt.Stops()[1].TimeoutSeconds)
	}, func(o *lifecycle.TerminatorOptions) { o.StopSlack = 2 * time.Second })
}

func TestAHungStopEndsWithItsContainer(t *testing.T) {
	inBubble(t, 2, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{HangStops: 1})
		b.main("web", nil, lifecycletest.Script{HangStops: -1})
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "web")
		require.Equal(b, 12*time.Second, b.at())
		for _, stop := range b.rt.Stops() {
			if stop.ID == "app" {
				require.Equal(b, 7*time.Second, stop.Returned.Sub(b.start))
			}
		}
	})
}

func TestAnOvertakingStopOutlivesAFailureOfTheFirst(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		termination.Shorten(10)
		<-termination.Done()
		require.Equal(b, 6*time.Second, b.at())
		require.Equal(b, lifecycle.Graceful, termination.Result().Outcome())
	}, func(o *lifecycle.TerminatorOptions) { o.Runtime = &firstFails{} })
}

// firstFails is a runtime whose first call fails late, and whose second succeeds later.
type firstFails struct{ calls atomic.Int32 }

func (f *firstFails) StopContainer(context.Context, string, int64) error {
	if f.calls.Add(1) == 1 {
		<-time.After(3 * time.Second)
		return lifecycletest.ErrScripted
	}
	<-time.After(5 * time.Second)
	return nil
}

func TestASilentFirstStopIsMeasuredByTheOneThatOvertakesIt(t *testing.T) {
	inBubble(t, 600, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{HangStops: -1})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		termination.Shorten(3)
		<-termination.Done()
		require.Equal(b, lifecycle.RuntimeStuck, termination.Result().Outcome())
		require.Equal(b, 1*time.Second+3*time.Second+2*5*time.Second, b.at())
	})
}

func TestCloseNamesTheStuck(t *testing.T) {
	inBubble(t, 5, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{HangStops: -1, HangDeaf: true})
		b.main("web", nil, lifecycletest.Script{})
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "silent")
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		var stuck *lifecycle.StillRunningError
		require.ErrorAs(b, b.Close(ctx), &stuck)
		require.Equal(b, []string{"ns/pod/app"}, stuck.Containers)
		b.rt.Release()
	})
}

func TestAnOverdueRuntimeIsAnEvent(t *testing.T) {
	inBubble(t, 5, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{HangStops: -1})
		for _, wait := range []time.Duration{time.Second, 6 * time.Second} { // in the grace, and past the floor
			ctx, cancel := context.WithTimeout(b.Context(), wait)
			_, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
			require.ErrorIs(b, err, context.DeadlineExceeded)
			cancel()
		}
		b.requireEvents("Killing", "ExceededGracePeriod")
		event := b.events.All()[1]
		require.Equal(b, "Container runtime did not kill the pod within specified grace period.", event.Message)
		require.Same(b, b.pod, event.Object)
		<-b.Terminate(b.Context(), b.pod, lifecycle.Request{}).Done()
	})
}

// Wait may be given up and taken up again; it gives what KillPod would have given.
func TestWaitForATermination(t *testing.T) {
	inBubble(t, 5, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		result, err := termination.Wait(ctx)
		var running *lifecycle.StillRunningError
		require.ErrorAs(b, err, &running)
		require.Equal(b, []string{"ns/pod/app"}, running.Containers)
		require.Empty(b, result.Outcome())
		for range 2 {
			result, err = termination.Wait(b.Context())
			require.NoError(b, err)
			require.Equal(b, lifecycle.GraceExceeded, result.Outcome())
			require.Equal(b, 5*time.Second, b.at())
		}
	})
}
