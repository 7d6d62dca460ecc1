//go:build go1.25

package lifecycle_test

import (
	"context"
	"sync/atomic"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
)

// OnHook gets the own error of a hook that has failed, and the container with PreStopDone, with which the next agent does
// not run the hook again.
func TestOnHookGetsTheHooksErrorAndPreStopDone(t *testing.T) {
	var results []lifecycle.HookResult
	inBubble(t, graceSeconds(30), func(b *testBed) {
		b.addMain("app", scriptedExec(), lifecycletest.Script{})
		b.killPod()
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
