//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
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

// A pod whose status has no states of its containers does not count as ended.
func TestPodWithoutStatus(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		status := b.pod.Status
		b.pod.Status = v1.PodStatus{}
		for range 2 {
			result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
			require.ErrorIs(b, err, lifecycle.ErrUnknownContainers)
			require.ErrorContains(b, err, `container "app"`)
			require.Equal(b, lifecycle.RuntimeStuck, result.Outcome())
			require.Empty(b, b.rt.Stops())
		}
		b.pod.Status = status // the agent has looked
		require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		b.requireStop("app", 30, 0)
	})
	for _, phase := range []v1.PodPhase{v1.PodPending, v1.PodSucceeded, v1.PodFailed} {
		inBubble(t, 30, func(b *bed) {
			b.addMain("app", nil, lifecycletest.Script{})
			b.pod.Status = v1.PodStatus{Phase: phase}
			require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		})
	}
}

func TestPodWithStatusOfSomeContainers(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.addMain("web", nil, lifecycletest.Script{})
		b.pod.Status.ContainerStatuses[1].State = v1.ContainerState{}
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.ErrUnknownContainers)
		require.Equal(b, lifecycle.Graceful, result.Containers[0].Outcome, "what is known is stopped")
		require.Equal(b, lifecycle.RuntimeStuck, result.Containers[1].Outcome)
		_, err = b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.ErrUnknownContainers)
		result, err = b.KillPod(b.Context(), b.pod, lifecycle.Request{Complete: true})
		require.NoError(b, err, "the agent says that none runs")
		require.Len(b, result.Containers, 1)
	})
}

func TestContainerWithoutAnIDIsNotStopped(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.pod.Status.ContainerStatuses[0].ContainerID = ""
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.ErrUnknownContainers)
		_, err = b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "app"}, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycle.ErrUnknownContainers)
		b.Forget(b.pod.UID)
		err = b.Start(b.Context(), b.pod, "app", func(context.Context) (string, error) { return "", nil })
		require.ErrorContains(b, err, "its start gave no ID")
		require.Empty(b, b.rt.Stops())
	})
}

func TestANilPodIsAnError(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		_, err := b.KillPod(b.Context(), nil, lifecycle.Request{})
		require.ErrorContains(b, err, "the pod is nil")
		termination := b.Terminate(b.Context(), nil, lifecycle.Request{})
		<-termination.Done()
		require.False(b, termination.Shorten(1))
		_, err = b.KillContainer(b.Context(), nil, named("app"), lifecycle.ContainerRequest{})
		require.ErrorContains(b, err, "the pod is nil")
		require.ErrorContains(b, b.PostStart(b.Context(), nil, named("app")), "the pod is nil")
		require.ErrorContains(b, b.Start(b.Context(), nil, "app", nil), "the pod is nil")
	})
}

// A container that Start has started is stopped even if the status does not have it, unless
// the status says that it has exited.
func TestStartedContainersAreStopped(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.pod.Spec.Containers = append(b.pod.Spec.Containers, container("app", nil), container("never", nil))
		require.NoError(b, b.startAfter("app", 0, lifecycletest.Script{})())
		result := b.kill()
		require.Equal(b, lifecycle.Graceful, result.Outcome())
		require.Len(b, result.Containers, 1)
		b.requireStop("app", 30, 0)
	}, func(o *lifecycle.TerminatorOptions) { o.Exits = nil })
	inBubble(t, 30, func(b *bed) { // the status knows of its end
		b.addWaitingContainer("app")
		require.NoError(b, b.startAfter("app", 0, lifecycletest.Script{})())
		b.pod.Status.ContainerStatuses[0].State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ContainerID: "x://app"}}
		require.Empty(b, b.kill().Containers)
	}, func(o *lifecycle.TerminatorOptions) { o.Exits = nil })
}

// setRestarted sets the status of a container that was started at a time.
func (b *bed) setRestarted(id string, at time.Time) {
	b.pod.Status.ContainerStatuses[0].ContainerID = id
	b.pod.Status.ContainerStatuses[0].State.Running.StartedAt = metav1.NewTime(at)
}

// A static pod returns with the same UID, and Forget was not called.
func TestStaticPodThatReturnsWithoutForget(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
		first := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-first.Done()
		require.Same(b, first, b.Terminate(b.Context(), b.pod, lifecycle.Request{}))
		<-time.After(time.Minute)

		b.rt.Start("app-2", lifecycletest.Script{IgnoreTerm: true})
		b.setRestarted("app-2", time.Now())
		second := b.Terminate(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(7))})
		require.NotSame(b, first, second)
		<-second.Done()
		require.Len(b, second.Result().Containers, 1)
		require.Equal(b, lifecycle.GraceExceeded, second.Result().Outcome())
		require.Equal(b, [][2]time.Duration{{7, 62000}}, b.stopsOf("app-2"))
		require.Len(b, b.rt.Execs(), 2)
		require.Equal(b, lifecycle.Graceful, first.Result().Outcome())
	})
}

func TestAContainerFromBeforeTheEndHasTheOldDeadline(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
		b.kill()
		<-time.After(3 * time.Second)
		b.rt.Start("unseen", lifecycletest.Script{IgnoreTerm: true})
		b.setRestarted("unseen", b.start.Add(time.Second))
		result := b.kill()
		require.Equal(b, [][2]time.Duration{{25, 5000}}, b.stopsOf("unseen"))
		require.Len(b, result.Containers, 2, "it belongs to the termination that ended")
		require.Equal(b, 30*time.Second, b.at())
	})
	inBubble(t, 30, func(b *bed) { // which gets shorter
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
		b.kill()
		b.rt.Start("unseen", lifecycletest.Script{IgnoreTerm: true})
		b.setRestarted("unseen", b.start.Add(time.Second))
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(3))})
		require.NoError(b, err)
		require.Equal(b, [][2]time.Duration{{3, 2000}}, b.stopsOf("unseen"))
	})
}

// Runtimes of processes reuse their IDs.
func TestReusedID(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{})
		b.kill()
		<-time.After(time.Minute)
		b.rt.Start("app", lifecycletest.Script{})
		require.Len(b, b.kill().Containers, 1)
		require.Equal(b, [][2]time.Duration{{30, 0}, {30, 60000}}, b.stopsOf("app"), "the status lags, and the watcher says that it runs")
		require.Len(b, b.rt.Execs(), 1, "the status does not say that it was started again")
		<-time.After(time.Minute)
		b.rt.Start("app", lifecycletest.Script{})
		b.setRestarted("app", b.start.Add(90*time.Second))
		b.kill()
		require.Equal(b, [2]time.Duration{30, 120000}, b.stopsOf("app")[2])
		require.Len(b, b.rt.Execs(), 2)
	})
}

func TestTerminationIncludesContainersOfALaterRequest(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(10 * time.Second)
		b.addMain("web", sleep(1), lifecycletest.Script{IgnoreTerm: true})
		require.Same(b, termination, b.Terminate(b.Context(), b.pod, lifecycle.Request{}))
		<-time.After(5 * time.Second)
		b.rt.Start("x", lifecycletest.Script{IgnoreTerm: true})
		result, err := b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "x", ID: "x"}, lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Equal(b, lifecycle.GraceExceeded, result.Outcome)
		<-termination.Done()
		require.Equal(b, 30*time.Second, b.at())
		require.Equal(b, [][2]time.Duration{{19, 11000}}, b.stopsOf("web"))
		require.Equal(b, [][2]time.Duration{{15, 15000}}, b.stopsOf("x"))
		require.Len(b, termination.Result().Containers, 3)
	})
}

// No hook runs twice, whichever method is called, and even if the status is old.
func TestAKilledContainerIsNotKilledAgain(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{})
		for range 2 {
			_, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{})
			require.NoError(b, err)
		}
		require.Equal(b, lifecycle.Graceful, b.kill().Outcome())
		_, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{})
		require.NoError(b, err)
		require.Len(b, b.rt.Execs(), 1)
		require.Len(b, b.rt.Stops(), 1)
		b.requireEvents("Killing")
	})
}

func TestARequestForAContainer(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		result, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{
			GracePeriodSeconds: ptr.To(int64(4)), Message: "Container app definition changed, will be restarted",
		})
		require.NoError(b, err)
		require.EqualValues(b, 4, result.GrantedSeconds)
		require.Equal(b, "Container app definition changed, will be restarted", b.events.All()[0].Message)
		require.Equal(b, 4*time.Second, b.at())
	})
	inBubble(t, 30, func(b *bed) { // a second one shortens the first
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{})
			require.NoError(b, err)
		})
		<-time.After(time.Second)
		_, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{GracePeriodSeconds: ptr.To(int64(5))})
		require.NoError(b, err)
		wg.Wait()
		require.Equal(b, [][2]time.Duration{{30, 0}, {5, 1000}}, b.stopsOf("app"))
	})
}

func TestContainerIDIsReplacedInEvents(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.rt.Start("3f9a", lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "app", ID: "3f9a"}, lifecycle.ContainerRequest{Message: "Container 3f9a is to go"})
		require.NoError(b, err)
		require.Equal(b, "Container app is to go", b.events.All()[0].Message)
	})
}

func TestForgetDuringAStart(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addWaitingContainer("app")
		started := b.startAfter("app", 5*time.Second, lifecycletest.Script{ExitAfterTerm: time.Second})
		b.Forget(b.pod.UID)
		result := b.kill()
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
		require.Equal(b, lifecycle.Graceful, result.Outcome())
		b.requireStop("app", 25, 5*time.Second)
	})
}

func TestForgetDuringAStop(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", exec(), lifecycletest.Script{Exec: commandTaking(5 * time.Second), ExitAfterTerm: 5 * time.Second})
		first := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(2 * time.Second)
		b.Forget(b.pod.UID)
		second := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		require.NotSame(b, first, second)
		<-second.Done()
		<-first.Done()
		require.Equal(b, 10*time.Second, b.at())
		require.Equal(b, first.Result().Containers, second.Result().Containers)
		require.Len(b, b.rt.Execs(), 1)
		require.Len(b, b.rt.Stops(), 1)
	})
}

func TestTerminationByUID(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		_, found := b.Termination(b.pod.UID)
		require.False(b, found)
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		for range 2 {
			same, found := b.Termination(b.pod.UID)
			require.True(b, found)
			require.Same(b, termination, same)
			<-termination.Done()
		}
		b.Forget(b.pod.UID)
		_, found = b.Termination(b.pod.UID)
		require.False(b, found)
	})
}

// If the termination and the context end at the same time, Wait returns the result.
func TestWaitPrefersTheEnd(t *testing.T) {
	inBubble(t, 30, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{})
		b.kill()
		ended, cancel := context.WithCancel(b.Context())
		cancel()
		for range 1000 {
			_, err := b.KillPod(ended, b.pod, lifecycle.Request{})
			require.NoError(b, err)
			_, err = b.KillContainer(ended, b.pod, named("app"), lifecycle.ContainerRequest{})
			require.NoError(b, err)
		}
	})
}

// A container whose runtime hangs in a KillContainer is given up when the termination of the
// pod gives up.
func TestTerminationLimitsAKillWhoseRuntimeHangs(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addMain("app", nil, lifecycletest.Script{HangStops: -1})
		var wg sync.WaitGroup
		wg.Go(func() {
			_, err := b.KillContainer(b.Context(), b.pod, named("app"), lifecycle.ContainerRequest{})
			require.ErrorContains(b, err, "silent")
		})
		<-time.After(2 * time.Second)
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(5))})
		require.ErrorContains(b, err, "silent")
		require.Equal(b, 8*time.Second, b.at(), "5 s from 2 s on, and GiveUp")
		wg.Wait()
	}, withShortGiveUp)
}

// A container that is started after all others have ended is in the next result.
func TestAStartThatReturnsTooLateIsInTheResultOfTheNextKillPod(t *testing.T) {
	inBubble(t, 3, func(b *bed) {
		b.addWaitingContainer("late")
		started := b.startAfter("late", 10*time.Second, lifecycletest.Script{})
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "its start had not returned")
		_, err = b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "its start had not returned", "it still may come up")
		require.ErrorIs(b, started(), lifecycle.ErrTerminating)
		result := b.kill()
		require.Equal(b, lifecycle.Graceful, result.Outcome())
		require.Equal(b, "late", result.Containers[0].ID)
		require.Len(b, b.rt.Stops(), 1)
	})
}

// Two concurrent restarts of a sidecar that waits for its turn.
func TestOneOfTwoRestartsIsRefused(t *testing.T) {
	inBubble(t, 60, func(b *bed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfter: time.Second})
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 20 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-b.rt.Exited("proxy")
		var wg sync.WaitGroup
		errs := make([]error, 2)
		for i, id := range []string{"proxy-2", "proxy-3"} {
			wg.Go(func() {
				errs[i] = b.Start(b.Context(), b.pod, "proxy", func(ctx context.Context) (string, error) {
					return b.rt.StartContainer(ctx, id, lifecycletest.Script{StartTakes: 2 * time.Second})
				})
			})
		}
		wg.Wait()
		require.ErrorIs(b, errors.Join(errs...), lifecycle.ErrTerminating)
		require.True(b, errs[0] == nil || errs[1] == nil)
		<-termination.Done()
		require.Len(b, b.rt.Exits(), 3, "proxy, app and the one that was let in")
		require.Equal(b, lifecycle.Graceful, termination.Result().Outcome())
	})
}

// A termination that has ended leaves neither timers nor contexts.
func TestEndedTerminationLeavesNoTimerOrContext(t *testing.T) {
	inBubble(t, 3600, func(b *bed) {
		var hook context.Context
		b.addMain("app", exec(), lifecycletest.Script{Exec: func(ctx context.Context, _ []string) ([]byte, error) {
			hook = ctx
			return nil, nil
		}})
		b.kill()
		require.Error(b, hook.Err())
		events := len(b.events.All())
		<-time.After(2 * time.Hour) // the deadline does not come
		synctest.Wait()
		require.Len(b, b.events.All(), events)
	})
}
