//go:build go1.25

package lifecycle_test

import (
	"context"
	"testing"
	"time"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// killPodOnce terminates the pod with OneAttempt, so that each container has one StopContainer call.
func killPodOnce(b *testBed) (lifecycle.Outcome, error) {
	result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{OneAttempt: true})
	return result.Outcome(), err
}

// killContainerOnce kills the container "app" with OneAttempt, which is one StopContainer call.
func killContainerOnce(b *testBed) (lifecycle.Outcome, error) {
	result, err := b.KillContainer(b.quietContext(), b.pod, containerNamed("app"), lifecycle.ContainerRequest{OneAttempt: true})
	return result.Outcome, err
}

// With OneAttempt, the first failure ends the call, as in the kubelet. The next call records a Killing
// event and has a new grace period, but runs no hook.
func TestOneAttemptEndsAtTheFirstFailure(t *testing.T) {
	for name, kill := range map[string]func(*testBed) (lifecycle.Outcome, error){"a pod": killPodOnce, "a container": killContainerOnce} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(60), func(b *testBed) {
				b.addMain("app", scriptedExec(), withHookTaking(3*time.Second, lifecycletest.Script{FailStops: 2, IgnoreTerm: true}))
				for try := range 2 {
					outcome, err := kill(b)
					require.ErrorIs(b, err, lifecycletest.ErrScripted)
					require.Equal(b, lifecycle.OutcomeRuntimeStuck, outcome)
					require.Len(b, b.rt.Stops(), try+1)
				}
				b.sleepUntil(100 * time.Second)
				outcome, err := kill(b)
				require.NoError(b, err)
				require.Equal(b, lifecycle.OutcomeGraceExceeded, outcome)
				require.Equal(b, []stopCall{{57, 3000}, {60, 3000}, {60, 100000}}, b.stopCalls("app"))
				require.Len(b, b.rt.Execs(), 1)
				b.requireEvents("Killing", "Killing", "Killing")
			})
		})
	}
}

// A main container whose StopContainer failed still blocks its sidecars until the deadline, as in the
// kubelet.
func TestSidecarsWaitForAMainContainerWhoseOneAttemptFailed(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", nil, lifecycletest.Script{FailStops: 1})
		result, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{
			OneAttempt: true, Containers: []lifecycle.Container{containerNamed("proxy"), containerNamed("app")},
		})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Containers[0].Outcome)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Containers[1].Outcome)
		b.requireStop("app", 60, 0)
		b.requireStop("proxy", 2, 60*time.Second)
	})
}

// A call that did not return in time may have reached the runtime, so the next one has the old
// deadline.
func TestHangingOneAttemptKeepsTheOldDeadline(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: 1, IgnoreTerm: true})
		_, err := killContainerOnce(b)
		require.ErrorContains(b, err, "StopContainer has not returned after")
		require.Len(b, b.rt.Stops(), 1)
		_, err = killContainerOnce(b)
		require.NoError(b, err)
		require.Equal(b, []stopCall{{10, 0}, {0, 135000}}, b.stopCalls("app"))
	})
}

// The kubelet's client gives up 2 minutes after the timeout. That is an ordinary failure: the next call
// has a new grace period.
func TestOneAttemptReturnsTheErrorOfAClientThatGivesUp(t *testing.T) {
	for name, kill := range map[string]func(*testBed) (lifecycle.Outcome, error){"a pod": killPodOnce, "a container": killContainerOnce} {
		t.Run(name, func(t *testing.T) {
			var timeouts []int64
			inBubble(t, graceSeconds(10), func(b *testBed) {
				b.addMain("app", scriptedExec(), withHookTaking(2500*time.Millisecond, lifecycletest.Script{}))
				_, err := kill(b)
				require.ErrorIs(b, err, context.DeadlineExceeded)
				require.Equal(b, 2500*time.Millisecond+8*time.Second+2*time.Minute, b.elapsed())
				b.sleepUntil(140 * time.Second)
				_, err = kill(b)
				require.NoError(b, err)
				require.Equal(b, []int64{8, 10}, timeouts)
			}, func(o *lifecycle.TerminatorOptions) {
				runtime := o.Runtime
				o.Runtime = runtimeWithStop{runtime, func(ctx context.Context, id string, seconds int64) error {
					if timeouts = append(timeouts, seconds); len(timeouts) > 1 {
						return runtime.StopContainer(ctx, id, seconds)
					}
					<-time.After(time.Duration(seconds)*time.Second + 2*time.Minute)
					return context.DeadlineExceeded
				}}
			})
		})
	}
}

// A failed attempt is logged once, and no FailedKillPod event is recorded, because the caller retries and
// records it.
func TestFailureOfOneAttemptIsLoggedOnce(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: -1})
		log := errorLog{make(chan error, 10)}
		_, err := b.KillPod(klog.NewContext(b.Context(), logr.New(log)), b.pod, lifecycle.Request{OneAttempt: true})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Len(b, log.errors, 1)
		b.requireEvents("Killing")
	})
}
