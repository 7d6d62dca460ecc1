//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// A container whose start returns after Forget is stopped by the next termination.
func TestStartThatReturnsAfterForget(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		done := b.startAfter("app", 2*time.Second, lifecycletest.Script{})
		<-time.After(time.Second)
		b.Forget("uid")
		require.NoError(b, done())
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Complete: true})
		require.NoError(b, err)
		require.Len(b, b.rt.Stops(), 1)
	})
}

// Of two concurrent starts of one name neither replaces the other, in any order.
func TestOverlappingStartsOfOneName(t *testing.T) {
	for name, last := range map[string]int{"the first is up last": 0, "the second is up last": 1} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, 30, func(b *bed) {
				b.addWaitingContainer("app")
				var wg sync.WaitGroup
				for i, id := range []string{"one", "two"} {
					takes := 5 * time.Second
					if i == last {
						takes *= 2
					}
					wg.Go(func() {
						require.NoError(b, b.Start(b.Context(), b.pod, "app", func(context.Context) (string, error) {
							<-time.After(takes)
							b.rt.Start(id, lifecycletest.Script{})
							return id, nil
						}))
					})
					synctest.Wait()
				}
				wg.Wait()
				_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Complete: true})
				require.NoError(b, err)
				require.Len(b, b.rt.Stops(), 2)
			})
		})
	}
}

// A later start says nothing about what one that panicked has started.
func TestRestartAfterOneThatPanicked(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 10 * time.Second})
		b.addSidecar("side", nil, lifecycletest.Script{})
		term := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		b.rt.Exit("side")
		err := b.Start(b.silentContext(), b.pod, "side", func(context.Context) (string, error) { panic("boom") })
		require.Error(b, err)
		err = b.Start(b.silentContext(), b.pod, "side", func(context.Context) (string, error) {
			b.rt.Start("side2", lifecycletest.Script{})
			return "side2", nil
		})
		require.NoError(b, err)
		r, err := term.Wait(b.Context())
		require.ErrorContains(b, err, "the start panicked: boom")
		require.Equal(b, lifecycle.RuntimeStuck, r.Outcome())
		r, err = b.KillPod(b.Context(), b.pod, lifecycle.Request{Complete: true})
		require.NoError(b, err)
		require.Equal(b, lifecycle.Graceful, r.Outcome())
	})
}

// An exit before the start, by the status, is one of another container with the same ID.
func TestAnExitFromBeforeTheStart(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		b.pod.Status.Phase = v1.PodRunning
		exit := &v1.ContainerStateTerminated{ContainerID: "fake://app", FinishedAt: metav1.Now()}
		b.pod.Status.ContainerStatuses = []v1.ContainerStatus{{
			Name: "app", ContainerID: "fake://app", State: v1.ContainerState{Terminated: exit},
		}}
		<-time.After(5 * time.Second)
		done := b.startAfter("app", 0, lifecycletest.Script{})
		require.NoError(b, done())
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.Len(b, b.rt.Stops(), 1)
	})
	inBubble(t, 30, func(b *bed) { // running again, in the list's absence from the request
		b.addWaitingContainer("app")
		b.pod.Status.Phase = v1.PodRunning
		done := b.startAfter("app", 0, lifecycletest.Script{})
		require.NoError(b, done())
		exit := &v1.ContainerStateTerminated{ContainerID: "fake://app", FinishedAt: metav1.NewTime(time.Now().Add(-time.Minute))}
		b.pod.Status.ContainerStatuses = []v1.ContainerStatus{{
			Name: "app", ContainerID: "fake://app",
			State:                v1.ContainerState{Running: &v1.ContainerStateRunning{StartedAt: metav1.Now()}},
			LastTerminationState: v1.ContainerState{Terminated: exit},
		}}
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Complete: true})
		require.NoError(b, err)
		require.Len(b, b.rt.Stops(), 1)
	})
}

// Times that the API server has stored have whole seconds.
func TestReusedIDWithinTheSecondOfTheEnd(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		<-time.After(300 * time.Millisecond)
		b.addMain("app", nil, lifecycletest.Script{})
		began := metav1.Time{Time: b.start.Add(-time.Hour)}
		b.pod.Status.ContainerStatuses[0].State.Running.StartedAt = began
		require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		<-time.After(300 * time.Millisecond)
		b.rt.Start("app", lifecycletest.Script{})
		b.pod = b.pod.DeepCopy()
		b.pod.Status.ContainerStatuses[0].State.Running.StartedAt = ptr.To(metav1.Now()).Rfc3339Copy()
		require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		require.Len(b, b.rt.Stops(), 2)
	})
}

// A start time within the second of the end is not a new start if it was known before.
func TestSameStartTimeWithinTheSecondOfTheEnd(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		<-time.After(300 * time.Millisecond)
		b.addMain("app", exec(), lifecycletest.Script{})
		b.pod.Status.ContainerStatuses[0].State.Running.StartedAt = ptr.To(metav1.Now()).Rfc3339Copy()
		for range 3 {
			require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		}
		require.Len(b, b.rt.Stops(), 1)
		require.Len(b, b.rt.Execs(), 1)
	})
}

// The hook of a sidecar does not run again if the sidecar is stopped again before its
// deadline, because its restart has not returned.
func TestTheHookOfASidecarThatIsStuckEarly(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 10 * time.Second})
		b.addSidecar("side", exec(), lifecycletest.Script{})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Second)
		require.Error(b, b.Start(b.silentContext(), b.pod, "side", func(context.Context) (string, error) { panic("boom") }))
		result, err := termination.Wait(b.Context())
		require.Error(b, err)
		require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
		_, exited := b.rt.ExitCode("side")
		require.True(b, exited)
		_, err = b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "the start panicked: boom")
		require.Len(b, b.rt.Execs(), 1)
	})
}

// A restart stops the container that it has started if the termination has given up the
// container and only waits for its hook.
func TestARestartThatReturnsWhileAHookIsWaitedFor(t *testing.T) {
	inBubble(t, 5, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		b.addSidecar("side", exec(), lifecycletest.Script{ExitAfter: time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(1500 * time.Millisecond)
		err := b.Start(b.Context(), b.pod, "side", func(context.Context) (string, error) {
			<-time.After(4 * time.Second) // until half a second after the deadline
			b.rt.Start("side-2", lifecycletest.Script{})
			return "side-2", nil
		})
		require.ErrorIs(b, err, lifecycle.ErrTerminating)
		_, exited := b.rt.ExitCode("side-2")
		require.True(b, exited)
		<-termination.Done()
	}, withHooks(func(context.Context) error { <-time.After(8 * time.Second); return nil }))
}

// A container that has ended, of which the status still says that it runs, is no part of the
// termination of one that was started again.
func TestATerminationLeavesOutWhatHasEndedBeforeIt(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.addMain("web", nil, lifecycletest.Script{})
		require.Len(b, b.kill().Containers, 2)
		<-time.After(time.Minute)
		b.rt.Start("app-2", lifecycletest.Script{})
		b.setRestarted("app-2", time.Now())
		result := b.kill()
		require.Len(b, result.Containers, 1)
		require.Equal(b, "app-2", result.Containers[0].ID)
	})
}

// The start of one container says nothing about another one of its pod.
func TestTheStartTimeOfAnotherContainer(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("web", nil, lifecycletest.Script{})
		b.addMain("app", exec(), lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{})
		require.NoError(b, err)
		<-time.After(time.Minute)
		b.setRestarted("fake://web", time.Now())
		require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		require.Len(b, b.rt.Execs(), 1)
		require.Equal(b, []string{"app", "web"}, stoppedIDs(b.rt))
	})
}

// A container that was started after the end of a termination has its deadline while that is
// ahead.
func TestAStartRightAfterTheEnd(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
		b.kill()
		<-time.After(500 * time.Millisecond)
		b.rt.Start("app-2", lifecycletest.Script{IgnoreTerm: true})
		b.setRestarted("app-2", time.Now())
		b.kill()
		b.requireStop("app-2", 28, 2500*time.Millisecond)
	})
}

// A container that had exited before the termination is in no result, however often the
// containers that are stuck are stopped.
func TestStoppingAgainLeavesOutWhatHadExited(t *testing.T) {
	inBubble(t, 10, func(b *bed) {
		b.addWaitingContainer("ended")
		require.NoError(b, b.startAfter("ended", 0, lifecycletest.Script{})())
		b.rt.Exit("ended")
		b.pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: "fake://ended"}}
		b.addMain("app", nil, lifecycletest.Script{})
		b.stuckUntil(20 * time.Second)
		_, err := b.KillPod(b.silentContext(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycletest.ErrAway)
		<-time.After(20 * time.Second)
		result := b.kill()
		require.Len(b, result.Containers, 1)
		require.Equal(b, lifecycle.Forced, result.Outcome())
	}, withShortGiveUp)
}

// A container that was stopped before a start is another one than that which has its ID after it,
// whose hook runs too.
func TestAStartReturnsAnIDThatWasStopped(t *testing.T) {
	inLife(t, func(b *lifeBed) {
		b.rt.Start("a", lifecycletest.Script{})
		_, err := b.life.KillContainer(b.ctx, lifecycle.Container{Name: "app", ID: "a"}, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		<-time.After(time.Second)
		b.runs("app", "a", lifecycletest.Script{})
		outcome, err := b.kill(lifecycle.Request{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.Graceful, outcome)
		b.requireHooks("a", "a")
		b.requireStops("a", "a")
	})
}
