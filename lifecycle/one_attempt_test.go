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

// onceForPod and onceForContainer make one StopContainer call for the container "app".
func onceForPod(b *bed) (lifecycle.Outcome, error) {
	result, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{OneAttempt: true})
	return result.Outcome(), err
}

func onceForContainer(b *bed) (lifecycle.Outcome, error) {
	result, err := b.KillContainer(b.silentContext(), b.pod, named("app"), lifecycle.ContainerRequest{OneAttempt: true})
	return result.Outcome, err
}

// With OneAttempt the first failure ends the call with its error, as in the kubelet. The next call is
// a new try: with a Killing event and a grace period of its own, and without the hook.
func TestTheFirstFailureEndsACallOfOneAttempt(t *testing.T) {
	for name, kill := range map[string]func(*bed) (lifecycle.Outcome, error){"a pod": onceForPod, "a container": onceForContainer} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 60, func(b *bed) {
				b.addMain("app", exec(), draining(3*time.Second, lifecycletest.Script{FailStops: 2, IgnoreTerm: true}))
				for try := range 2 {
					outcome, err := kill(b)
					require.ErrorIs(b, err, lifecycletest.ErrScripted)
					require.Equal(b, lifecycle.OutcomeRuntimeStuck, outcome)
					require.Len(b, b.rt.Stops(), try+1)
				}
				b.after(100 * time.Second)
				outcome, err := kill(b)
				require.NoError(b, err)
				require.Equal(b, lifecycle.OutcomeGraceExceeded, outcome)
				require.Equal(b, [][2]time.Duration{{57, 3000}, {60, 3000}, {60, 100000}}, b.stopsOf("app"))
				require.Len(b, b.rt.Execs(), 1)
				b.requireEvents("Killing", "Killing", "Killing")
			})
		})
	}
}

// A main container whose StopContainer fails keeps its place in the order: its sidecars are stopped at
// the deadline, as in the kubelet (findings F2).
func TestSidecarsWaitForAMainContainerWhoseOneStopHasFailed(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{})
		b.addMain("app", nil, lifecycletest.Script{FailStops: 1})
		result, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{
			OneAttempt: true, Containers: []lifecycle.Container{named("proxy"), named("app")},
		})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Equal(b, lifecycle.OutcomeRuntimeStuck, result.Containers[0].Outcome)
		require.Equal(b, lifecycle.OutcomeGraceful, result.Containers[1].Outcome)
		b.requireStop("app", 60, 0)
		b.requireStop("proxy", 2, 60*time.Second)
	})
}

// A call of OneAttempt that did not return in time may have been delivered: the next one has the old
// deadline.
func TestAStopOfOneAttemptThatDoesNotReturn(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: 1, IgnoreTerm: true})
		_, err := onceForContainer(b)
		require.ErrorContains(b, err, "StopContainer has not returned after")
		require.Len(b, b.rt.Stops(), 1)
		_, err = onceForContainer(b)
		require.NoError(b, err)
		require.Equal(b, [][2]time.Duration{{10, 0}, {0, 135000}}, b.stopsOf("app"))
	})
}

// The client of the kubelet gives up 2 minutes after the timeout. That is a failure like any other: the next
// call has a grace period of its own.
func TestAClientOfOneAttemptThatGivesUp(t *testing.T) {
	for name, kill := range map[string]func(*bed) (lifecycle.Outcome, error){"a pod": onceForPod, "a container": onceForContainer} {
		t.Run(name, func(t *testing.T) {
			var timeouts []int64
			inBubble(t, 10, func(b *bed) {
				b.addMain("app", exec(), draining(2500*time.Millisecond, lifecycletest.Script{}))
				_, err := kill(b)
				require.ErrorIs(b, err, context.DeadlineExceeded)
				require.Equal(b, 2500*time.Millisecond+8*time.Second+2*time.Minute, b.at())
				b.after(140 * time.Second)
				_, err = kill(b)
				require.NoError(b, err)
				require.Equal(b, []int64{8, 10}, timeouts)
			}, func(o *lifecycle.TerminatorOptions) {
				runtime := o.Runtime
				o.Runtime = listing{runtime, func(ctx context.Context, id string, seconds int64) error {
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

// listing is a runtime with a StopContainer of its own.
type listing struct {
	lifecycle.Runtime

	stop lifecycle.RuntimeFunc
}

func (l listing) StopContainer(ctx context.Context, id string, seconds int64) error {
	return l.stop(ctx, id, seconds)
}

// The failure of a call of OneAttempt is logged once, and is the caller's to record as an event.
func TestTheFailureOfOneAttemptIsLoggedOnce(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: -1})
		log := errorCounter{make(chan error, 10)}
		_, err := b.KillPod(klog.NewContext(b.Context(), logr.New(log)), b.pod, lifecycle.Request{OneAttempt: true})
		require.ErrorIs(b, err, lifecycletest.ErrScripted)
		require.Len(b, log.errors, 1)
		b.requireEvents("Killing")
	})
}
