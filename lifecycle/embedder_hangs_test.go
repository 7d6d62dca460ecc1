//go:build go1.25

package lifecycle_test

import (
	"context"
	"math"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A negative grace period counts as 0, which gives the minimum timeout, as in the kubelet.
func TestNegativeGracePeriodCountsAsZero(t *testing.T) {
	for _, g := range []int64{0, -1, -5, math.MinInt64} {
		inBubble(t, graceSeconds(30), func(b *testBed) {
			b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
			r, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(g)})
			require.NoError(b, err)
			require.Equal(b, lifecycle.OutcomeGraceful, r.Outcome, "%d", g)
			b.requireStop("app", 2, 0)
		})
	}
}

// hangingObserver is an ExitWatcher and an EventRecorder whose calls hang until the channel is closed.
type hangingObserver chan struct{}

func (h hangingObserver) Exited(string) <-chan struct{} { <-h; return nil }

func (h hangingObserver) Event(apiruntime.Object, string, string, string) { <-h }

// The event recorder hangs on the FailedPreStopHook event. StopContainer is called at once all the same;
// only the end waits 1 s for the recorder.
func TestHangingRecorderDoesNotDelayTheStopAfterAFailedHook(t *testing.T) {
	observer := make(hangingObserver)
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{Exec: func(context.Context, []string) ([]byte, error) {
			return nil, lifecycletest.ErrScripted
		}})
		result := b.killPod()
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.Equal(b, lifecycle.HookFailed, result.Containers[0].Hook.Outcome)
		b.requireStop("app", 30, 0)
		require.Equal(b, time.Second, b.elapsed(), "the end waits 1 s for the events")
		close(observer)
	}, func(o *lifecycle.TerminatorOptions) { observer = make(hangingObserver); o.Events = observer })
}

// OnHook waits behind a recorder that hangs. Before it is called, a request with another pod object begins
// to stop the container again. OnHook gets the object with which the hook ran.
func TestLateOnHookGetsThePodOfItsHook(t *testing.T) {
	observer, got := make(hangingObserver), make(chan *v1.Pod, 1)
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", sleepHandler(1), lifecycletest.Script{FailStops: 1})
		_, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{OneAttempt: true})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		_, err = b.KillPod(b.Context(), b.pod.DeepCopy(), lifecycle.Request{OneAttempt: true})
		require.NoError(b, err)
		close(observer)
		require.Same(b, b.pod, <-got)
	}, func(o *lifecycle.TerminatorOptions) {
		observer = make(hangingObserver)
		o.Events = observer
		o.OnHook = func(pod *v1.Pod, _ lifecycle.Container, _ lifecycle.HookResult) { got <- pod }
	})
}

// A watcher or recorder that hangs uses up no grace period: hook 1 s, exit 20 s, and up to 2 s of waiting
// for events at the end.
func TestHangingWatcherOrRecorderUsesUpNoGrace(t *testing.T) {
	observer := make(hangingObserver)
	for name, hang := range map[string]func(*lifecycle.TerminatorOptions){
		"an exit watcher": func(o *lifecycle.TerminatorOptions) { observer = make(hangingObserver); o.Exits = observer },
		"a recorder":      func(o *lifecycle.TerminatorOptions) { observer = make(hangingObserver); o.Events = observer },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(600), func(b *testBed) {
				b.addMain("app", sleepHandler(1), lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
				require.Equal(b, lifecycle.OutcomeGraceful, b.killPod().Outcome())
				require.LessOrEqual(b, b.elapsed(), 23*time.Second)
				close(observer)
			}, hang)
		})
	}
}

// Without the watcher's answer, a postStart sleep just takes its 3 s.
func TestPostStartWithAHangingExitWatcher(t *testing.T) {
	var observer hangingObserver
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addPostStart(sleepHandler(3), lifecycletest.Script{})
		require.NoError(b, b.PostStart(b.Context(), b.pod, containerNamed("app")))
		require.Equal(b, 3*time.Second, b.elapsed())
		close(observer)
	}, func(o *lifecycle.TerminatorOptions) { observer = make(hangingObserver); o.Exits = observer })
}

// Wait times out at 6 s and then records ExceededGracePeriod. The recorder hangs, so it waits 1 s for it
// and returns.
func TestHangingRecorderDelaysWaitByOneSecond(t *testing.T) {
	var observer hangingObserver
	inBubble(t, graceSeconds(1), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
		ctx, cancel := context.WithTimeout(b.Context(), 6*time.Second)
		defer cancel()
		_, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.LessOrEqual(b, b.elapsed(), 7*time.Second)
		close(observer)
	}, func(o *lifecycle.TerminatorOptions) { observer = make(hangingObserver); o.Events = observer })
}

// The recorder hangs on the FailedPostStartHook event. The container is killed 1 s later all the same.
func TestFailedPostStartKillsDespiteAHangingRecorder(t *testing.T) {
	var observer hangingObserver
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PostStart: scriptedExec()}
		err := b.PostStart(b.Context(), b.pod, lifecycle.Container{Name: "app", ID: "app"})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		b.requireStop("app", 30, time.Second)
		close(observer)
	}, withHooks(func(context.Context) error { return lifecycletest.ErrScripted }),
		func(o *lifecycle.TerminatorOptions) { observer = make(hangingObserver); o.Events = observer })
}
