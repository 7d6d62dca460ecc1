//go:build go1.25

package shutdown_test

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// killAtOnce is a killer whose pods end at once. It calls SetStatus, as the kubelet's killer does.
func killAtOnce(_ context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	status := pod.Status
	req.SetStatus(&status)
	return shutdown.KillResult{Outcome: "Graceful"}, nil
}

// killIn100ms is a killer whose pods end after 100 ms.
func killIn100ms(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	timer := time.NewTimer(100 * time.Millisecond)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
	return killAtOnce(ctx, pod, req)
}

// benchHost is a source with one session. It closes released when its lock is closed.
type benchHost struct {
	events   chan source.Event
	released chan struct{}
}

// newBenchHost returns a host that announces nothing by itself.
func newBenchHost() *benchHost {
	return &benchHost{events: make(chan source.Event), released: make(chan struct{})}
}

// Connect, Events and Pending implement a session without a pending shutdown.
func (h *benchHost) Connect(context.Context) (source.Session, error) { return h, nil }
func (h *benchHost) Events() <-chan source.Event                     { return h.events }
func (h *benchHost) Pending(context.Context) (*source.Event, error)  { return nil, nil }

// Inhibit returns the only lock, whose Close ends the measurement.
func (h *benchHost) Inhibit(context.Context) (io.Closer, error) {
	return notifyingLock(h.released), nil
}

// Close ends the session.
func (h *benchHost) Close() error { close(h.events); return nil }

// RequestDelay grants every delay.
func (h *benchHost) RequestDelay(_ context.Context, delay time.Duration) (time.Duration, error) {
	return delay, nil
}

// notifyingLock is a lock whose Close closes the channel.
type notifyingLock chan struct{}

// Close releases the lock.
func (l notifyingLock) Close() error { close(l); return nil }

// benchPods returns n pods, one in ten of them critical.
func benchPods(n int) []*v1.Pod {
	pods := make([]*v1.Pod, n)
	for i := range pods {
		priority := int32(0)
		if i%10 == 0 {
			priority = criticalPriority
		}
		pods[i] = shutdowntest.Pod(fmt.Sprintf("pod-%d", i), priority, 30)
	}
	return pods
}

// BenchmarkSignalToRelease measures the time from the host's event to the release of its lock, with a state
// folder. "plain" works like the kubelet: a goroutine for each pod, and the kubelet's small state file.
func BenchmarkSignalToRelease(b *testing.B) {
	for _, n := range []int{10, 110, 1_000, 10_000, 50_000} {
		benchWays(b, fmt.Sprintf("pods=%d/stop=instant", n), benchPods(n), killAtOnce)
	}
	for _, n := range []int{110, 10_000} {
		benchWays(b, fmt.Sprintf("pods=%d/stop=100ms", n), benchPods(n), killIn100ms)
	}
}

// benchWays measures the same drain twice: plain, and with kubegrace's manager.
func benchWays(b *testing.B, name string, pods []*v1.Pod, killer shutdown.PodKillerFunc) {
	b.Run(name+"/way=plain", func(b *testing.B) { benchPlain(b, pods, killer) })
	b.Run(name+"/way=kubegrace", func(b *testing.B) { benchManager(b, pods, killer) })
}

// newBenchManager returns a manager for a benchmark. state is its state folder; "": none.
func newBenchManager(b *testing.B, host *benchHost, pods []*v1.Pod, killer shutdown.PodKiller, state string) *shutdown.Manager {
	b.Helper()
	m, err := shutdown.NewManager(shutdown.Options{
		Config:   config(30*time.Second, 10*time.Second),
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return pods }, nil),
		Killer:   killer,
		Source:   host,
		StateDir: state,
	})
	require.NoError(b, err)
	return m
}

// startManager runs a manager and waits until it is ready. The returned function ends it.
func startManager(b *testing.B, m *shutdown.Manager) (end func()) {
	b.Helper()
	ctx, cancel := context.WithCancel(b.Context())
	ended := make(chan error, 1)
	go func() { ended <- m.Run(ctx) }()
	<-m.Ready()
	return func() {
		cancel()
		require.NoError(b, <-ended)
	}
}

// benchManager measures the time from the host's event to the release of the lock. Start and end of Run are
// not counted.
func benchManager(b *testing.B, pods []*v1.Pod, killer shutdown.PodKiller) {
	b.ReportAllocs()
	for b.Loop() {
		b.StopTimer()
		host := newBenchHost()
		end := startManager(b, newBenchManager(b, host, pods, killer, b.TempDir()))
		runtime.GC() // do not measure the garbage of the start
		b.StartTimer()

		host.events <- source.Event{}
		<-host.released

		b.StopTimer()
		end()
		b.StartTimer()
	}
}

// benchPlain measures the drain that a kubelet would make, without a host.
func benchPlain(b *testing.B, pods []*v1.Pod, killer shutdown.PodKiller) {
	b.ReportAllocs()
	state := filepath.Join(b.TempDir(), timesFile)
	for b.Loop() {
		b.StopTimer()
		runtime.GC() // as in benchManager
		b.StartTimer()
		plainShutdown(b.Context(), state, pods, killer)
	}
	require.FileExists(b, state)
}

// plainShutdown kills the pods that are not critical, then the critical ones, and writes the kubelet's state file
// before and after that.
func plainShutdown(ctx context.Context, state string, pods []*v1.Pod, killer shutdown.PodKiller) {
	began := time.Now()
	storePlain(state, began, time.Time{})
	var groups [2][]*v1.Pod
	for _, pod := range pods {
		group := 0
		if *pod.Spec.Priority >= criticalPriority {
			group = 1
		}
		groups[group] = append(groups[group], pod)
	}
	for _, group := range groups {
		killPlain(ctx, group, killer)
	}
	storePlain(state, began, time.Now())
}

// killPlain kills the pods of one bucket concurrently, as a kubelet does. The bucket has 20 s: longer grace periods are
// shortened to that, and killPlain waits no longer for the pods.
func killPlain(ctx context.Context, pods []*v1.Pod, killer shutdown.PodKiller) {
	var wg sync.WaitGroup
	for _, pod := range pods {
		wg.Go(func() {
			grace := min(*pod.Spec.TerminationGracePeriodSeconds, 20)
			_, err := killer.KillPod(ctx, pod, shutdown.KillRequest{GracePeriodSeconds: &grace, SetStatus: func(status *v1.PodStatus) {
				status.Phase, status.Reason = v1.PodFailed, "Terminated"
				status.Conditions = append(status.Conditions, v1.PodCondition{Type: v1.DisruptionTarget})
			}})
			if err != nil {
				panic(err)
			}
		})
	}
	done := make(chan struct{})
	go func() { wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
	}
}

// storePlain writes the kubelet's state file.
func storePlain(path string, start, end time.Time) {
	data := fmt.Appendf(nil, `{"startTime":%q,"endTime":%q}`, start.Format(time.RFC3339Nano), end.Format(time.RFC3339Nano))
	if err := atomicfile.Write(path, data); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}
