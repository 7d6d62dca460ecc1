//go:build linux && go1.25

package logind_test

import (
	"context"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The benchmarks of this file run a whole agent on a real bus. "kubegrace" is a manager and a terminator, with the
// state on disk. "plain" works like the kubelet: it waits for the signal, runs a goroutine for each pod
// and container, and writes a small state file.

// newBenchHost returns a host that grants every delay.
func newBenchHost(b *testing.B) *host {
	b.Helper()
	h := newHost(b)
	h.times.Poll = 0 // the default
	h.login1.SetLimit(time.Minute)
	return h
}

// BenchmarkSignalToFirstStop measures the time from logind's signal to the first StopContainer of 110 pods: with an agent
// that uses kubegrace (startManaged), and with one that works like the kubelet (startPlain).
func BenchmarkSignalToFirstStop(b *testing.B) {
	const pods = 110
	for way, start := range map[string]func(b *testing.B, h *host, n int, stopped func()) (end func()){"plain": startPlain, "kubegrace": startManaged} {
		b.Run("pods="+strconv.Itoa(pods)+"/way="+way, func(b *testing.B) {
			h := newBenchHost(b)
			for b.Loop() {
				b.StopTimer()
				first := make(chan struct{})
				end := start(b, h, pods, sync.OnceFunc(func() { close(first) }))
				runtime.GC() // so that the garbage of the start is not collected while the timer runs
				b.StartTimer()

				h.announceShutdown()
				<-first

				b.StopTimer()
				locks := h.login1.Locks()
				<-locks[len(locks)-1].Released
				end()
				h.endShutdownSilently()
				b.StartTimer()
			}
		})
	}
}

// startManaged starts an agent with kubegrace's manager and terminator, which takes a lock and drains n pods.
// stopped is called for each stopped container. end ends the agent.
func startManaged(b *testing.B, h *host, n int, stopped func()) (end func()) {
	b.Helper()
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: stoppableRuntime(stopped)})
	require.NoError(b, err)
	pods := runningPods(n)
	manager, err := shutdown.NewManager(shutdown.Options{
		Config:   thirtySeconds(),
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return pods }, nil),
		Killer:   podkiller.New(terminator, podkiller.Options{}),
		Source:   h.source(b),
		StateDir: b.TempDir(),
	})
	require.NoError(b, err)
	quiet := klog.NewContext(b.Context(), klog.Logger{})
	stop := runManager(quiet, b, manager)
	require.True(b, manager.Inhibitor().Held)
	return func() {
		stop()
		require.NoError(b, terminator.Close(quiet))
	}
}

// runManager runs a manager and returns when it is ready. stop ends it.
func runManager(ctx context.Context, b *testing.B, manager *shutdown.Manager) (stop func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	<-manager.Ready()
	return func() {
		cancel()
		require.NoError(b, <-ended)
	}
}

// thirtySeconds is a configuration with one bucket of 30 s.
func thirtySeconds() plan.Config {
	return plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}}
}

// stoppableRuntime returns a runtime in which each pod has a container until it is stopped.
func stoppableRuntime(stopped func()) lifecycle.Runtime { return &obedientRuntime{stopped: stopped} }

// obedientRuntime is a runtime whose containers end as soon as they are stopped.
type obedientRuntime struct {
	ended   sync.Map
	stopped func()
}

// Running returns the pod's container until it is stopped.
func (r *obedientRuntime) Running(_ context.Context, pod *v1.Pod) ([]lifecycle.Container, error) {
	if _, ended := r.ended.Load(pod.Name); ended {
		return nil, nil
	}
	return []lifecycle.Container{{Name: "app", ID: pod.Name}}, nil
}

// StopContainer ends the container at once and calls stopped.
func (r *obedientRuntime) StopContainer(_ context.Context, id string, _ int64) error {
	r.ended.Store(id, true)
	r.stopped()
	return nil
}

// runningPods returns n pods with one running container each.
func runningPods(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = shutdowntest.Pod("pod-"+strconv.Itoa(i), 0, 30)
		pods[i].Spec.Containers = []v1.Container{{Name: "app"}}
	}
	return pods
}

// startPlain starts an agent that works like the kubelet, takes a lock and drains n pods. stopped is called for each
// stopped container. end ends the agent.
func startPlain(b *testing.B, h *host, n int, stopped func()) (end func()) {
	b.Helper()
	bus, signals, err := plainConnect(b.Context(), h.options.Address)
	require.NoError(b, err)
	lock, err := plainInhibit(b.Context(), bus)
	require.NoError(b, err)
	stateFile, pods := filepath.Join(b.TempDir(), "state"), runningPods(n)
	ended := make(chan error, 1)
	go func() {
		<-signals
		began, notEnded := time.Now(), time.Time{}
		err := plainStore(stateFile, began, notEnded)
		if err == nil {
			plainDrain(pods, plainKill(b.Context(), stoppableRuntime(stopped)))
			err = plainStore(stateFile, began, time.Now())
		}
		_ = lock.Close() // if it fails, the benchmark waits for ever
		ended <- err
	}()
	return func() {
		require.NoError(b, <-ended)
		require.NoError(b, bus.Close())
	}
}

// plainConnect dials the bus, reads the limit and subscribes to the signal.
func plainConnect(ctx context.Context, address string) (*dbus.Conn, <-chan *dbus.Signal, error) {
	bus, err := dbus.Connect(address, dbus.WithContext(ctx))
	if err != nil {
		return nil, nil, err
	}
	var limit uint64
	if err := bus.Object(login1, login1Path).StoreProperty(login1Manager+".InhibitDelayMaxUSec", &limit); err != nil {
		return nil, nil, err
	}
	signals := make(chan *dbus.Signal, 16)
	bus.Signal(signals)
	return bus, signals, bus.AddMatchSignalContext(ctx, dbus.WithMatchMember("PrepareForShutdown"))
}

// plainInhibit takes a lock without kubegrace.
func plainInhibit(ctx context.Context, bus *dbus.Conn) (io.Closer, error) {
	var fd dbus.UnixFD
	err := bus.Object(login1, login1Path).CallWithContext(ctx, login1Manager+".Inhibit", 0,
		"shutdown", "agent", "pods", "delay").Store(&fd)
	return os.NewFile(uintptr(fd), "lock"), err
}

// plainStore writes a file like the kubelet's graceful_node_shutdown_state.
func plainStore(path string, start, end time.Time) error {
	return atomicfile.Write(path, []byte(`{"startTime":"`+start.Format(time.RFC3339Nano)+`","endTime":"`+end.Format(time.RFC3339Nano)+`"}`))
}

// plainDrain kills a group of pods like the kubelet: with a goroutine for each pod.
func plainDrain(pods []*v1.Pod, kill func(*v1.Pod)) {
	var group sync.WaitGroup
	for _, pod := range pods {
		group.Go(func() { kill(pod) })
	}
	done := make(chan struct{})
	go func() { group.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(30 * time.Second): // the grace period of the group
	}
}

// plainKill returns a function that kills a pod like the kubelet: with a pod worker, and a goroutine
// for each container.
func plainKill(ctx context.Context, rt lifecycle.Runtime) func(*v1.Pod) {
	return func(pod *v1.Pod) {
		killed := make(chan struct{})
		go func() {
			defer close(killed)
			var containers sync.WaitGroup
			running, _ := rt.Running(ctx, pod) // it does not fail
			for _, c := range running {
				containers.Go(func() { _ = rt.StopContainer(ctx, c.ID, 30) }) // it does not fail
			}
			containers.Wait()
		}()
		select {
		case <-killed:
		case <-time.After(45 * time.Second): // one and a half times the grace period, as in the kubelet's killPodNow
		}
	}
}

// BenchmarkStart measures the time from Run until the lock is held, or until the manager knows that
// there is no bus. "plain" dials, reads the limit, subscribes and takes the lock.
func BenchmarkStart(b *testing.B) {
	for _, hasBus := range []bool{true, false} {
		name := map[bool]string{true: "bus=real", false: "bus=none"}[hasBus]
		b.Run(name+"/way=plain", func(b *testing.B) { benchPlainStart(b, startHost(b, hasBus), hasBus) })
		b.Run(name+"/way=kubegrace", func(b *testing.B) { benchManagedStart(b, startHost(b, hasBus), hasBus) })
	}
}

// startHost returns a host. Without hasBus nothing listens at the address of its bus.
func startHost(b *testing.B, hasBus bool) *host {
	b.Helper()
	h := newBenchHost(b)
	if !hasBus {
		h.options.Address = "unix:path=" + filepath.Join(b.TempDir(), "none")
	}
	return h
}

// benchPlainStart measures the start of an agent that works like the kubelet.
func benchPlainStart(b *testing.B, h *host, hasBus bool) {
	b.Helper()
	for b.Loop() {
		bus, _, err := plainConnect(b.Context(), h.options.Address)
		if !hasBus {
			require.ErrorIs(b, err, os.ErrNotExist)
			continue
		}
		require.NoError(b, err)
		lock, err := plainInhibit(b.Context(), bus)
		require.NoError(b, err)
		b.StopTimer()
		require.NoError(b, lock.Close())
		require.NoError(b, bus.Close())
		b.StartTimer()
	}
}

// benchManagedStart measures the start of a manager.
func benchManagedStart(b *testing.B, h *host, hasBus bool) {
	b.Helper()
	quiet := klog.NewContext(b.Context(), klog.Logger{})
	for b.Loop() {
		b.StopTimer()
		manager, err := shutdown.NewManager(shutdown.Options{
			Config: thirtySeconds(), ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return nil }, nil), Killer: &shutdowntest.Killer{}, Source: h.source(b),
		})
		require.NoError(b, err)
		b.StartTimer()
		stop := runManager(quiet, b, manager)
		b.StopTimer()
		require.Equal(b, hasBus, manager.Inhibitor().Held)
		stop()
		b.StartTimer()
	}
}
