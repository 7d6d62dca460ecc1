//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The simplest termination: one container that ends 3 s after its stop signal. StopContainer gets the whole grace period at
// once, and the result has the container's name, times and outcome.
func TestContainerStopsWithinItsGrace(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		require.Equal(b, lifecycle.Result{
			GracePeriodSeconds: 30,
			Containers: []lifecycle.ContainerResult{{
				Name: "app", ID: "app", Began: b.start, Phase: lifecycle.PhaseEnded, Outcome: lifecycle.OutcomeGraceful,
				GrantedSeconds: 30, Stopping: 3 * time.Second,
			}},
		}, b.killPod())
		require.Equal(b, []stopCall{{timeoutSeconds: 30, atMilliseconds: 0}}, b.stopCalls("app"))
		require.Equal(b, 3*time.Second, b.elapsed())
	})
}

// KillPod writes neither to the caller's pod nor to the containers of its request.
func TestArgumentsAreNotChanged(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addSidecar("proxy", lifecycletest.Script{})
		b.addMainWithHook("app", sleepHandler(60), lifecycletest.Script{})
		podBefore := b.pod.DeepCopy()
		containers := []lifecycle.Container{containerNamed("app"), containerNamed("proxy")}
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: containers, GracePeriodSeconds: ptr.To(int64(5))})
		require.NoError(b, err)
		require.Equal(b, podBefore, b.pod)
		require.Equal(b, []lifecycle.Container{containerNamed("app"), containerNamed("proxy")}, containers)
	})
}

// KillContainer records its Killing event with the message of the request, in which the container's name replaces its ID, as in
// the kubelet. An ID that is a part of the name is not replaced: with the ID "eb", "web is to go" would become "wweb is to go".
func TestIDInTheMessageOfTheKillingEvent(t *testing.T) {
	for id, message := range map[string]string{"3f4e": "3f4e is to go", "eb": "web is to go"} {
		inBubble(t, graceSeconds(60), func(b *testBed) {
			b.addToSpec("web")
			web := b.rt.Start(b.pod, "web", id, lifecycletest.Script{})
			_, err := b.KillContainer(b.Context(), b.pod, web, lifecycle.ContainerRequest{Message: message})
			require.NoError(b, err)
			require.Equal(b, "web is to go", b.events.All()[0].Message)
		})
	}
}

// A pod without a UID is identified by namespace and name: Terminate for a copy of the pod returns the termination in
// progress, but for a pod with another name it begins another one. Forget finds the pod too.
func TestPodWithoutUIDIsIdentifiedByName(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.pod.UID = ""
		copied, renamed := b.pod.DeepCopy(), b.pod.DeepCopy()
		renamed.Name = "other"
		b.rt.SetLists(lifecycletest.Lists{Takes: time.Second}) // so that the terminations are in progress
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		require.Same(b, termination, b.Terminate(b.Context(), copied, lifecycle.Request{}))
		require.NotSame(b, termination, b.Terminate(b.Context(), renamed, lifecycle.Request{}))
		b.Forget(copied)
		_, found := b.Termination(b.pod)
		require.False(b, found)
	})
}

// loggerFunc is a log sink that calls a function for each message.
type loggerFunc func()

func (do loggerFunc) Init(klog.RuntimeInfo)          {}
func (do loggerFunc) Enabled(int) bool               { return true }
func (do loggerFunc) Info(int, string, ...any)       { do() }
func (do loggerFunc) Error(error, string, ...any)    { do() }
func (do loggerFunc) WithValues(...any) klog.LogSink { return do }
func (do loggerFunc) WithName(string) klog.LogSink   { return do }

// The agent's logger calls the terminator. That would deadlock if the terminator held a mutex while it logs. The container's
// first stop fails, so there are two messages: the failure and the outcome.
func TestLoggerMayCallTheTerminator(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", lifecycletest.Script{FailStops: 1})
		var messages atomic.Int32
		ctx := klog.NewContext(b.Context(), klog.New(loggerFunc(func() {
			if termination, found := b.Termination(b.pod); found {
				_ = termination.Deadline()
				messages.Add(1)
			}
		})))
		_, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.GreaterOrEqual(b, messages.Load(), int32(2))
	})
}

// infoFunc is a loggerFunc for the lines of verbosity 0 alone.
type infoFunc struct{ loggerFunc }

func (do infoFunc) Enabled(level int) bool         { return level == 0 }
func (do infoFunc) WithValues(...any) klog.LogSink { return do }

// The pod has no grace period, which is logged. The logger blocks. The pod is stopped nevertheless.
func TestALoggerThatBlocksKeepsNoPodRunning(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.pod.Spec.TerminationGracePeriodSeconds = nil
		b.addMain("app", lifecycletest.Script{})
		release, isBlocked := make(chan struct{}), false
		ctx := klog.NewContext(b.Context(), klog.New(infoFunc{func() { isBlocked = true; <-release }}))
		result, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		synctest.Wait()
		require.True(b, isBlocked)
		close(release)
	})
}

// A hook returns an error exactly at the deadline, at which it is also cancelled. Whichever comes first, the hook counts as
// Cut and not as Failed: there is no FailedPreStopHook event. The test runs 100 times, because the two race.
func TestHookThatFailsAtTheDeadlineIsCut(t *testing.T) {
	for range 100 {
		inBubble(t, graceSeconds(5), func(b *testBed) {
			b.addMainWithHook("app", scriptedExec(), lifecycletest.Script{})
			hook := b.killPod().Containers[0].Hook
			require.Equal(b, lifecycle.HookCut, hook.Outcome)
			require.Equal(b, lifecycle.CauseGraceSpent, hook.Cause)
			b.requireEvents("Killing")
		}, withHookRunner(func(context.Context) error { <-time.After(5 * time.Second); return lifecycletest.ErrScripted }))
	}
}
