//go:build go1.25

package lifecycle_test

import (
	"context"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A probe's own grace period applies to the kill after its failure, and the event has the kubelet's message
// for it. Other reasons use the pod's 30 s.
func TestKillContainerUsesTheGraceOfItsReason(t *testing.T) {
	for _, test := range []struct {
		reason  graceperiod.KillReason
		policy  v1.RestartPolicy
		timeout int64
		message string
	}{
		{graceperiod.ReasonLivenessProbe, v1.RestartPolicyAlways, 7, "Container app failed liveness probe, will be restarted"},
		{graceperiod.ReasonLivenessProbe, v1.RestartPolicyNever, 7, "Container app failed liveness probe"},
		{graceperiod.ReasonStartupProbe, v1.RestartPolicyOnFailure, 9, "Container app failed startup probe, will be restarted"},
		{graceperiod.ReasonUnknown, v1.RestartPolicyAlways, 30, "Stopping container app"},
	} {
		t.Run(fmt.Sprint(test.reason, test.policy), func(t *testing.T) {
			inBubble(t, graceSeconds(30), func(b *testBed) {
				b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
				b.pod.Spec.RestartPolicy = test.policy
				b.pod.Spec.Containers[0].LivenessProbe = &v1.Probe{TerminationGracePeriodSeconds: ptr.To(int64(7))}
				b.pod.Spec.Containers[0].StartupProbe = &v1.Probe{TerminationGracePeriodSeconds: ptr.To(int64(9))}
				result, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: test.reason})
				require.NoError(b, err)
				require.Equal(b, lifecycle.OutcomeGraceExceeded, result.Outcome)
				require.Equal(b, test.timeout, result.GrantedSeconds)
				b.requireStop("app", test.timeout, 0)
				require.Equal(b, test.message, b.events.All()[0].Message)
			})
		})
	}
}

// A grace period of 0 leaves no time for the hook, and StopContainer gets the minimum of 2 s.
func TestGraceOfZeroRunsNoHook(t *testing.T) {
	inBubble(t, graceSeconds(0), func(b *testBed) {
		b.addMain("app", sleepHandler(5), lifecycletest.Script{})
		result, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonUnknown})
		require.NoError(b, err)
		require.Equal(b, lifecycle.HookSkipped, result.Hook.Outcome)
		b.requireStop("app", 2, 0)
	})
}

// Four containers of a pod, each with a hook of 25 s, are killed within 25 s together (k/k#138146).
func TestKillsRunInParallel(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		var wg sync.WaitGroup
		for i := range 4 {
			name := fmt.Sprint("app-", i)
			b.addMain(name, sleepHandler(25), lifecycletest.Script{})
		}
		for i := range 4 {
			wg.Go(func() {
				_, err := b.KillContainer(b.Context(), b.pod, containerNamed(fmt.Sprint("app-", i)), lifecycle.ContainerRequest{Reason: graceperiod.ReasonLivenessProbe})
				require.NoError(b, err)
			})
		}
		wg.Wait()
		require.Equal(b, 25*time.Second, b.elapsed())
	})
}

// KillContainer stops a sidecar at once, although a main container runs, which the sidecar would outlive in
// a termination.
func TestKillContainerOfASidecarDoesNotWaitForItsTurn(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", nil, lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, containerNamed("proxy"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonLivenessProbe})
		require.NoError(b, err)
		require.Zero(b, b.elapsed())
		require.Len(b, b.rt.Stops(), 1)
	})
}

// As in the kubelet, the message of a sidecar's Killing event says "Init container", without "will be
// restarted".
func TestProbeMessageCallsSidecarsInitContainers(t *testing.T) {
	for reason, message := range map[graceperiod.KillReason]string{
		graceperiod.ReasonLivenessProbe: "Init container proxy failed liveness probe",
		graceperiod.ReasonStartupProbe:  "Init container proxy failed startup probe",
	} {
		inBubble(t, graceSeconds(60), func(b *testBed) {
			b.addSidecar("proxy", nil, lifecycletest.Script{})
			_, err := b.KillContainer(b.Context(), b.pod, containerNamed("proxy"), lifecycle.ContainerRequest{Reason: reason})
			require.NoError(b, err)
			require.Equal(b, message, b.events.All()[0].Message)
		})
	}
}

// Two calls for the same container stop it once, and run its hook once.
func TestSecondKillContainerJoinsTheFirst(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", sleepHandler(5), lifecycletest.Script{})
		var wg sync.WaitGroup
		for range 2 {
			wg.Go(func() {
				_, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonLivenessProbe})
				require.NoError(b, err)
			})
		}
		wg.Wait()
		b.requireEvents("Killing")
		require.Len(b, b.rt.Stops(), 1)
	})
}

// KillContainer has a deadline at 60 s, the pod's termination one at 40 s. The earlier one applies to the
// container, and its hook, which runs since 0 s, is not repeated.
func TestTerminationIncludesAKilledContainer(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{Exec: commandTaking(20 * time.Second), IgnoreTerm: true})
		b.addMain("web", nil, lifecycletest.Script{})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonLivenessProbe})
			require.NoError(b, err)
		})
		<-time.After(10 * time.Second)
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(30))})
		<-termination.Done()
		wg.Wait()
		require.Len(b, b.rt.Execs(), 1)
		b.requireStop("app", 20, 20*time.Second)
		require.Equal(b, 40*time.Second, b.elapsed())
		app := termination.Result().Containers[0]
		require.Equal(b, lifecycle.OutcomeGraceExceeded, app.Outcome)
		require.Equal(b, lifecycle.HookCompleted, app.Hook.Outcome)
		b.requireEvents("Killing", "Killing")
	})
}

// Shorten of the pod's termination also applies to a container that KillContainer was already stopping: the
// deadline moves to 15 s, and the container has 2 s more.
func TestKillIsShortenedWithItsPod(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", sleepHandler(40), lifecycletest.Script{IgnoreTerm: true})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonUnknown})
			require.NoError(b, err)
		})
		synctest.Wait()
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(10 * time.Second)
		b.Shorten(termination, 5)
		<-termination.Done()
		wg.Wait()
		b.requireStop("app", 2, 15*time.Second)
		require.Equal(b, 17*time.Second, b.elapsed())
		require.Equal(b, lifecycle.CauseShortened, termination.Result().Containers[0].Hook.Cause)
	})
}

// KillContainer of a container that is already being terminated waits for that stop. It keeps the pod's
// grace period and records no second Killing event (the two are of app and web).
func TestKillDuringATerminationWaitsForIt(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", sleepHandler(5), lifecycletest.Script{})
		b.addMain("web", nil, lifecycletest.Script{IgnoreTerm: true})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		result, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonLivenessProbe})
		require.NoError(b, err)
		require.EqualValues(b, 60, result.GrantedSeconds)
		require.Equal(b, 5*time.Second, b.elapsed())
		b.requireEvents("Killing", "Killing")
	})
}

// stuckUntil makes the runtime unavailable: every call fails until a time after the start of the test.
func (b *testBed) stuckUntil(until time.Duration) { b.rt.Away(0, until) }

// KillContainer gives up at 11 s, 1 s past the deadline. Called again later, it kills at once, because its
// deadline has passed, and does not repeat the hook.
func TestStuckKillIsRepeatedWithoutItsHook(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", sleepHandler(1), lifecycletest.Script{IgnoreTerm: true})
		b.stuckUntil(time.Minute)
		result, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycletest.ErrAway)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Outcome)
		require.Equal(b, 11*time.Second, b.elapsed())
		<-time.After(time.Minute)
		began := time.Now()
		result, err = b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeForced, result.Outcome, "its deadline has passed")
		require.Equal(b, lifecycle.HookResult{Outcome: lifecycle.HookCompleted, Took: time.Second}, result.Hook)
		require.Equal(b, began, b.rt.Exits()[0].At)
		b.requireEvents("Killing", "FailedKillPod")
	}, giveUpAfterOneSecond)
}

// KillContainer gives up at 11 s, because the runtime is unavailable until 11.5 s. The pod's termination
// then stops the container, whose deadline has passed, without repeating its hook.
func TestTerminationStopsAStuckContainer(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		b.stuckUntil(11500 * time.Millisecond)
		b.pod.Spec.Containers[0].Lifecycle.PreStop = sleepHandler(1)
		_, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycletest.ErrAway)
		result := b.killPod()
		require.Equal(b, lifecycle.OutcomeForced, result.Outcome())
		require.Equal(b, lifecycle.HookCompleted, result.Containers[0].Hook.Outcome)
		require.Equal(b, 11700*time.Millisecond, b.elapsed(), "tried again at 11, 11.1, 11.3 and 11.7 s")
	}, giveUpAfterOneSecond)
}

// The caller of KillContainer stops waiting after 1 s. The stop continues, and the container is killed at
// its deadline.
func TestKillContainerOutlivesItsCaller(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		ctx, cancel := context.WithTimeout(b.Context(), time.Second)
		defer cancel()
		result, err := b.KillContainer(ctx, b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonUnknown})
		require.ErrorContains(b, err, "ns/pod/app")
		require.ErrorIs(b, err, context.DeadlineExceeded)
		require.Equal(b, lifecycle.PhaseStopping, result.Phase)
		<-b.rt.Exited("app")
		require.Equal(b, 10*time.Second, b.elapsed())
	})
}

// A listed container that the spec lacks is stopped too. The kubelet would return an error and leave it;
// here the error is in the result.
func TestContainerThatIsNotInTheSpecIsStopped(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.rt.Start(b.pod, "stray", "stray", lifecycletest.Script{})
		result := b.killPod()
		require.ErrorContains(b, result.Containers[0].Err, `failed to get containerSpec "stray" (id="stray") in pod "pod_ns(uid)" when killing container for reason ""`)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.Equal(b, "spec.containers{stray}", b.events.All()[0].Object.(*v1.ObjectReference).FieldPath)
	})
}

// Close during the hook of KillContainer returns its caller at once, with the container LeftRunning.
func TestCloseLeavesAKilledContainerRunning(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", sleepHandler(40), lifecycletest.Script{})
		var wg sync.WaitGroup
		wg.Go(func() {
			result, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonUnknown})
			require.ErrorIs(b, err, lifecycle.ErrClosed)
			require.Equal(b, lifecycle.OutcomeLeftRunning, result.Outcome)
		})
		synctest.Wait()
		require.NoError(b, b.Close(b.Context()))
		wg.Wait()
		_, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonUnknown})
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.Empty(b, b.rt.Stops())
	})
}

// Of three calls with 30, 5 and 20 s, the earliest deadline applies to all: the hook is cut at 5 s.
func TestSecondKillWithAnEarlierDeadlineShortensTheFirst(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", sleepHandler(100), lifecycletest.Script{})
		var kills sync.WaitGroup
		for _, seconds := range []int64{30, 5, 20} {
			kills.Go(func() {
				result, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{GracePeriodSeconds: &seconds})
				require.NoError(b, err)
				require.Equal(b, lifecycle.CauseShortened, result.Hook.Cause)
			})
			synctest.Wait()
		}
		kills.Wait()
		require.Equal(b, []stopCall{{2, 5000}}, b.stopCalls("app"))
	})
}

// A kill whose runtime hangs is given up when the pod's termination gives up.
func TestTerminationLimitsAKillWhoseRuntimeHangs(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
		killed := startCall(func() error {
			_, err := b.KillContainer(b.quietContext(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
			return err
		})
		b.sleepUntil(2 * time.Second)
		_, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(5))})
		require.ErrorContains(b, err, "StopContainer has not returned")
		require.Equal(b, 8*time.Second, b.elapsed(), "the deadline at 7 s, and GiveUpAfter")
		require.ErrorContains(b, killed(), "StopContainer has not returned")
	}, giveUpAfterOneSecond)
}

// Each failed kill records an event, unless another container of the pod is already failing.
func TestEachFailedKillRecordsAnEvent(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		for _, name := range []string{"good", "bad", "fine", "worse"} {
			fails := map[string]int{"bad": 1, "worse": 1}[name]
			app := b.addMain(name, nil, lifecycletest.Script{FailStops: fails})
			_, err := b.KillContainer(b.quietContext(), b.pod, app, lifecycle.ContainerRequest{})
			require.NoError(b, err)
		}
		b.requireEvents("Killing", "Killing", "FailedKillPod", "Killing", "Killing", "FailedKillPod")
	})
}

// Wait returns the result of an ended termination even if its context has ended too. 100 times, because
// select chooses at random.
func TestWaitPrefersTheResultOverAnEndedContext(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.killPod()
		termination, found := b.Termination(b.pod)
		require.True(b, found)
		ended, cancel := context.WithCancel(b.Context())
		cancel()
		for range 100 {
			_, err := termination.Wait(ended)
			require.NoError(b, err)
		}
	})
}
