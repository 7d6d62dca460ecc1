//go:build go1.25

package lifecycle_test

import (
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// asUnit makes the containers of a pod stop together.
func asUnit(o *lifecycle.TerminatorOptions) {
	o.Pods, o.Runtime = lifecycletest.Unit{Runtime: o.Runtime.(*lifecycletest.Runtime)}, nil
}

// withHookTaking returns the script of a container whose exec hook takes a while.
func withHookTaking(hook time.Duration, s lifecycletest.Script) lifecycletest.Script {
	s.Exec = commandTaking(hook)
	return s
}

// The hooks of a unit run in parallel, and then StopPod is called once.
func TestUnitIsStoppedOnceAfterAllHooks(t *testing.T) {
	for name, test := range map[string]struct {
		hook    time.Duration
		script  lifecycletest.Script
		stops   []stopCall
		outcome lifecycle.Outcome
	}{
		"after its hooks":       {10 * time.Second, lifecycletest.Script{}, []stopCall{{50, 10000}}, lifecycle.OutcomeGraceful},
		"at its deadline":       {100 * time.Second, lifecycletest.Script{IgnoreTerm: true}, []stopCall{{2, 60000}}, lifecycle.OutcomeGraceExceeded},
		"again after a failure": {10 * time.Second, lifecycletest.Script{FailStops: 1}, []stopCall{{50, 10000}, {50, 10100}}, lifecycle.OutcomeGraceful},
		"again after a hang":    {10 * time.Second, lifecycletest.Script{HangStops: 1}, []stopCall{{50, 10000}, {0, 65000}}, lifecycle.OutcomeForced},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(60), func(b *testBed) {
				b.addSidecar("proxy", scriptedExec(), withHookTaking(time.Second, lifecycletest.Script{}))
				b.addMain("app", scriptedExec(), withHookTaking(test.hook, test.script))
				b.addMain("web", nil, lifecycletest.Script{})
				result := b.killPod()
				require.Equal(b, test.outcome, result.Outcome())
				require.Len(b, result.Containers, 3)
				require.Equal(b, test.stops, b.stopCalls("app"))
				require.Equal(b, test.stops[0], b.stopCalls("proxy")[0])
				require.Len(b, b.rt.Execs(), 2)
			}, asUnit)
		})
	}
}

// A PodStopper can stop only whole pods, so KillContainer returns an error and stops nothing.
func TestKillContainerOfAUnitIsUnsupported(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		app := b.addMain("app", nil, lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, app, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, errors.ErrUnsupported)
		require.ErrorContains(b, err, `failed to stop container "app": the pod's containers stop as a unit`)
		require.Empty(b, b.rt.Stops())
	}, asUnit)
}

// A shorter deadline for one member also shortens the StopPod in progress.
func TestShorterDeadlineOfOneMemberShortensTheUnit(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), withHookTaking(time.Second, lifecycletest.Script{})) // its goroutine makes the StopPod call
		b.addMain("web", nil, lifecycletest.Script{IgnoreTerm: true})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.sleepUntil(5 * time.Second)
		b.Forget(b.pod)
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(3))})
		require.NoError(b, err)
		require.Len(b, result.Containers, 1)
		require.Equal(b, lifecycle.OutcomeGraceExceeded, result.Outcome())
		require.Equal(b, []stopCall{{59, 1000}, {3, 5000}}, b.stopCalls("web"))
		require.Equal(b, 8*time.Second, b.elapsed())
	}, asUnit)
}

// A container is started while StopPod is in progress, which may miss it. It joins a new unit, whose
// StopPod follows the first at 5 s.
func TestContainerListedDuringStopPodGetsItsOwnStopPod(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		b.addStopped("late")
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.sleepUntil(time.Second)
		b.rt.Start(b.pod, "late", "late", lifecycletest.Script{})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		result, err := termination.Wait(b.Context())
		require.NoError(b, err)
		require.Len(b, result.Containers, 2)
		require.Equal(b, []stopCall{{55, 5000}}, b.stopCalls("late"))
	}, asUnit)
}

// A StopPod call with OneAttempt fails. As in the kubelet, the next request has the whole grace period
// again, although 100 s have passed.
func TestUnitHasANewGraceAfterAFailedOneAttempt(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: 1})
		b.addMain("web", nil, lifecycletest.Script{})
		b.rt.Away(0, time.Second)
		once := lifecycle.Request{OneAttempt: true, Containers: []lifecycle.Container{containerNamed("app"), containerNamed("web")}}
		_, err := b.KillPod(b.quietContext(), b.pod, once)
		require.ErrorIs(b, err, lifecycletest.ErrAway)
		b.sleepUntil(100 * time.Second)
		_, err = b.KillPod(b.quietContext(), b.pod, once)
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		_, err = b.KillPod(b.quietContext(), b.pod, once)
		require.NoError(b, err)
		require.Equal(b, []stopCall{{60, 100000}, {60, 100000}}, b.stopCalls("app"))
	}, asUnit)
}

// The phases of app and web at 4, 8 and 12 s. web has no hook, so it is in PhaseWaiting during the hook of
// app; then one StopPod stops both.
func TestPhasesOfAUnit(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addMain("app", scriptedExec(), withHookTaking(5*time.Second, lifecycletest.Script{ExitAfterTerm: 5 * time.Second}))
		b.addMain("web", nil, lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		for _, want := range [][]lifecycle.Phase{
			{lifecycle.PhaseHook, lifecycle.PhaseWaiting}, {lifecycle.PhaseStopping, lifecycle.PhaseStopping}, {lifecycle.PhaseEnded, lifecycle.PhaseEnded},
		} {
			<-time.After(4 * time.Second)
			var phases []lifecycle.Phase
			for _, container := range termination.Result().Containers {
				phases = append(phases, container.Phase)
			}
			require.Equal(b, want, phases)
		}
	}, asUnit)
}

// The containers of a unit stop together, so no sidecar is needed by others while they stop.
func TestSidecarOfAUnitIsNotRestarted(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", scriptedExec(), withHookTaking(5*time.Second, lifecycletest.Script{}))
		b.pod.Spec.RestartPolicy = v1.RestartPolicyAlways
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		b.sleepUntil(time.Second)
		b.rt.Exit("proxy")
		restart, _ := termination.ShouldRestart("proxy")
		require.False(b, restart)
		result, err := termination.Wait(b.Context())
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome())
	}, asUnit)
}
