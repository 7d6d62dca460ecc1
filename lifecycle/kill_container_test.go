//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A container is killed because its liveness probe (7 s) or its startup probe (9 s) has failed: the grace period is the
// probe's, and the event has the kubelet's message, which calls a sidecar an init container. For another reason the grace
// period is the pod's 30 s.
func TestKillContainerUsesTheGraceOfItsReason(t *testing.T) {
	for _, test := range []struct {
		name    string
		reason  graceperiod.KillReason
		policy  v1.RestartPolicy
		seconds int64  // the grace period
		message string // of the Killing event
	}{
		{name: "app", reason: graceperiod.ReasonLivenessProbe, policy: v1.RestartPolicyAlways, seconds: 7, message: "Container app failed liveness probe, will be restarted"},
		{name: "app", reason: graceperiod.ReasonLivenessProbe, policy: v1.RestartPolicyNever, seconds: 7, message: "Container app failed liveness probe"},
		{name: "app", reason: graceperiod.ReasonStartupProbe, policy: v1.RestartPolicyOnFailure, seconds: 9, message: "Container app failed startup probe, will be restarted"},
		{name: "app", reason: graceperiod.ReasonUnknown, policy: v1.RestartPolicyAlways, seconds: 30, message: "Stopping container app"},
		{name: "proxy", reason: graceperiod.ReasonLivenessProbe, policy: v1.RestartPolicyAlways, seconds: 7, message: "Init container proxy failed liveness probe"},
		{name: "proxy", reason: graceperiod.ReasonStartupProbe, policy: v1.RestartPolicyAlways, seconds: 9, message: "Init container proxy failed startup probe"},
	} {
		t.Run(fmt.Sprint(test.name, test.reason, test.policy), func(t *testing.T) {
			inBubble(t, graceSeconds(30), func(b *testBed) {
				b.addMain("app", lifecycletest.Script{IgnoreTerm: true})
				b.addSidecar("proxy", lifecycletest.Script{IgnoreTerm: true})
				b.pod.Spec.RestartPolicy = test.policy
				for _, c := range []*v1.Container{&b.pod.Spec.Containers[0], &b.pod.Spec.InitContainers[0]} {
					c.LivenessProbe = &v1.Probe{TerminationGracePeriodSeconds: ptr.To(int64(7))}
					c.StartupProbe = &v1.Probe{TerminationGracePeriodSeconds: ptr.To(int64(9))}
				}
				result, err := b.KillContainer(b.Context(), b.pod, containerNamed(test.name), lifecycle.ContainerRequest{Reason: test.reason})
				require.NoError(b, err)
				require.Equal(b, lifecycle.OutcomeGraceExceeded, result.Outcome)
				require.Equal(b, test.seconds, result.GrantedSeconds)
				require.Equal(b, []stopCall{{timeoutSeconds: test.seconds, atMilliseconds: 0}}, b.stopCalls(test.name))
				require.Equal(b, test.message, b.events.All()[0].Message)
			})
		})
	}
}

// Wait is called for a termination that has ended, with a context that has ended too. It returns the result, not an error.
// The test calls it 100 times, because a select would choose at random.
func TestWaitPrefersTheResultOverAnEndedContext(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", lifecycletest.Script{})
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

// wholePod is a [lifecycle.PodStopper] for pods whose containers stop together.
type wholePod struct{ *lifecycletest.Runtime }

// StopPod stops all running containers of the pod concurrently, and joins the errors.
func (w wholePod) StopPod(ctx context.Context, pod *v1.Pod, timeoutSeconds int64) error {
	running, err := w.Running(ctx, pod)
	if err != nil {
		return err
	}
	if len(running) == 0 {
		return lifecycle.ErrContainerNotFound
	}
	errs := make([]error, len(running))
	var stops sync.WaitGroup
	for i, c := range running {
		stops.Go(func() { errs[i] = w.StopContainer(ctx, c.ID, timeoutSeconds) })
	}
	stops.Wait()
	return errors.Join(errs...)
}

// withPodStopper is an option of inBubble: a PodStopper replaces the Runtime, so the containers of a pod stop together.
func withPodStopper(o *lifecycle.TerminatorOptions) {
	o.Pods, o.Runtime = wholePod{o.Runtime.(*lifecycletest.Runtime)}, nil
}

// A PodStopper can stop only whole pods, so KillContainer returns an error and stops nothing.
func TestKillContainerIsUnsupportedForAPodStopper(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		app := b.addMain("app", lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, app, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, errors.ErrUnsupported)
		require.ErrorContains(b, err, `failed to stop container "app": the pod's containers stop as a unit`)
		require.Empty(b, b.rt.Stops())
	}, withPodStopper)
}

// A termination pauses before it stops a container for the eleventh time, because a runtime that gives the container a new ID in
// every list would make it stop without end. KillContainer has no such pause: container b is killed 12 times, each time as a new run,
// and that takes no time. The postStart hook of container app runs meanwhile: only during a termination or a call such as PostStart
// does the terminator remember the stops of ended runs.
func TestKillContainerManyTimesDuringPostStart(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addAppWithPostStart(sleepHandler(3600), lifecycletest.Script{})
		b.addToSpec("b")
		ctx, cancel := context.WithCancel(b.quietContext())
		ended := startCall(func() error { return b.PostStart(ctx, b.pod, containerNamed("app")) })
		for i := range 12 {
			c := b.rt.Start(b.pod, "b", fmt.Sprintf("b%d", i), lifecycletest.Script{})
			_, err := b.KillContainer(b.quietContext(), b.pod, c, lifecycle.ContainerRequest{})
			require.NoError(b, err)
		}
		require.Zero(b, b.elapsed())
		cancel()
		require.ErrorIs(b, ended(), context.Canceled)
	})
}

// The first KillContainer grants 0 s, and its only StopContainer call (OneAttempt) fails. The second one asks for 5 s, and
// stops the container. It reports the 0 s of the first call: a grace period is never extended, and 0 does not mean that none was
// granted.
func TestFirstGracePeriodMayBeZero(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		app := b.addMain("app", lifecycletest.Script{FailStops: 1})
		killed, err := b.KillContainer(b.quietContext(), b.pod, app, lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(0)), OneAttempt: true})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Zero(b, killed.GrantedSeconds)
		killed, err = b.KillContainer(b.quietContext(), b.pod, app, lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(5)), OneAttempt: true})
		require.NoError(b, err)
		require.Zero(b, killed.GrantedSeconds)
	})
}

// runtimeWithoutBegan is a Runtime whose lists do not say when a run began.
type runtimeWithoutBegan struct{ lifecycle.Runtime }

func (r runtimeWithoutBegan) Running(ctx context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	containers, err := r.Runtime.Running(ctx, pod)
	for i := range containers {
		containers[i].Began = time.Time{}
	}
	return containers, err
}

// Container a is killed, and started again with its old ID at 10 s. The lists do not say when a run began, but one of them has lacked
// the ID, so the second run is known to be another one: its postStart hook runs, and the next KillContainer runs its preStop hook
// and grants the whole 5 s again. The postStart hook of container b runs all the time: only during a termination or a call such as
// PostStart does the terminator remember the stops of ended runs.
func TestAnIDThatIsUsedAgainDuringPostStart(t *testing.T) {
	inBubble(t, graceSeconds(5), func(b *testBed) {
		a := containerNamed("a")
		b.addMainWithHook("a", scriptedExec(), lifecycletest.Script{})
		b.pod.Spec.Containers[0].Lifecycle.PostStart = scriptedExec()
		b.addMain("b", lifecycletest.Script{})
		b.pod.Spec.Containers[1].Lifecycle = &v1.Lifecycle{PostStart: sleepHandler(60)}
		ended := startCall(func() error { return b.PostStart(b.Context(), b.pod, containerNamed("b")) })
		_, err := b.KillContainer(b.Context(), b.pod, a, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		b.sleepUntil(10 * time.Second)
		b.rt.Start(b.pod, "a", "a", lifecycletest.Script{})
		require.NoError(b, b.PostStart(b.Context(), b.pod, a))
		result, err := b.KillContainer(b.Context(), b.pod, a, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Outcome)
		require.Equal(b, []stopCall{{timeoutSeconds: 5, atMilliseconds: 0}, {timeoutSeconds: 5, atMilliseconds: 10_000}}, b.stopCalls("a"))
		require.Len(b, b.rt.Execs(), 3, "two preStop hooks and a postStart hook")
		require.NoError(b, ended())
	}, func(o *lifecycle.TerminatorOptions) { o.Runtime = runtimeWithoutBegan{o.Runtime} })
}
