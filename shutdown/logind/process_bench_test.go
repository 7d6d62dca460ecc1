//go:build linux && go1.25

package logind_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/logind"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
)

// The environment of [TestFreshProcess].
const (
	agentKind   = "KUBEGRACE_BENCH_AGENT"        // "kubegrace" or "plain"
	agentKiller = "KUBEGRACE_BENCH_AGENT_KILLER" // "terminator" or "func"
	agentPods   = "KUBEGRACE_BENCH_AGENT_PODS"
	agentBus    = "KUBEGRACE_BENCH_AGENT_BUS"
	agentDir    = "KUBEGRACE_BENCH_AGENT_DIR" // of the state
)

// BenchmarkFreshProcess starts an agent's process, shuts the node down once and ends the process, so
// that nothing is cached. The pods stop at once, the bus is real, and the state is on disk.
//
// It reports ms, the time from the signal until the host sees the lock released; MiB-idle, the peak memory (VmHWM) before
// the signal, which is that of the program, of 2 MiB of test libraries, and of the pods of 1.1 KiB each; and MiB, the peak
// memory at the end.
//
// way=plain works like the kubelet, with a goroutine for each pod and the kubelet's small state file. killer=terminator
// stops one container of each pod, with package lifecycle or, if way=plain, with a goroutine for each container;
// killer=func does nothing.
func BenchmarkFreshProcess(b *testing.B) {
	for _, killer := range []string{"func", "terminator"} {
		for _, pods := range []int{10, 110, 500, 1_000, 10_000, 50_000} {
			for _, way := range []string{"plain", "kubegrace"} {
				b.Run(fmt.Sprintf("killer=%s/pods=%d/way=%s", killer, pods, way), func(b *testing.B) {
					var sum usage
					for b.Loop() {
						once := shutDownOnce(b, way, killer, pods)
						sum = usage{took: sum.took + once.took, idle: sum.idle + once.idle, peak: sum.peak + once.peak}
					}
					b.ReportMetric(float64(sum.took.Microseconds())/1000/float64(b.N), "ms")
					b.ReportMetric(sum.idle/float64(b.N), "MiB-idle")
					b.ReportMetric(sum.peak/float64(b.N), "MiB")
					b.ReportMetric(0, "ns/op")
				})
			}
		}
	}
}

// usage is what one shutdown of an agent's process has used.
type usage struct {
	took       time.Duration // from the signal until the host saw the lock released
	idle, peak float64       // the peak memory before the signal and at the end, in MiB
}

// shutDownOnce starts an agent's process, shuts the node down, and ends the process.
func shutDownOnce(b *testing.B, way, killer string, pods int) usage {
	b.Helper()
	h := newBenchHost(b)
	self, err := os.Executable()
	require.NoError(b, err)
	cmd := exec.CommandContext(b.Context(), self, "-test.run=^TestFreshProcess$")
	cmd.Env = append(os.Environ(), agentKind+"="+way, agentKiller+"="+killer, agentPods+"="+strconv.Itoa(pods),
		agentBus+"="+h.bus.Address, agentDir+"="+b.TempDir())
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	require.NoError(b, err)
	out, err := cmd.StdoutPipe()
	require.NoError(b, err)
	require.NoError(b, cmd.Start())
	said := bufio.NewReader(out)

	idle := readMemory(b, said)
	lock, began := h.login1.Held()[0], time.Now()
	h.announceShutdown()
	<-lock.Released
	took := time.Since(began)
	require.NoError(b, in.Close())
	peak := readMemory(b, said)
	require.NoError(b, cmd.Wait())
	return usage{took: took, idle: idle, peak: peak}
}

// readMemory reads a line with a number of kB and returns MiB.
func readMemory(b *testing.B, said *bufio.Reader) float64 {
	b.Helper()
	line, err := said.ReadString('\n')
	require.NoError(b, err)
	kilobytes, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(b, err, "the agent printed %q", line)
	return float64(kilobytes) / 1024
}

// TestFreshProcess is the process that [BenchmarkFreshProcess] measures: an agent that uses kubegrace's manager, or a plain one
// without it. It prints its peak memory twice: the drain function prints it when it holds the lock, and the end of this test when the
// shutdown is over and the standard input has ended. Without the variable agentKind it does nothing.
func TestFreshProcess(t *testing.T) {
	kind := os.Getenv(agentKind)
	if kind == "" {
		return // not started by the benchmark
	}
	n, err := strconv.Atoi(os.Getenv(agentPods))
	require.NoError(t, err)
	pods := runningPods(n)
	for i, pod := range pods {
		*pod.Spec.Priority = int32(i % 10 / 9 * 1000) // 1000 for every tenth pod, otherwise 0
	}
	if kind == "plain" {
		drainPlainly(t, pods)
	} else {
		drainByManager(t, pods)
	}
	printPeakMemory(t)
}

// drainByManager runs kubegrace's manager. It prints the peak memory when the manager holds the lock, and returns when the
// drain is over and Run has ended.
func drainByManager(t *testing.T, pods []*v1.Pod) {
	t.Helper()
	source, err := logind.New(logind.Options{Address: os.Getenv(agentBus), HostRoot: t.TempDir(), NoFDStore: true})
	require.NoError(t, err)
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: stoppableRuntime(func() {})})
	require.NoError(t, err)
	var killer shutdown.PodKiller = shutdown.PodKillerFunc(stopAtOnce)
	if os.Getenv(agentKiller) == "terminator" {
		killer = podkiller.New(terminator, podkiller.Options{})
	}
	manager, err := shutdown.NewManager(shutdown.Options{
		Config: plan.Config{
			ShutdownGracePeriod:             metav1.Duration{Duration: 2 * time.Second},
			ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: time.Second},
		},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return pods }, nil),
		Killer:   killer,
		Source:   source,
		StateDir: os.Getenv(agentDir),
	})
	require.NoError(t, err)
	ctx, cancel := context.WithCancel(klog.NewContext(t.Context(), klog.Logger{}))
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	<-manager.Ready()
	printPeakMemory(t)
	awaitEndOfInput(t)
	cancel()
	require.NoError(t, <-ended)
	require.NoError(t, terminator.Close(t.Context()))
	report, ok := manager.LastReport()
	require.True(t, ok)
	require.Len(t, report.Pods, len(pods))
}

// drainPlainly works like the kubelet: it takes the lock, prints the peak memory, waits for the signal, kills the pods in
// two groups by priority, and closes the lock.
func drainPlainly(t *testing.T, pods []*v1.Pod) {
	t.Helper()
	bus, signals, err := plainConnect(t.Context(), os.Getenv(agentBus))
	require.NoError(t, err)
	lock, err := plainInhibit(t.Context(), bus)
	require.NoError(t, err)
	kill := func(*v1.Pod) {}
	if os.Getenv(agentKiller) == "terminator" {
		kill = plainKill(t.Context(), stoppableRuntime(func() {}))
	}
	state := filepath.Join(os.Getenv(agentDir), "graceful_node_shutdown_state")
	printPeakMemory(t)
	<-signals
	began, notEnded := time.Now(), time.Time{}
	require.NoError(t, plainStore(state, began, notEnded))
	var groups [2][]*v1.Pod
	for _, pod := range pods {
		group := min(int(*pod.Spec.Priority), 1) // 0, or 1 for the priority 1000
		groups[group] = append(groups[group], pod)
	}
	for _, group := range groups {
		plainDrain(group, kill)
	}
	require.NoError(t, plainStore(state, began, time.Now()))
	require.NoError(t, lock.Close())
	awaitEndOfInput(t)
	require.NoError(t, bus.Close())
}

// stopAtOnce is a killer whose pods end at once.
func stopAtOnce(context.Context, *v1.Pod, shutdown.KillRequest) (shutdown.KillResult, error) {
	return shutdown.KillResult{Outcome: "Graceful"}, nil
}

// awaitEndOfInput waits until the benchmark has seen the lock released, and has closed this process's standard input.
func awaitEndOfInput(t *testing.T) {
	t.Helper()
	_, err := bufio.NewReader(os.Stdin).ReadByte()
	require.ErrorIs(t, err, io.EOF)
}

// printPeakMemory prints the peak memory of the process in kB.
func printPeakMemory(t *testing.T) {
	t.Helper()
	status, err := os.ReadFile("/proc/self/status")
	require.NoError(t, err)
	peak := regexp.MustCompile(`(?m)^VmHWM:\s+(\d+) kB$`).FindSubmatch(status)
	require.NotNil(t, peak)
	fmt.Printf("%s\n", peak[1])
}
