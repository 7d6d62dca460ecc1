//go:build go1.25

package lifecycle_test

import (
	"context"
	"runtime"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// BenchmarkEndedPodMemory is the memory that a pod that has ended takes until it is forgotten,
// without its strings, which belong to the caller's pod.
func BenchmarkEndedPodMemory(b *testing.B) {
	const pods = 20_000
	for _, containers := range []int{1, 2, 8} {
		name := "containers=" + strconv.Itoa(containers)
		b.Run(name+"/way=plain", func(b *testing.B) { reportKept(b, runningCrowd(pods, containers), endPlainly) })
		b.Run(name+"/way=kubegrace", func(b *testing.B) { reportKept(b, runningCrowd(pods, containers), endWithTerminator) })
	}
}

func reportKept(b *testing.B, all []*v1.Pod, end func(testing.TB, []*v1.Pod) any) {
	b.Helper()
	for b.Loop() {
		b.ReportMetric(keptBytes(b, all, end), "B/pod")
	}
	b.ReportMetric(0, "ns/op") // it would say nothing
}

// runningCrowd returns running pods with so many containers each.
func runningCrowd(pods, containers int) []*v1.Pod {
	all := runningPods(pods)
	for _, pod := range all {
		for i := 1; i < containers; i++ {
			status := pod.Status.ContainerStatuses[0]
			status.Name, status.ContainerID = "app-"+strconv.Itoa(i), pod.Name+strconv.Itoa(i)
			pod.Spec.Containers = append(pod.Spec.Containers, v1.Container{Name: status.Name})
			pod.Status.ContainerStatuses = append(pod.Status.ContainerStatuses, status)
		}
	}
	return all
}

// keptBytes returns the bytes that are kept for each pod after end has ended all of them.
func keptBytes(tb testing.TB, all []*v1.Pod, end func(testing.TB, []*v1.Pod) any) float64 {
	tb.Helper()
	before := heapInUse()
	keeper := end(tb, all)
	kept := heapInUse() - before
	runtime.KeepAlive(all)
	runtime.KeepAlive(keeper)
	return float64(kept) / float64(len(all))
}

func endWithTerminator(tb testing.TB, all []*v1.Pod) any {
	tb.Helper()
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: obedientRuntime{}})
	require.NoError(tb, err)
	ctx := klog.NewContext(tb.Context(), klog.Logger{})
	for _, pod := range all {
		<-terminator.Pod(pod).Terminate(ctx, lifecycle.Request{}).Done()
	}
	require.NoError(tb, terminator.Close(ctx))
	return terminator
}

// endTwice kills each container again when its pod has ended, as the ExitWatcher says too.
func endTwice(tb testing.TB, all []*v1.Pod) any {
	tb.Helper()
	exited := make(chan struct{})
	close(exited)
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{
		Runtime: obedientRuntime{}, Exits: exitFunc(func(string) <-chan struct{} { return exited }),
	})
	require.NoError(tb, err)
	ctx := klog.NewContext(tb.Context(), klog.Logger{})
	for _, pod := range all {
		<-terminator.Pod(pod).Terminate(ctx, lifecycle.Request{}).Done()
		_, err = terminator.KillContainer(ctx, pod, lifecycle.ContainersOf(pod)[0], lifecycle.ContainerRequest{})
		require.NoError(tb, err)
	}
	require.NoError(tb, terminator.Close(ctx))
	return terminator
}

// plainWorker is what a pod worker of the kubelet keeps: its context, the times of its pod, the
// channels of those who wait for the end, and the last state of each container.
type plainWorker struct {
	ctx                         context.Context
	cancel                      context.CancelFunc
	fullName                    string
	started, terminating, ended time.Time
	grace                       int64
	finished                    bool
	done                        chan struct{}
	containers                  []plainEnd
}

type plainEnd struct {
	name, id        string
	started, exited time.Time
	exitCode        int
}

func endPlainly(tb testing.TB, all []*v1.Pod) any {
	tb.Helper()
	workers := map[types.UID]*plainWorker{}
	for _, pod := range all {
		ctx, cancel := context.WithCancel(tb.Context())
		w := &plainWorker{ctx: ctx, cancel: cancel, fullName: pod.Name, started: time.Now(), done: make(chan struct{})}
		workers[pod.UID] = w
		w.terminating, w.grace = time.Now(), *pod.Spec.TerminationGracePeriodSeconds
		plainStop(ctx, pod)
		for _, status := range pod.Status.ContainerStatuses {
			w.containers = append(w.containers, plainEnd{name: status.Name, id: status.ContainerID, started: w.started, exited: time.Now(), exitCode: 0})
		}
		w.ended, w.finished = time.Now(), true
		close(w.done)
		cancel()
	}
	return workers
}

// heapInUse returns the bytes of live objects on the heap.
func heapInUse() int64 {
	runtime.GC()
	runtime.GC()
	var stats runtime.MemStats
	runtime.ReadMemStats(&stats)
	return int64(stats.HeapAlloc)
}

func TestAnEndedPodIsKeptSmall(t *testing.T) {
	one, nine := keptBytes(t, runningCrowd(5000, 1), endWithTerminator), keptBytes(t, runningCrowd(5000, 9), endWithTerminator)
	require.LessOrEqual(t, one, 300.0)
	require.LessOrEqual(t, keptBytes(t, runningCrowd(5000, 1), endTwice), 300.0)
	require.LessOrEqual(t, (nine-one)/8, 100.0)
}
