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
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The simplest termination: one container that ends 3 s after its stop signal.
func TestContainerStopsWithinItsGrace(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{ExitAfterTerm: 3 * time.Second})
		require.Equal(b, lifecycle.Result{
			GracePeriodSeconds: 30,
			Containers: []lifecycle.ContainerResult{{
				Name: "app", ID: "app", Began: b.start, Phase: lifecycle.PhaseEnded, Outcome: lifecycle.OutcomeGraceful,
				GrantedSeconds: 30, Stopping: 3 * time.Second,
			}},
		}, b.killPod())
		b.requireStop("app", 30, 0)
		require.Equal(b, 3*time.Second, b.elapsed())
	})
}

// A millisecond after the beginning, the Killing event is recorded and the hook runs, but StopContainer has
// not been called.
func TestEventComesBeforeHookAndStop(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{Exec: commandTaking(time.Second)})
		b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		<-time.After(time.Millisecond)
		require.Len(b, b.rt.Execs(), 1)
		require.Empty(b, b.rt.Stops())
		event := b.events.All()[0]
		require.Equal(b, []string{"Normal", "Killing", "Stopping container app"}, []string{event.Type, event.Reason, event.Message})
		require.Equal(b, "spec.containers{app}", event.Object.(*v1.ObjectReference).FieldPath)
		<-b.Terminate(b.Context(), b.pod, lifecycle.Request{}).Done()
	})
}

// The recorder takes 1 s for the Killing event. The hook begins at 0 s all the same: it ends at 2 s and the
// stop at 3 s. In order, the event precedes both.
func TestSlowRecorderDelaysNeitherHookNorStop(t *testing.T) {
	var order callSequence
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}})
		require.NoError(b, err)
		require.Equal(b, []string{"event", "hook", "stop"}, order.ended)
		require.Equal(b, 3*time.Second, b.elapsed())
	}, func(o *lifecycle.TerminatorOptions) {
		o.Events, o.Hooks, o.Runtime, o.Exits = &order, &order, lifecycle.RuntimeFunc(order.StopContainer), nil
	})
}

// callSequence is a recorder, a runner and a runtime that record their calls in order.
type callSequence struct {
	mu    sync.Mutex
	ended []string
}

// record notes that a call has ended, which takes a while.
func (s *callSequence) record(what string, takes time.Duration) {
	<-time.After(takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, what)
}

func (s *callSequence) Event(apiruntime.Object, string, string, string) {
	s.record("event", time.Second)
}

func (s *callSequence) Run(context.Context, string, *v1.Pod, *v1.Container, *v1.LifecycleHandler) (string, error) {
	s.record("hook", 2*time.Second)
	return "", nil
}

func (s *callSequence) StopContainer(context.Context, string, int64) error {
	s.record("stop", time.Second)
	return nil
}

// want is the grace period that results from the pod's spec, its deletion and the request; stop is the
// timeout of StopContainer, at least 2 s.
func TestGracePeriodOfAPod(t *testing.T) {
	for name, test := range map[string]struct {
		spec, deletion, override *int64
		want, stop               int64
	}{
		"spec":                       {spec: ptr.To(int64(30)), want: 30, stop: 30},
		"deletion":                   {spec: ptr.To(int64(30)), deletion: ptr.To(int64(5)), want: 5, stop: 5},
		"override":                   {spec: ptr.To(int64(30)), override: ptr.To(int64(7)), want: 7, stop: 7},
		"override of 0 is 1":         {spec: ptr.To(int64(30)), override: ptr.To(int64(0)), want: 1, stop: 2},
		"negative override is 1":     {spec: ptr.To(int64(30)), override: ptr.To(int64(-9)), want: 1, stop: 2},
		"none is 1":                  {want: 1, stop: 2},
		"override does not lengthen": {spec: ptr.To(int64(30)), deletion: ptr.To(int64(5)), override: ptr.To(int64(60)), want: 5, stop: 5},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, graceSeconds(0), func(b *testBed) {
				b.pod.Spec.TerminationGracePeriodSeconds = test.spec
				b.pod.DeletionGracePeriodSeconds = test.deletion
				b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
				result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: test.override})
				require.NoError(b, err)
				require.Equal(b, test.want, result.GracePeriodSeconds)
				require.Equal(b, lifecycle.OutcomeGraceExceeded, result.Outcome())
				b.requireStop("app", test.stop, 0)
			})
		})
	}
}

// Two callers terminate one pod, 30 and 4 s. They share a termination, to which the shorter grace period
// applies.
func TestTwoCallersShareOneTermination(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{IgnoreTerm: true})
		first := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		second := b.Terminate(b.Context(), b.pod, lifecycle.Request{GracePeriodSeconds: ptr.To(int64(4))})
		require.Same(b, first, second)
		<-first.Done()
		require.Equal(b, 4*time.Second, b.elapsed())
		b.requireEvents("Killing")
	})
}

// The error of NewTerminator names each invalid option, not only the first.
func TestInvalidOptions(t *testing.T) {
	_, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: lifecycle.RuntimeFunc(nil)})
	require.ErrorContains(t, err, "Runtime: must be set")
	_, err = lifecycle.NewTerminator(lifecycle.TerminatorOptions{StopTimeoutSlack: -time.Second, GiveUpAfter: -time.Second})
	require.ErrorContains(t, err, "Runtime: must be set")
	require.ErrorContains(t, err, "StopTimeoutSlack: must not be negative, is -1s")
	require.ErrorContains(t, err, "GiveUpAfter: must not be negative, is -1s")
}

// A pod of which nothing runs has ended at once, without waiting for any grace period.
func TestPodWithoutContainersEndsAtOnce(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		require.Equal(b, lifecycle.OutcomeNotFound, b.killPod().Outcome())
		require.Zero(b, b.elapsed())
	})
}

// A request's message replaces the default message of the Killing event.
func TestMessageOfTheKillingEvent(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{})
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Message: "Preempted by a better pod"})
		require.NoError(b, err)
		require.Equal(b, "Preempted by a better pod", b.events.All()[0].Message)
	})
}

// A termination writes neither to the caller's pod nor to the containers of the request.
func TestArgumentsAreNotChanged(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addSidecar("proxy", sleepHandler(1), lifecycletest.Script{})
		b.addMain("app", sleepHandler(60), lifecycletest.Script{})
		pod := b.pod.DeepCopy()
		containers := []lifecycle.Container{containerNamed("app"), containerNamed("proxy")}
		_, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{Containers: containers, GracePeriodSeconds: ptr.To(int64(5))})
		require.NoError(b, err)
		require.Equal(b, pod, b.pod)
		require.Equal(b, []lifecycle.Container{containerNamed("app"), containerNamed("proxy")}, containers)
	})
}

// The phases of app and proxy at 3, 6 and 9 s: the hook, which ends at 5 s; the stop, which ends at 7 s;
// and then the proxy's stop.
func TestPhases(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addSidecar("proxy", nil, lifecycletest.Script{ExitAfterTerm: 5 * time.Second})
		b.addMain("app", sleepHandler(5), lifecycletest.Script{ExitAfterTerm: 2 * time.Second})
		termination := b.Terminate(b.Context(), b.pod, lifecycle.Request{})
		synctest.Wait()
		require.Equal(b, lifecycle.Outcome(""), termination.Result().Outcome())
		for _, want := range [][2]lifecycle.Phase{
			{lifecycle.PhaseHook, lifecycle.PhaseWaiting}, {lifecycle.PhaseStopping, lifecycle.PhaseWaiting}, {lifecycle.PhaseEnded, lifecycle.PhaseStopping},
		} {
			<-time.After(3 * time.Second)
			containers := termination.Result().Containers
			require.Equal(b, want, [2]lifecycle.Phase{containers[0].Phase, containers[1].Phase}, "after %v", b.elapsed())
		}
	})
}

// The container's ID in the message is replaced by the name, unless the name contains it.
func TestIDInTheMessageOfTheKillingEvent(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.addStopped("web")
		b.rt.Start(b.pod, "web", "eb", lifecycletest.Script{})
		_, err := b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "web", ID: "eb"}, lifecycle.ContainerRequest{Message: "web is to go"})
		require.NoError(b, err)
		require.Equal(b, "web is to go", b.events.All()[0].Message)
		b.rt.Start(b.pod, "web", "3f4e", lifecycletest.Script{})
		_, err = b.KillContainer(b.Context(), b.pod, lifecycle.Container{Name: "web", ID: "3f4e"}, lifecycle.ContainerRequest{Message: "3f4e is to go"})
		require.NoError(b, err)
		require.Equal(b, "web is to go", b.events.All()[1].Message)
	})
}
