package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

func TestAContainerStopsWithinItsGrace(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		require.Equal(b, lifecycle.Result{
			GracePeriodSeconds: 30,
			Containers: []lifecycle.ContainerResult{{
				Name: "app", ID: "app", Phase: lifecycle.PhaseEnded, Outcome: lifecycle.Graceful,
				GrantedSeconds: 30, Stopping: 3 * time.Second,
			}},
		}, b.kill())
		b.requireStop("app", 30, 0)
		require.Equal(b, 3*time.Second, b.at())
	})
}

func TestAHookComesOutOfTheGrace(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.main("app", sleep(10), lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		result := b.kill()
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCompleted, Took: 10 * time.Second}, result.Containers[0].Hook)
		b.requireStop("app", 20, 10*time.Second)
		require.Equal(b, 13*time.Second, b.at())
	})
}

func TestTheEventComesBeforeHookAndStop(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.main("app", exec(), lifecycletest.Script{Exec: takes(time.Second)})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Millisecond)
		require.Len(b, b.rt.Execs(), 1)
		require.Empty(b, b.rt.Stops())
		event := b.events.All()[0]
		require.Equal(b, []string{"Normal", "Killing", "Stopping container app"}, []string{event.Type, event.Reason, event.Message})
		require.Equal(b, "spec.containers{app}", event.Object.(*v1.ObjectReference).FieldPath)
		<-b.Terminate(b.Context(), b.pod, lifecycle.Request{}).Done()
	})
}

func TestUsedTimeIsTruncatedToWholeSecondsOnce(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.main("app", exec(), lifecycletest.Script{Exec: takes(1700 * time.Millisecond)})
		b.sidecar("proxy", exec(), lifecycletest.Script{Exec: takes(900 * time.Millisecond)})
		b.pod.Spec.Containers[0].Lifecycle.PreStop = exec()
		b.kill()
		b.requireStop("app", 9, 1700*time.Millisecond)
		b.requireStop("proxy", 9, 1700*time.Millisecond) // the kubelet truncates 0.9 and 0.8 each, and asks for 10
	})
}

func TestTheGraceOfAPod(t *testing.T) {
	for name, test := range map[string]struct {
		spec, deletion, override *int64
		want, stop               int64
	}{
		"its spec's":                    {spec: new(int64(30)), want: 30, stop: 30},
		"its deletion's":                {spec: new(int64(30)), deletion: new(int64(5)), want: 5, stop: 5},
		"an override":                   {spec: new(int64(30)), override: new(int64(7)), want: 7, stop: 7},
		"an override of 0 is 1":         {spec: new(int64(30)), override: new(int64(0)), want: 1, stop: 2},
		"a negative one is 1":           {spec: new(int64(30)), override: new(int64(-9)), want: 1, stop: 2},
		"none at all is 1":              {want: 1, stop: 2},
		"an override does not lengthen": {spec: new(int64(30)), deletion: new(int64(5)), override: new(int64(60)), want: 5, stop: 5},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 0, func(b *bed) {
				b.pod.Spec.TerminationGracePeriodSeconds = test.spec
				b.pod.DeletionGracePeriodSeconds = test.deletion
				b.main("app", nil, lifecycletest.Script{IgnoreTerm: true})
				result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: test.override})
				require.NoError(b, err)
				require.Equal(b, test.want, result.GracePeriodSeconds)
				require.Equal(b, lifecycle.GraceExceeded, result.Outcome())
				b.requireStop("app", test.stop, 0)
			})
		})
	}
}

func TestAHookThatUsesUpTheGraceIsCut(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.main("app", sleep(60), lifecycletest.Script{IgnoreTerm: true})
		result := b.kill()
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Took: 10 * time.Second, Cause: lifecycle.GraceSpent}, result.Containers[0].Hook)
		b.requireStop("app", 2, 10*time.Second)
		require.Equal(b, 12*time.Second, b.at())
		b.requireEvents("Killing")
	})
}

func TestSidecarsStopAfterMainInReverseOrder(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.sidecar("proxy", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		b.sidecar("logs", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		b.main("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		b.main("batch", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		result := b.kill()
		b.requireStop("app", 30, 0)
		b.requireStop("batch", 30, 0)
		b.requireStop("logs", 25, 5*time.Second)
		b.requireStop("proxy", 24, 6*time.Second)
		require.Equal(b, 6*time.Second, result.Containers[2].Waited)
		require.Equal(b, 7*time.Second, b.at())
	})
}

func TestASidecarWaitsNoLongerThanTheGrace(t *testing.T) {
	inBubble(t, 5, func(b *bed) {
		b.sidecar("proxy", nil, lifecycletest.Script{})
		b.main("app", nil, lifecycletest.Script{IgnoreTerm: true})
		b.kill()
		b.requireStop("proxy", 2, 5*time.Second)
	})
}

func TestShortenTakesEffectAtOnce(t *testing.T) {
	for name, test := range map[string]struct {
		main, sidecar *v1.LifecycleHandler
		script        lifecycletest.Script
	}{
		"in a hook": {main: sleep(40), script: lifecycletest.Script{IgnoreTerm: true}},
		"in a wait": {sidecar: sleep(1), script: lifecycletest.Script{IgnoreTerm: true}},
		"in a stop": {script: lifecycletest.Script{IgnoreTerm: true}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 60, func(b *bed) {
				b.sidecar("proxy", test.sidecar, test.script)
				b.main("app", test.main, test.script)
				termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
				<-time.After(10 * time.Second)
				require.True(b, termination.Shorten(3))
				require.Equal(b, 13*time.Second, termination.Deadline().Sub(b.start))
				require.False(b, termination.Shorten(3))
				<-termination.Done()
				require.LessOrEqual(b, b.at(), 15*time.Second)
				require.False(b, termination.Shorten(1))
				require.EqualValues(b, 3, termination.Result().GracePeriodSeconds)
			})
		})
	}
}

func TestTwoCallersShareOneTermination(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{IgnoreTerm: true})
		first := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		second := b.Terminate(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: new(int64(4))})
		require.Same(b, first, second)
		<-first.Done()
		require.Equal(b, 4*time.Second, b.at())
		b.requireEvents("Killing")
	})
}

func TestACallersContextEndsItsWaitingOnly(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.main("app", nil, lifecycletest.Script{IgnoreTerm: true})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		result, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.ErrorContains(b, err, "ns/pod/app")
		require.Equal(b, lifecycle.PhaseStopping, result.Containers[0].Phase)
		b.kill()
		require.Equal(b, 30*time.Second, b.at())
	})
}

func TestCloseLeavesEverythingRunning(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.sidecar("proxy", nil, lifecycletest.Script{})
		b.main("app", sleep(40), lifecycletest.Script{})
		b.main("web", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(10 * time.Second)
		require.NoError(b, b.Close(b.Context()))
		<-termination.Done()
		require.Equal(b, 10*time.Second, b.at())
		for _, c := range termination.Result().Containers {
			require.Equal(b, lifecycle.LeftRunning, c.Outcome)
			require.ErrorIs(b, c.Err, lifecycle.AgentStopping)
		}
		require.Equal(b, lifecycle.AgentStopping, termination.Result().Containers[0].Hook.Cause)

		b.Forget(b.pod.UID)
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.AgentStopping)
		require.Len(b, b.rt.Stops(), 1)
	})
}

func TestASleepEndsWithItsContainer(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.main("app", sleep(40), lifecycletest.Script{ExitAfter: 7 * time.Second})
		result := b.kill()
		require.Equal(b, 7*time.Second, b.at())
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCut, Took: 7 * time.Second, Cause: lifecycle.ContainerExited}, result.Containers[0].Hook)
		require.Equal(b, lifecycle.Graceful, result.Outcome())
		b.requireEvents("Killing")
	})
}

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
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: new(int64(10))})
		require.ErrorContains(b, err, "silent")
		require.Equal(b, lifecycle.RuntimeStuck, result.Containers[0].Outcome)
		require.Equal(b, 20*time.Second, b.at())
		require.Len(b, b.rt.Stops(), 3)
	})
}

func TestAHookThatIgnoresItsEndIsAbandoned(t *testing.T) {
	deaf := make(chan struct{})
	inBubble(t, 5, func(b *bed) {
		deaf = make(chan struct{})
		b.main("app", exec(), lifecycletest.Script{})
		result := b.kill()
		b.requireStop("app", 2, 5*time.Second)
		require.Equal(b, 6*time.Second, b.at())
		require.Equal(b, lifecycle.HookAbandoned, result.Containers[0].Hook.Outcome)
		close(deaf)
	}, withHooks(func(context.Context) error { <-deaf; return nil }))
}
