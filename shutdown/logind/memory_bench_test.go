//go:build linux

package logind_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/godbus/dbus/v5"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The environment of [TestMemoryAgentProcess].
const (
	memoryAgentWay  = "KUBEGRACE_MEMORY_AGENT" // "kubegrace" or "plain"
	memoryAgentPods = "KUBEGRACE_MEMORY_AGENT_PODS"
	memoryAgentBus  = "KUBEGRACE_MEMORY_AGENT_BUS"
	memoryAgentDir  = "KUBEGRACE_MEMORY_AGENT_DIR" // of the state
)

// BenchmarkPeakMemory is the peak memory (VmHWM) of the process of an agent after a shutdown,
// with the report on the disk. The agent drains pods that stop at once, over a real bus.
// MiB-idle is the peak of the same process before the signal: the program, 2 MiB of which are
// libraries of the test, and the pods, of 1.1 KiB each. "plain" does it as the kubelet does,
// with a goroutine for each pod and the kubelet's small state file.
func BenchmarkPeakMemory(b *testing.B) {
	for _, pods := range []int{110, 1_000, 10_000, 50_000} {
		for _, way := range []string{"plain", "kubegrace"} {
			b.Run(fmt.Sprintf("pods=%d/way=%s", pods, way), func(b *testing.B) {
				var idle, peak float64
				for b.Loop() {
					before, after := peakMemory(b, way, pods)
					idle, peak = idle+before, peak+after
				}
				b.ReportMetric(idle/float64(b.N), "MiB-idle")
				b.ReportMetric(peak/float64(b.N), "MiB")
			})
		}
	}
}

// peakMemory runs the process of an agent through one shutdown and returns its peak memory
// before and after that, in MiB.
func peakMemory(b *testing.B, way string, pods int) (idle, peak float64) {
	b.Helper()
	h := newHost(b)
	self, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.CommandContext(b.Context(), self, "-test.run=^TestMemoryAgentProcess$")
	cmd.Env = append(os.Environ(), memoryAgentWay+"="+way, memoryAgentPods+"="+strconv.Itoa(pods),
		memoryAgentBus+"="+h.bus.Address, memoryAgentDir+"="+b.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	said := bufio.NewReader(out)

	idle = readMemory(b, said)
	lock := h.login1.Held()[0]
	h.login1.Prepare(true)
	<-lock.Released
	require.NoError(b, in.Close())
	peak = readMemory(b, said)
	require.NoError(b, cmd.Wait())
	return idle, peak
}

// readMemory reads a line of the agent, which is a number of kB, and returns it in MiB.
func readMemory(b *testing.B, said *bufio.Reader) float64 {
	b.Helper()
	line, err := said.ReadString('\n')
	require.NoError(b, err)
	kilobytes, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(b, err, "the agent said %q", line)
	return float64(kilobytes) / 1024
}

// TestMemoryAgentProcess is not a test but the process that [BenchmarkPeakMemory] measures.
// It prints its peak memory when it holds the lock, and again when the shutdown is over and its
// standard input has ended.
func TestMemoryAgentProcess(t *testing.T) {
	way := os.Getenv(memoryAgentWay)
	if way == "" {
		return
	}
	n, err := strconv.Atoi(os.Getenv(memoryAgentPods))
	require.NoError(t, err)
	pods := make([]*v1.Pod, n)
	for i := range pods {
		pods[i] = shutdowntest.Pod("pod-"+strconv.Itoa(i), int32(i%10/9*1000), 30)
	}
	if way == "plain" {
		drainPlainly(t, pods)
	} else {
		drainByManager(t, pods)
	}
	printPeakMemory(t)
}

// drainByManager returns when the drain is over and Run has ended.
func drainByManager(t *testing.T, pods []*v1.Pod) {
	t.Helper()
	source, err := logind.New(logind.Options{Address: os.Getenv(memoryAgentBus), HostRoot: t.TempDir(), NoFDStore: true})
	require.NoError(t, err)
	manager, err := shutdown.NewManager(shutdown.Options{
		Config: plan.Config{
			ShutdownGracePeriod:             metav1.Duration{Duration: 2 * time.Second},
			ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: time.Second},
		},
		Pods:     shutdown.PodsFunc(func() []*v1.Pod { return pods }),
		Killer:   shutdown.PodKillerFunc(stopAtOnce),
		Source:   source,
		StateDir: os.Getenv(memoryAgentDir),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	<-manager.Ready()
	printPeakMemory(t)
	awaitEndOfInput(t)
	cancel()
	require.NoError(t, <-ended)
	report, ok := manager.LastReport()
	require.True(t, ok)
	require.Len(t, report.Pods, len(pods))
}

// drainPlainly does what the kubelet does: it takes the lock, waits for the signal, kills each
// pod of a group in a goroutine, and closes the lock.
func drainPlainly(t *testing.T, pods []*v1.Pod) {
	t.Helper()
	bus, err := dbus.Connect(os.Getenv(memoryAgentBus))
	require.NoError(t, err)
	signals := make(chan *dbus.Signal, 16)
	bus.Signal(signals)
	require.NoError(t, bus.AddMatchSignalContext(t.Context(), dbus.WithMatchMember("PrepareForShutdown")))
	var fd dbus.UnixFD
	require.NoError(t, bus.Object(login1, login1Path).CallWithContext(t.Context(), login1Manager+".Inhibit", 0,
		"shutdown", "agent", "pods", "delay").Store(&fd))
	lock := os.NewFile(uintptr(fd), "lock")
	printPeakMemory(t)
	<-signals
	began := time.Now()
	storeTimes(t, began, time.Time{})
	var groups [2][]*v1.Pod
	for _, pod := range pods {
		group := min(int(*pod.Spec.Priority), 1)
		groups[group] = append(groups[group], pod)
	}
	for _, group := range groups {
		killEach(t.Context(), group)
	}
	storeTimes(t, began, time.Now())
	require.NoError(t, lock.Close())
	awaitEndOfInput(t)
	require.NoError(t, bus.Close())
}

// killEach kills each pod in a goroutine of its own.
func killEach(ctx context.Context, pods []*v1.Pod) {
	var killed sync.WaitGroup
	for _, pod := range pods {
		killed.Go(func() {
			req := shutdown.KillRequest{GracePeriodSeconds: ptr.To(int64(1)), SetStatus: func(status *v1.PodStatus) { status.Phase = v1.PodFailed }}
			if _, err := stopAtOnce(ctx, pod, req); err != nil {
				panic(err)
			}
		})
	}
	done := make(chan struct{})
	go func() { killed.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(20 * time.Second):
	}
}

func storeTimes(t *testing.T, start, end time.Time) {
	t.Helper()
	data := fmt.Appendf(nil, `{"startTime":%q,"endTime":%q}`, start.Format(time.RFC3339Nano), end.Format(time.RFC3339Nano))
	require.NoError(t, atomicfile.Write(os.Getenv(memoryAgentDir)+"/graceful_node_shutdown_state", data))
}

// stopAtOnce is a killer whose pods end at once.
func stopAtOnce(context.Context, *v1.Pod, shutdown.KillRequest) (shutdown.KillResult, error) {
	return shutdown.KillResult{Outcome: "Graceful"}, nil
}

// awaitEndOfInput waits until the benchmark has seen the lock released.
func awaitEndOfInput(t *testing.T) {
	t.Helper()
	_, err := bufio.NewReader(os.Stdin).ReadByte()
	require.Error(t, err)
}

// printPeakMemory prints the peak memory of the process, in kB.
func printPeakMemory(t *testing.T) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	peak := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(status)
	require.NotNil(t, peak)
	fmt.Printf("%s\n", peak[1])
}
