package lifecycle_test

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// never is a runtime without containers that have ended.
type never struct{ exited chan struct{} }

func (never) StopContainer(context.Context, string, int64) error { return nil }

func (n never) Exited(string) <-chan struct{} { return n.exited }

// sleepingPods are pods of one container with a sleep hook that outlasts a benchmark.
func sleepingPods(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: fmt.Sprint("pod-", i), UID: types.UID(fmt.Sprint(i))},
			Spec: v1.PodSpec{
				TerminationGracePeriodSeconds: new(int64(7200)),
				Containers:                    []v1.Container{container("app", sleep(3600))},
			},
		}
	}
	return pods
}

// memory is what goroutines and what they hold take.
func memory() uint64 {
	runtime.GC()
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// BenchmarkPodInSleepHook measures the memory of a pod while its hook sleeps, and
// the end of 10,000 of them.
func BenchmarkPodInSleepHook(b *testing.B) {
	const pods = 10_000
	b.Run("Terminator", func(b *testing.B) {
		for b.Loop() {
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: never{}, Exits: never{}})
			require.NoError(b, err)
			all := sleepingPods(pods)
			before := memory()
			for _, pod := range all {
				terminator.Terminate(b.Context(), pod, lifecycle.Request{Containers: []lifecycle.Container{{Name: "app", ID: "app"}}})
			}
			<-time.After(100 * time.Millisecond)
			b.ReportMetric(float64(memory()-before)/pods, "B/pod")
			began := time.Now()
			require.NoError(b, terminator.Close(b.Context()))
			b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/close")
		}
	})
	b.Run("plain", func(b *testing.B) {
		for b.Loop() {
			all := sleepingPods(pods)
			before := memory()
			ctx, cancel := context.WithCancel(b.Context())
			var wg sync.WaitGroup
			for _, pod := range all {
				wg.Go(func() { plainKill(ctx, pod) })
			}
			<-time.After(100 * time.Millisecond)
			b.ReportMetric(float64(memory()-before)/pods, "B/pod")
			began := time.Now()
			cancel()
			wg.Wait()
			b.ReportMetric(float64(time.Since(began).Milliseconds()), "ms/close")
		}
	})
}

// plainKill is what the kubelet does for one pod: its worker, a goroutine that
// kills, one per container, and one per hook, each with a timer of its own.
func plainKill(ctx context.Context, pod *v1.Pod) {
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		var containers sync.WaitGroup
		for i := range pod.Spec.Containers {
			containers.Go(func() {
				done := make(chan struct{})
				go func() {
					defer close(done)
					select {
					case <-time.After(time.Duration(pod.Spec.Containers[i].Lifecycle.PreStop.Sleep.Seconds) * time.Second):
					case <-ctx.Done():
					}
				}()
				select {
				case <-done:
				case <-time.After(time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second):
				}
			})
		}
		containers.Wait()
	}()
	select {
	case <-killed:
	case <-time.After(time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second * 3 / 2):
	}
}
