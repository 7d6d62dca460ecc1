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

func TestGraceOfZeroRunsNoHook(t *testing.T) {
	inBubble(t, graceSeconds(0), func(b *testBed) {
		b.addMain("app", sleepHandler(5), lifecycletest.Script{})
		result, err := b.KillContainer(b.Context(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{Reason: graceperiod.ReasonUnknown})
		require.NoError(b, err)
		require.Equal(b, lifecycle.HookSkipped, result.Hook.Outcome)
		b.requireStop("app", 2, 0)
	})
}

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

// stuckUntil makes every call of the runtime fail until a time after the start of the test.
func (b *testBed) stuckUntil(until time.Duration) { b.rt.Away(0, until) }

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

func TestContainerThatIsNotInTheSpecIsStopped(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.rt.Start(b.pod, "stray", "stray", lifecycletest.Script{})
		result := b.killPod()
		require.ErrorContains(b, result.Containers[0].Err, `failed to get containerSpec "stray" (id="stray") in pod "pod_ns(uid)" when killing container for reason ""`)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
		require.Equal(b, "spec.containers{stray}", b.events.All()[0].Object.(*v1.ObjectReference).FieldPath)
	})
}

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
