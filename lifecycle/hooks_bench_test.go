//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// sleepFunc sleeps until ctx ends.
type sleepFunc func(ctx context.Context) error

// sleeperNames has the keys of sleepers in the order of the report.
var sleeperNames = []string{"floor", "plain", "kubegrace"}

// sleepers returns the ways to sleep that are compared: "floor", a goroutine that only waits; "plain",
// a simple hook runner; and this package's runner.
func sleepers() map[string]sleepFunc {
	const hour = 3600
	pod, container := hookPod()
	handler := sleepHandler(hour)
	runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{})
	return map[string]sleepFunc{
		"floor": func(ctx context.Context) error {
			<-ctx.Done()
			return ctx.Err()
		},
		"plain": func(ctx context.Context) error {
			_, err := plainRun(ctx, pod, container, handler)
			return err
		},
		"kubegrace": func(ctx context.Context) error {
			_, err := runner.Run(ctx, containerID, pod, container, handler)
			return err
		},
	}
}

// plainRun is a simple hook runner, with time.After and fmt.
func plainRun(ctx context.Context, pod *v1.Pod, container *v1.Container, handler *v1.LifecycleHandler) (string, error) {
	switch {
	case handler.Exec != nil, handler.HTTPGet != nil:
		return "", errors.ErrUnsupported
	default:
		err := plainSleep(ctx, handler.Sleep.Seconds)
		var msg string
		if err != nil {
			msg = fmt.Sprintf("Sleep lifecycle hook (%d) for Container %q in Pod %q failed - error: %v",
				handler.Sleep.Seconds, container.Name, fmt.Sprintf("%s_%s(%s)", pod.Name, pod.Namespace, pod.UID), err)
		}
		return msg, err
	}
}

// plainSleep is the simplest sleep hook, for comparison.
func plainSleep(ctx context.Context, seconds int64) error {
	select {
	case <-ctx.Done():
		return errors.New(sleepCutText)
	case <-time.After(time.Duration(seconds) * time.Second):
		return nil
	}
}

// countingContext calls Done of a wait group when a goroutine waits for the context.
type countingContext struct {
	context.Context

	waitedFor *sync.WaitGroup
}

func (a countingContext) Done() <-chan struct{} {
	a.waitedFor.Done()
	return a.Context.Done()
}

// startSleepers starts n goroutines that sleep under one context, and returns when all of them wait.
// end cancels the context and waits for them.
func startSleepers(parent context.Context, n int, sleep sleepFunc) (end func()) {
	ctx, cancel := context.WithCancel(parent)
	var ended, waiting sync.WaitGroup
	waiting.Add(n)
	var shared context.Context = countingContext{ctx, &waiting}
	for range n {
		ended.Go(func() {
			if sleep(shared) == nil {
				panic("the sleep was not cancelled")
			}
		})
	}
	waiting.Wait()
	return func() {
		cancel()
		ended.Wait()
	}
}

// withOwnContext returns a sleepFunc that sleeps under a child of its context.
func withOwnContext(sleep sleepFunc) sleepFunc {
	return func(ctx context.Context) error {
		shared := ctx.(countingContext)
		own, cancel := context.WithCancelCause(shared.Context)
		defer cancel(nil)
		return sleep(countingContext{own, shared.waitedFor})
	}
}

// heapAndStacks returns the bytes of live objects and of stacks.
func heapAndStacks() int64 {
	runtime.GC()
	runtime.GC() // the second collection finishes the sweep of the first
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// BenchmarkSleepingHookMemory measures the memory of one sleeping hook. The Go runtime reuses the
// descriptors of ended goroutines, so only the first measurement would include them; they are measured
// first and added to each figure. Run this benchmark alone, because others leave descriptors too.
func BenchmarkSleepingHookMemory(b *testing.B) {
	const hooks = 20_000
	before := heapAndStacks()
	startSleepers(b.Context(), hooks, sleepers()["floor"])()
	descriptors := heapAndStacks() - before
	for _, name := range sleeperNames {
		b.Run("way="+name, func(b *testing.B) {
			sleep := sleepers()[name]
			var took int64
			rounds := 0
			for b.Loop() {
				before := heapAndStacks()
				end := startSleepers(b.Context(), hooks, sleep)
				took += heapAndStacks() - before
				rounds++
				end()
			}
			b.ReportMetric(float64(took)/float64(rounds*hooks)+float64(descriptors)/hooks, "B/hook")
			b.ReportMetric(0, "ns/op") // meaningless here
		})
	}
}

// BenchmarkCancelSleepingHooks measures the time from the cancellation of a context until all hooks
// that sleep under it have returned. A shared context is the harder case, because each hook locks it to
// read its cause.
func BenchmarkCancelSleepingHooks(b *testing.B) {
	const hooks = 100_000
	for _, name := range sleeperNames {
		b.Run("hooks=100000/context=shared/way="+name, func(b *testing.B) { benchmarkCancel(b, hooks, sleepers()[name]) })
	}
	for _, name := range sleeperNames {
		b.Run("hooks=100000/context=own/way="+name, func(b *testing.B) { benchmarkCancel(b, hooks, withOwnContext(sleepers()[name])) })
	}
}

// benchmarkCancel measures how long hooks that sleep take to return after their cancellation.
func benchmarkCancel(b *testing.B, hooks int, sleep sleepFunc) {
	b.Helper()
	for b.Loop() {
		b.StopTimer()
		end := startSleepers(b.Context(), hooks, sleep)
		b.StartTimer()
		end()
	}
}
