//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apiruntime "k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// Close ends the context of a StopContainer call with the cause CauseTerminatorClosed, so that a runtime can distinguish Close
// from a timeout.
func TestCloseCancelsStopContainerWithItsCause(t *testing.T) {
	var cause error
	inBubble(t, graceSeconds(60), func(b *testBed) {
		b.Terminate(b.Context(), b.pod, lifecycle.Request{Containers: []lifecycle.Container{containerNamed("app")}})
		<-time.After(time.Second)
		require.NoError(b, b.Close(b.Context()))
		require.Equal(b, lifecycle.CauseTerminatorClosed, cause)
		require.ErrorIs(b, cause, lifecycle.ErrClosed)
	}, func(o *lifecycle.TerminatorOptions) {
		o.Runtime = lifecycle.RuntimeFunc(func(ctx context.Context, _ string, _ int64) error {
			<-ctx.Done()
			cause = context.Cause(ctx)
			return cause
		})
	})
}

// After Close, Start, KillPod and KillContainer fail with ErrClosed, and the container is LeftRunning. The terminator keeps no
// state of the pod.
func TestMethodsFailAfterClose(t *testing.T) {
	inBubble(t, graceSeconds(30), func(b *testBed) {
		app := b.addMain("app", lifecycletest.Script{})
		require.NoError(b, b.Close(b.Context()))
		require.ErrorIs(b, b.startContainer("app", "2", lifecycletest.Script{}), lifecycle.ErrClosed)
		result, err := b.KillPod(b.Context(), b.pod, lifecycle.Request{})
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.Equal(b, lifecycle.OutcomeLeftRunning, result.Outcome())
		killed, err := b.KillContainer(b.Context(), b.pod, app, lifecycle.ContainerRequest{})
		require.ErrorIs(b, err, lifecycle.ErrClosed)
		require.Equal(b, lifecycle.OutcomeLeftRunning, killed.Outcome)
		require.Zero(b, b.Pods(), "pods that the terminator keeps")
	})
}

// agentCode is an event recorder, a hook runner and a logger that count the calls that begin after Close has returned.
type agentCode struct {
	closeReturned atomic.Bool
	lateCalls     atomic.Int32
}

func (a *agentCode) call() {
	if a.closeReturned.Load() {
		a.lateCalls.Add(1)
	}
}

func (a *agentCode) Event(apiruntime.Object, string, string, string) { a.call() }

// A method is called concurrently with Close. When Close has returned, the method must not call the agent's event recorder, hook
// or logger (agentCode) any more. Each race is run 1,000 times, because its order is random.
func TestNothingBeginsAfterClose(t *testing.T) {
	for name, call := range map[string]func(context.Context, *testBed){
		"Terminate": func(ctx context.Context, b *testBed) { b.Terminate(ctx, b.pod, lifecycle.Request{}) },
		"KillContainer": func(ctx context.Context, b *testBed) {
			_, _ = b.KillContainer(ctx, b.pod, containerNamed("app"), lifecycle.ContainerRequest{})
		},
		"PostStart": func(ctx context.Context, b *testBed) { _ = b.PostStart(ctx, b.pod, containerNamed("app")) },
	} {
		t.Run(name, func(t *testing.T) {
			for range 1000 {
				agent := &agentCode{}
				inBubble(t, graceSeconds(30), func(b *testBed) {
					b.addAppWithPostStart(scriptedExec(), lifecycletest.Script{})
					logger := funcr.New(func(string, string) { agent.call() }, funcr.Options{Verbosity: 1})
					var racing sync.WaitGroup
					racing.Go(func() { call(klog.NewContext(b.Context(), logger), b) })
					racing.Go(func() {
						require.NoError(b, b.Close(b.Context()))
						agent.closeReturned.Store(true)
					})
					racing.Wait()
					synctest.Wait()
					require.Zero(b, agent.lateCalls.Load())
				}, func(o *lifecycle.TerminatorOptions) {
					o.Events = agent
					o.Hooks = hookFunc(func(context.Context) error { agent.call(); return nil })
				})
			}
		})
	}
}

// KillPod gives up while a start function has not returned. Then the terminator is closed, and the function returns. Without Close,
// Start would begin another termination, which stops the container. After Close it begins none, and returns ErrClosed.
func TestAStartThatReturnsAfterCloseBeginsNoTermination(t *testing.T) {
	inBubble(t, graceSeconds(2), func(b *testBed) {
		b.addToSpec("app")
		release := make(chan struct{})
		started := startCall(func() error {
			return b.Start(b.quietContext(), b.pod, "app", func(context.Context) error { <-release; return nil })
		})
		_, err := b.KillPod(b.quietContext(), b.pod, lifecycle.Request{})
		require.ErrorContains(b, err, "its start has not returned")
		ended, _ := b.Termination(b.pod)

		require.NoError(b, b.Close(b.Context()))
		close(release)
		require.ErrorIs(b, started(), lifecycle.ErrClosed)
		newest, _ := b.Termination(b.pod)
		require.Same(b, ended, newest, "no other termination has begun")
	}, giveUpAfterOneSecond)
}

// A list does not return within StopTimeoutSlack, and the agent's logger blocks when it gets that failure. Close waits for the
// logger: when the context of the first Close ends, its error names the list.
func TestCloseWaitsForTheLogLineOfALateList(t *testing.T) {
	inBubble(t, graceSeconds(60), func(b *testBed) {
		release := make(chan struct{})
		blockingLogger := funcr.New(func(string, string) { <-release }, funcr.Options{})
		b.Terminate(klog.NewContext(b.Context(), blockingLogger), b.pod, lifecycle.Request{})
		<-time.After(lifecycle.DefaultStopTimeoutSlack + time.Second)

		ctx, cancel := context.WithTimeout(b.quietContext(), time.Second)
		defer cancel()
		require.ErrorContains(b, b.Close(ctx), "the runtime's list of ns/pod")
		close(release)
		require.NoError(b, b.Close(b.Context()))
	}, func(o *lifecycle.TerminatorOptions) {
		o.Runtime = runtimeFuncs{list: func(ctx context.Context, _ *v1.Pod) ([]lifecycle.Container, error) {
			<-ctx.Done()
			return nil, context.Cause(ctx)
		}}
	})
}
