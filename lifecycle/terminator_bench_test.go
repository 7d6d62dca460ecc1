//go:build go1.25

package lifecycle_test

import (
	"context"
	"errors"
	"fmt"
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

// workingRuntime is a runtime in which each container of each pod runs until it is stopped, which takes no time. A container
// has the ID POD-UID/NAME.
type workingRuntime struct {
	exited  chan struct{} // what Exited returns for each container; never closed
	stopped *sync.Map     // the IDs of the stopped containers
}

// newWorkingRuntime returns a runtime in which no container has been stopped.
func newWorkingRuntime() workingRuntime {
	return workingRuntime{exited: make(chan struct{}), stopped: &sync.Map{}}
}

func (r workingRuntime) Running(_ context.Context, pod *v1.Pod) (running []lifecycle.Container, _ error) {
	for _, containers := range [][]v1.Container{pod.Spec.Containers, pod.Spec.InitContainers} {
		for i := range containers {
			id := string(pod.UID) + "/" + containers[i].Name
			if _, ended := r.stopped.Load(id); !ended {
				running = append(running, lifecycle.Container{Name: containers[i].Name, ID: id})
			}
		}
	}
	return running, nil
}

func (r workingRuntime) StopContainer(_ context.Context, id string, _ int64) error {
	r.stopped.Store(id, true)
	return nil
}

func (r workingRuntime) Exited(string) <-chan struct{} { return r.exited }

// sleepingPods returns n pods with one container, whose sleep hook outlasts a benchmark.
func sleepingPods(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Name: "pod-" + strconv.Itoa(i), UID: types.UID(strconv.Itoa(i))},
			Spec: v1.PodSpec{
				TerminationGracePeriodSeconds: ptr.To(int64(7200)),
				Containers:                    []v1.Container{containerWithHook("app", sleepHandler(3600))},
			},
		}
	}
	return pods
}

// startFunc terminates pods and returns when all their hooks sleep. cancel cancels the terminations and
// waits until all goroutines have ended.
type startFunc func(b *testing.B, pods []*v1.Pod) (cancel func())

// benchmarkCase is a way to terminate pods: with a Terminator or plainly, and with or without watching for container exits.
type benchmarkCase struct {
	name       string
	goroutines int // how many it has per pod while the hooks sleep
	start      startFunc
}

// benchmarkCases returns the ways to terminate pods that are compared.
func benchmarkCases() []benchmarkCase {
	rt := newWorkingRuntime()
	var (
		unwatched <-chan struct{}       // nil: the plain way does not watch exits
		noWatcher lifecycle.ExitWatcher // nil: the Terminator does not watch exits
	)
	return []benchmarkCase{
		{"exits=ignored/way=plain", 4, func(b *testing.B, pods []*v1.Pod) func() { return terminatePlainly(b, pods, 4, unwatched) }},
		{"exits=ignored/way=kubegrace", 3, func(b *testing.B, pods []*v1.Pod) func() { return terminateAll(b, pods, rt, noWatcher) }},
		{"exits=watched/way=plain", 5, func(b *testing.B, pods []*v1.Pod) func() { return terminatePlainly(b, pods, 5, rt.exited) }},
		{"exits=watched/way=kubegrace", 4, func(b *testing.B, pods []*v1.Pod) func() { return terminateAll(b, pods, rt, rt) }},
	}
}

// terminateAll begins to terminate pods with a Terminator. It returns while the hooks still sleep. The function that it
// returns closes the Terminator.
func terminateAll(b *testing.B, pods []*v1.Pod, rt lifecycle.Runtime, exits lifecycle.ExitWatcher) func() {
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: rt, Exits: exits})
	require.NoError(b, err)
	ctx := klog.NewContext(b.Context(), klog.Logger{})
	for _, pod := range pods {
		terminator.Terminate(ctx, pod, lifecycle.Request{})
	}
	const goroutinesPerPod = 3 // at least: of the termination, of the container's stop, and of its hook
	awaitGoroutines(goroutinesPerPod * len(pods))
	return func() { require.NoError(b, terminator.Close(ctx)) }
}

// terminatePlainly begins to terminate pods as the kubelet does: with goroutines for the pod worker, the kill of the pod,
// each container and each hook, and with timers. If exited is not nil, another goroutine for each container waits for its
// exit; the kubelet does not have this one. It returns when each pod has goroutinesPerPod goroutines, while the hooks still
// sleep. The function that it returns ends them all.
func terminatePlainly(b *testing.B, pods []*v1.Pod, goroutinesPerPod int, exited <-chan struct{}) func() {
	ctx, cancel := context.WithCancel(b.Context())
	var workers sync.WaitGroup
	for _, pod := range pods {
		workers.Go(func() { plainKill(ctx, pod, exited) })
	}
	awaitGoroutines(goroutinesPerPod * len(pods))
	return func() {
		cancel()
		workers.Wait()
	}
}

// plainKill kills a pod as the kubelet's pod worker does, and gives up after one and a half grace periods.
func plainKill(ctx context.Context, pod *v1.Pod, exited <-chan struct{}) {
	grace := time.Duration(*pod.Spec.TerminationGracePeriodSeconds) * time.Second
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		var containers sync.WaitGroup
		for i := range pod.Spec.Containers {
			containers.Go(func() { plainPreStop(ctx, pod, &pod.Spec.Containers[i], grace, exited) })
		}
		containers.Wait()
	}()
	select {
	case <-killed:
	case <-time.After(grace * 3 / 2):
	}
}

// plainPreStop runs the preStop hook of a container until it returns, the container exits, or the grace
// period ends.
func plainPreStop(ctx context.Context, pod *v1.Pod, container *v1.Container, grace time.Duration, exited <-chan struct{}) {
	if exited != nil {
		var cancel context.CancelFunc
		ctx, cancel = context.WithCancel(ctx)
		defer cancel()
		go func() {
			select {
			case <-exited:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		if _, err := plainRun(ctx, pod, container, container.Lifecycle.PreStop); err == nil {
			panic("the sleep was not cancelled")
		}
	}()
	select {
	case <-done:
	case <-time.After(grace):
	}
}

// plainRun runs a sleep hook as the kubelet's handler runner does, with time.After and fmt.
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

// plainSleep sleeps until the seconds have passed or ctx ends.
func plainSleep(ctx context.Context, seconds int64) error {
	select {
	case <-ctx.Done():
		return errors.New(sleepCutText)
	case <-time.After(time.Duration(seconds) * time.Second):
		return nil
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

// awaitGoroutines waits until there are n goroutines, and then until the last one blocks.
func awaitGoroutines(n int) {
	for runtime.NumGoroutine() < n {
		<-time.After(time.Millisecond)
	}
	<-time.After(100 * time.Millisecond)
}

// startAndEndGoroutines starts n goroutines, which exist at the same time, and waits for their end.
func startAndEndGoroutines(n int) {
	var ended sync.WaitGroup
	release := make(chan struct{})
	for range n {
		ended.Go(func() { <-release })
	}
	close(release)
	ended.Wait()
}

// BenchmarkSleepingPodMemory measures the memory of one pod while its hook sleeps. The Go runtime keeps the descriptors of
// ended goroutines and reuses them, so that only the first case would pay for them. Therefore the size of a descriptor is
// measured before all cases, and added to each figure. Run this benchmark alone: others leave descriptors too.
func BenchmarkSleepingPodMemory(b *testing.B) {
	const pods = 10_000
	before := heapAndStacks()
	const goroutines = 5 * pods // a case has at most 5 goroutines for each pod
	startAndEndGoroutines(goroutines)
	descriptor := float64(heapAndStacks()-before) / goroutines
	for _, way := range benchmarkCases() {
		b.Run(way.name, func(b *testing.B) {
			var bytes int64 // of all rounds
			rounds := 0
			for b.Loop() {
				all := sleepingPods(pods)
				before := heapAndStacks()
				cancel := way.start(b, all)
				bytes += heapAndStacks() - before
				rounds++
				cancel()
			}
			b.ReportMetric(float64(bytes)/float64(rounds*pods)+descriptor*float64(way.goroutines), "B/pod")
			b.ReportMetric(0, "ns/op") // meaningless here
		})
	}
}

// BenchmarkCancelSleepingPods measures the time from the cancellation of 100,000 pods whose hooks sleep
// until all their goroutines have ended.
func BenchmarkCancelSleepingPods(b *testing.B) {
	const pods = 100_000
	all := sleepingPods(pods)
	for _, way := range benchmarkCases() {
		b.Run("pods=100000/"+way.name, func(b *testing.B) {
			for b.Loop() {
				b.StopTimer()
				cancel := way.start(b, all)
				b.StartTimer()
				cancel()
			}
		})
	}
}

// BenchmarkTerminate measures KillPod for 10,000 pods in parallel. StopContainer takes no time. The case "plain" kills the
// pods without a Terminator.
func BenchmarkTerminate(b *testing.B) {
	all := runningPods(10_000)
	kills := map[string]func(b *testing.B) func(ctx context.Context, pod *v1.Pod){
		"plain": func(*testing.B) func(context.Context, *v1.Pod) { return plainStop(newWorkingRuntime()) },
		"kubegrace": func(b *testing.B) func(context.Context, *v1.Pod) {
			terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: newWorkingRuntime()})
			require.NoError(b, err)
			return func(ctx context.Context, pod *v1.Pod) {
				if _, err := terminator.KillPod(ctx, pod, lifecycle.Request{}); err != nil {
					panic(err)
				}
			}
		},
	}
	for _, name := range []string{"plain", "kubegrace"} {
		b.Run("pods=10000/way="+name, func(b *testing.B) {
			ctx := klog.NewContext(b.Context(), klog.Logger{})
			b.ReportAllocs()
			for b.Loop() {
				b.StopTimer()
				kill := kills[name](b)
				b.StartTimer()
				var ended sync.WaitGroup
				for _, pod := range all {
					ended.Go(func() { kill(ctx, pod) })
				}
				ended.Wait()
			}
		})
	}
}

// plainStop returns a function that kills a pod as the kubelet's pod worker does, without hooks.
func plainStop(rt workingRuntime) func(ctx context.Context, pod *v1.Pod) {
	return func(ctx context.Context, pod *v1.Pod) {
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			running, err := rt.Running(ctx, pod)
			if err != nil {
				panic(err)
			}
			var containers sync.WaitGroup
			for _, c := range running {
				containers.Go(func() { _ = rt.StopContainer(ctx, c.ID, 30) }) // workingRuntime does not fail
			}
			containers.Wait()
		}()
		select {
		case <-killed:
		case <-time.After(time.Minute):
		}
	}
}

// runningPods returns n pods with one running container each.
func runningPods(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		id := strconv.Itoa(i)
		pods[i] = &v1.Pod{
			ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "pod-" + id, UID: types.UID(id)},
			Spec:       v1.PodSpec{TerminationGracePeriodSeconds: ptr.To(int64(30)), Containers: []v1.Container{{Name: "app"}}},
		}
	}
	return pods
}
