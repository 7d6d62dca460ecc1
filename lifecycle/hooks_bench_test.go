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

// sleeper sleeps in its goroutine until ctx ends.
type sleeper func(ctx context.Context) error

// sleeperNames are the keys of sleepers, in the order of a report.
var sleeperNames = []string{"floor", "plain", "kubegrace"}

// sleepers are what the figures are compared with, and what they are of: a
// goroutine that only waits, which is the floor; a runner written plainly; ours.
func sleepers() map[string]sleeper {
	const hour = 3600
	pod, container := hookPod()
	handler := sleepHandler(hour)
	runner := lifecycle.NewHandlerRunner(lifecycle.HandlerRunnerOptions{})
	return map[string]sleeper{
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

// plainRun is a runner as one writes it first, with time.After and fmt.
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

func plainSleep(ctx context.Context, seconds int64) error {
	select {
	case <-ctx.Done():
		return errors.New(sleepCutText)
	case <-time.After(time.Duration(seconds) * time.Second):
		return nil
	}
}

// announcing is a context that says when it is waited for.
type announcing struct {
	context.Context

	waitedFor *sync.WaitGroup
}

func (a announcing) Done() <-chan struct{} {
	a.waitedFor.Done()
	return a.Context.Done()
}

// park starts n sleepers under one context, and returns when all of them wait,
// with a function that ends them and returns when all have ended.
func park(parent context.Context, n int, sleep sleeper) (end func()) {
	ctx, cancel := context.WithCancel(parent)
	var ended, waiting sync.WaitGroup
	waiting.Add(n)
	var shared context.Context = announcing{ctx, &waiting}
	for range n {
		ended.Go(func() {
			if sleep(shared) == nil {
				panic("an hour went by")
			}
		})
	}
	waiting.Wait()
	return func() {
		cancel()
		ended.Wait()
	}
}

// withOwnContext sleeps under a context of its own below the one that it is given.
func withOwnContext(sleep sleeper) sleeper {
	return func(ctx context.Context) error {
		shared := ctx.(announcing)
		own, cancel := context.WithCancelCause(shared.Context)
		defer cancel(nil)
		return sleep(announcing{own, shared.waitedFor})
	}
}

// inUse is the memory of all that lives: objects and stacks, in bytes.
func inUse() int64 {
	runtime.GC()
	runtime.GC() // the second one frees what the first has swept late
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc + stats.StackInuse)
}

// BenchmarkSleepingHookMemory reports what one sleeping hook takes. The runtime
// keeps the descriptor of an ended goroutine for the next one, so that only the
// first of several measurements would see it: it is measured here beforehand and
// added to each. Run it by itself, as no other benchmark may have left any.
func BenchmarkSleepingHookMemory(b *testing.B) {
	const hooks = 20_000
	before := inUse()
	park(b.Context(), hooks, sleepers()["floor"])()
	descriptors := inUse() - before
	for _, name := range sleeperNames {
		b.Run("way="+name, func(b *testing.B) {
			sleep := sleepers()[name]
			var took int64
			rounds := 0
			for b.Loop() {
				before := inUse()
				end := park(b.Context(), hooks, sleep)
				took += inUse() - before
				rounds++
				end()
			}
			b.ReportMetric(float64(took)/float64(rounds*hooks)+float64(descriptors)/hooks, "B/hook")
			b.ReportMetric(0, "ns/op") // it would say nothing
		})
	}
}

// BenchmarkCancelSleepingHooks is the time from the cancellation of a context to
// the return of the last of the hooks that sleep under it. That they share it is
// the harder case for whoever asks for the cause: all meet at its lock.
func BenchmarkCancelSleepingHooks(b *testing.B) {
	const hooks = 100_000
	for _, name := range sleeperNames {
		b.Run("hooks=100000/context=shared/way="+name, func(b *testing.B) { benchmarkCancel(b, hooks, sleepers()[name]) })
	}
	for _, name := range sleeperNames {
		b.Run("hooks=100000/context=own/way="+name, func(b *testing.B) { benchmarkCancel(b, hooks, withOwnContext(sleepers()[name])) })
	}
}

func benchmarkCancel(b *testing.B, hooks int, sleep sleeper) {
	b.Helper()
	for b.Loop() {
		b.StopTimer()
		end := park(b.Context(), hooks, sleep)
		b.StartTimer()
		end()
	}
}
