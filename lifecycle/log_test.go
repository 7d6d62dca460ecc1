//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"

	"github.com/go-logr/logr"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// errorLog is a logger that keeps only errors.
type errorLog struct{ errors chan error }

func (errorLog) Init(logr.RuntimeInfo)                 {}
func (errorLog) Enabled(int) bool                      { return false }
func (errorLog) Info(int, string, ...any)              {}
func (c errorLog) Error(err error, _ string, _ ...any) { c.errors <- err }
func (c errorLog) WithValues(...any) logr.LogSink      { return c }
func (c errorLog) WithName(string) logr.LogSink        { return c }

// A preStop hook fails. The log has one error, without the hook's own text, which may be secret. OnHook gets
// the hook's own error, and the container with PreStopDone, with which the next agent does not run the hook again.
func TestFailedHookIsLoggedAndPassedToOnHook(t *testing.T) {
	log := errorLog{make(chan error, 10)}
	var results []lifecycle.HookResult
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		_, err := b.KillPod(klog.NewContext(b.Context(), logr.New(log)), b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.Len(b, log.errors, 1)
		require.NotErrorIs(b, <-log.errors, lifecycletest.ErrScripted, "it may contain the hook's output")
		require.Len(b, results, 1)
		require.ErrorIs(b, results[0].Err, lifecycletest.ErrScripted)
	}, withHooks(func(context.Context) error { return lifecycletest.ErrScripted }), func(o *lifecycle.TerminatorOptions) {
		o.OnHook = func(pod *v1.Pod, c lifecycle.Container, r lifecycle.HookResult) {
			require.Equal(t, "pod", pod.Name)
			require.Equal(t, "app", c.ID)
			require.True(t, c.PreStopDone, "for the next agent")
			results = append(results, r)
		}
	})
}

// An exec hook fails because the agent has set no Commands. That is logged at any verbosity, because the
// error contains no output of a command.
func TestMissingCommandRunnerIsLogged(t *testing.T) {
	log := errorLog{make(chan error, 10)}
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		result, err := b.KillPod(klog.NewContext(b.Context(), logr.New(log)), b.pod, lifecycle.Request{})
		require.NoError(b, err)
		synctest.Wait()
		require.Equal(b, result.Containers[0].Hook.Err, <-log.errors)
	}, func(o *lifecycle.TerminatorOptions) { o.Hooks = nil })
}

// loggerFunc is a logger that calls a function for each message.
type loggerFunc func()

func (do loggerFunc) Init(klog.RuntimeInfo)          {}
func (do loggerFunc) Enabled(int) bool               { return true }
func (do loggerFunc) Info(int, string, ...any)       { do() }
func (do loggerFunc) Error(error, string, ...any)    { do() }
func (do loggerFunc) WithValues(...any) klog.LogSink { return do }
func (do loggerFunc) WithName(string) klog.LogSink   { return do }

// The agent's logger calls the terminator. That would deadlock if the terminator held a mutex while it
// logs.
func TestLoggerMayCallTheTerminator(t *testing.T) {
	inBubble(t, graceSeconds(10), func(b *testBed) {
		b.addMain("app", nil, lifecycletest.Script{FailStops: 1})
		var messages atomic.Int32
		ctx := klog.NewContext(b.Context(), klog.New(loggerFunc(func() {
			if termination, found := b.Termination(b.pod); found {
				_ = termination.Deadline()
				messages.Add(1)
			}
		})))
		_, err := b.KillPod(ctx, b.pod, lifecycle.Request{})
		require.NoError(b, err)
		require.GreaterOrEqual(b, messages.Load(), int32(2), "the failure and the outcome")
	})
}
