//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// The simplest termination: one container that ends 3 s after its stop signal. StopContainer gets the whole
// grace period, at once, and the result has the container's name, times and outcome.
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
		b.requireFirstStop("app", 30, 0)
		require.Equal(b, 3*time.Second, b.elapsed())
	})
}

// The recorder takes 1 s for the Killing event. The hook of 2 s begins at 0 s all the same, and StopContainer,
// which takes 1 s, at 2 s. So the event ends at 1 s, the hook at 2 s, and the stop and the termination at 3 s.
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

// sleepAndRecord sleeps, and then notes that a call has ended.
func (s *callSequence) sleepAndRecord(what string, takes time.Duration) {
	<-time.After(takes)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.ended = append(s.ended, what)
}

func (s *callSequence) Event(apiruntime.Object, string, string, string) {
	s.sleepAndRecord("event", time.Second)
}

func (s *callSequence) Run(context.Context, string, *v1.Pod, *v1.Container, *v1.LifecycleHandler) (string, error) {
	s.sleepAndRecord("hook", 2*time.Second)
	return "", nil
}

func (s *callSequence) StopContainer(context.Context, string, int64) error {
	s.sleepAndRecord("stop", time.Second)
	return nil
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

// The container's ID in the message is replaced by the name "web": "3f4e is to go" becomes "web is to go". But if
// the ID, here "eb", is a part of the name, the message stays; otherwise it would become "wweb is to go".
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
