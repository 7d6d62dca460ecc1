package lifecycle_test

import (
	"context"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// calm is a runtime whose containers have not exited, and end when they are told.
type calm struct{ exited chan struct{} }

func (calm) StopContainer(context.Context, string, int64) error { return nil }

func (c calm) Exited(string) <-chan struct{} { return c.exited }

// sleepingPods are pods of one container with a sleep hook that outlasts a benchmark.
func sleepingPods(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pod-" + strconv.Itoa(i), UID: types.UID(strconv.Itoa(i))},
			Spec: v1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To(int64(7200)),
				Containers:                    []v1.Container{container("app", sleep(3600))},
			},
		}
	}
	return pods
}

// way terminates pods, returns when all of their hooks sleep, and gives what cancels
// them and waits until nothing is left of them.
type way func(b *testing.B, pods []*v1.Pod) (cancel func())

// ways are ours, without and with an eye on the exits of containers, and the plain one.
func ways() map[string]way {
	calm := calm{make(chan struct{})}
	return map[string]way{
		"Terminator":           func(b *testing.B, pods []*v1.Pod) func() { return ours(b, pods, calm, nil) },
		"Terminator and exits": func(b *testing.B, pods []*v1.Pod) func() { return ours(b, pods, calm, calm) },
		"plain":                plain,
	}
}

func ours(b *testing.B, pods []*v1.Pod, rt lifecycle.Runtime, exits lifecycle.ExitWatcher) func() {
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, Exits: exits})
	require.NoError(b, err)
	ctx := klog.NewContext(b.Context(), klog.Logger{})
	for _, pod := range pods {
		terminator.Terminate(ctx, pod, lifecycle.Request{Containers: []lifecycle.Container{{Name: "app", ID: "app"}}})
	}
	awaitGoroutines(len(pods))
	return func() { require.NoError(b, terminator.Close(ctx)) }
}

// plain is what the kubelet does for a pod: its worker, a goroutine that kills, one
// per container, and one per hook, with timers of their own.
func plain(b *testing.B, pods []*v1.Pod) func() {
	ctx, cancel := context.WithCancel(b.Context())
	var workers sync.WaitGroup
	for _, pod := range pods {
		workers.Go(func() { plainKill(ctx, pod) })
	}
	awaitGoroutines(4 * len(pods))
	return func() {
		cancel()
		workers.Wait()
	}
}

func plainKill(ctx context.Context, pod *v1.Pod) {
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		var containers sync.WaitGroup
		for i := range pod.Spec.Containers {
			containers.Go(func() { plainPreStop(ctx, pod, &pod.Spec.Containers[i], grace) })
		}
		containers.Wait()
	}()
	select {
	case <-killed:
	case <-time.After(grace * 3 / 2):
	}
}

func plainPreStop(ctx context.Context, pod *v1.Pod, container *v1.Container, grace time.Duration) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := plainRun(ctx, pod, container, container.Lifecycle.PreStop); err == nil {
			panic("an hour went by")
		}
	}()
	select {
	case <-done:
	case <-time.After(grace):
	}
}

// awaitGoroutines waits until there are that many, and a moment more for the last of
// them to fall asleep.
func awaitGoroutines(n int) {
	for runtime.NumGoroutine() < n {
		<-time.After(time.Millisecond)
	}
	<-time.After(100 * time.Millisecond)
}

// BenchmarkSleepingPodMemory reports what one pod takes while its hook sleeps. The
// descriptors of goroutines are measured as for single hooks.
func BenchmarkSleepingPodMemory(b *testing.B) {
	const pods = 10_000
	before := inUse()
	park(b.Context(), 4*pods, sleepers()["floor"])()
	descriptor := float64(inUse()-before) / (4 * pods)
	for _, name := range []string{"plain", "Terminator", "Terminator and exits"} {
		goroutines := map[string]float64{"plain": 4, "Terminator": 1, "Terminator and exits": 1}[name]
		b.Run(name, func(b *testing.B) {
			var took int64
			rounds := 0
			for b.Loop() {
				all := sleepingPods(pods)
				before := inUse()
				cancel := ways()[name](b, all)
				took += inUse() - before
				rounds++
				cancel()
			}
			b.ReportMetric(float64(took)/float64(rounds*pods)+descriptor*goroutines, "B/pod")
		})
	}
}

// BenchmarkCancelSleepingPods is the time from the cancellation of 100,000 pods whose
// hooks sleep until nothing is left of them.
func BenchmarkCancelSleepingPods(b *testing.B) {
	const pods = 100_000
	all := sleepingPods(pods)
	for _, name := range []string{"plain", "Terminator", "Terminator and exits"} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				cancel := ways()[name](b, all)
				b.StartTimer()
				cancel()
			}
			b.ReportMetric(float64(b.Elapsed().Milliseconds())/float64(b.N), "ms/cancel")
		})
	}
}
