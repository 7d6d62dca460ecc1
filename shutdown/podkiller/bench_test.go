//go:build go1.25

package podkiller_test

import (
	"context"
	"io"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// instantRuntime is a runtime with one container for each pod. The container ends immediately when it is
// stopped.
type instantRuntime struct{ stopped sync.Map }

// Running returns the pod's container until it is stopped.
func (r *instantRuntime) Running(_ context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if _, ended := r.stopped.Load(pod.Name); ended {
		return nil, nil
	}
	return []lifecycle.Container{{Name: "app", ID: pod.Name}}, nil
}

// StopContainer ends the container.
func (r *instantRuntime) StopContainer(_ context.Context, id string, _ int64) error {
	r.stopped.Store(id, true)
	return nil
}

// signalHost is a source with one session. It closes released when its lock is closed.
type signalHost struct {
	events   chan source.Event
	released chan struct{}
}

// Connect, Events, Pending and Inhibit implement the only session. No shutdown is pending in it, and it has one lock.
func (h *signalHost) Connect(context.Context) (source.Session, error) { return h, nil }
func (h *signalHost) Events() <-chan source.Event                     { return h.events }
func (h *signalHost) Pending(context.Context) (*source.Event, error)  { return nil, nil }
func (h *signalHost) Inhibit(context.Context) (io.Closer, error)      { return closer(h.released), nil }

// Close ends the session.
func (h *signalHost) Close() error { close(h.events); return nil }

// RequestDelay grants every delay.
func (h *signalHost) RequestDelay(_ context.Context, requested time.Duration) (time.Duration, error) {
	return requested, nil
}

// closer is a lock whose Close closes this channel.
type closer chan struct{}

// Close releases the lock.
func (c closer) Close() error { close(c); return nil }

// runningPods returns n pods with one running container each.
func runningPods(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = shutdowntest.Pod("pod-"+strconv.Itoa(i), 0, 30)
		pods[i].Spec.Containers = []v1.Container{{Name: "app"}}
	}
	return pods
}

// BenchmarkSignalToRelease measures the time from the host's event to the release of its lock, with a
// manager and a terminator, for pods that end immediately. "plain" starts the same goroutines as the
// kubelet: one for each pod, one that kills it, and one for each of its containers. Neither writes to disk.
func BenchmarkSignalToRelease(b *testing.B) {
	for _, n := range []int{10, 110, 1_000, 10_000, 50_000} {
		pods := runningPods(n)
		b.Run("pods="+strconv.Itoa(n)+"/way=plain", func(b *testing.B) { benchPlain(b, pods) })
		b.Run("pods="+strconv.Itoa(n)+"/way=kubegrace", func(b *testing.B) { benchTerminator(b, pods) })
	}
}

// benchTerminator measures a shutdown by a manager whose killer has a terminator. Only the time from the host's event
// to the close of the lock counts.
func benchTerminator(b *testing.B, pods []*v1.Pod) {
	b.ReportAllocs()
	ctx := klog.NewContext(b.Context(), klog.Logger{})
	for b.Loop() {
		b.StopTimer()
		terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: &instantRuntime{}})
		require.NoError(b, err)
		host := &signalHost{events: make(chan source.Event), released: make(chan struct{})}
		m, err := shutdown.NewManager(shutdown.Options{
			Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
			ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return pods }, nil),
			Killer:   podkiller.New(terminator, podkiller.Options{}),
			Source:   host,
		})
		require.NoError(b, err)
		running, cancel := context.WithCancel(ctx)
		ended := make(chan error, 1)
		go func() { ended <- m.Run(running) }()
		<-m.Ready()
		runtime.GC() // collect the garbage of the start
		b.StartTimer()

		host.events <- source.Event{}
		<-host.released

		b.StopTimer()
		cancel()
		require.NoError(b, <-ended)
		require.NoError(b, terminator.Close(ctx))
		b.StartTimer()
	}
}

// benchPlain measures goroutines that stop the containers of all pods at once, without a manager or a terminator.
func benchPlain(b *testing.B, pods []*v1.Pod) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		rt := &instantRuntime{}
		runtime.GC() // as in benchTerminator
		b.StartTimer()
		var workers sync.WaitGroup
		for _, pod := range pods {
			workers.Go(func() { plainKill(b.Context(), rt, pod) })
		}
		workers.Wait()
	}
}

// plainKill kills a pod with the goroutines that the kubelet uses: one that kills it, and one for each container.
func plainKill(ctx context.Context, rt *instantRuntime, pod *v1.Pod) {
	killed := make(chan struct{})
	go func() {
		defer close(killed)
		var containers sync.WaitGroup
		running, err := rt.Running(ctx, pod)
		if err != nil {
			panic(err)
		}
		for _, c := range running {
			containers.Go(func() {
				if err := rt.StopContainer(ctx, c.ID, 30); err != nil {
					panic(err)
				}
			})
		}
		containers.Wait()
	}()
	select {
	case <-killed:
	case <-time.After(time.Minute):
	}
}
