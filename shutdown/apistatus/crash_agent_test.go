//go:build linux && go1.25

package apistatus_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// asCrashAgent is the environment variable that turns the test binary into an agent. Its value is an
// agentConfig in JSON; see [TestCrashAgent].
const asCrashAgent = "KUBEGRACE_TEST_CRASH_AGENT"

// The kinds of an agent's host.
const (
	hostPending = "shutdown pending"
	hostUnknown = "unknown" // the host cannot say whether a shutdown is pending
	hostNone    = "none"    // the agent has no source
	hostIdle    = "idle"    // no shutdown is pending
)

// hostLimit is how long the host waits: the two buckets of 1 s, and time for the other steps.
const hostLimit = 6 * time.Second

// The annotation endsAfter holds the time that a pod needs to end. A pod with the annotation
// ignoresGrace survives the end of its grace period.
const endsAfter, ignoresGrace = "test/ends-after", "test/ignores-grace"

// agentConfig configures the process of an agent.
type agentConfig struct {
	Server        string // URL
	Node          string
	Host          string
	NextBoot      bool      // the agent runs after the reboot
	StartedPods   []string  // the pods that were started after the reboot
	BeginShutdown bool      // the agent begins the shutdown once it is ready
	HostEnd       time.Time // when the host stops waiting for the stored shutdown; zero: none is stored
	StateDir      string
	Journal       string // path of the pods' journal
	Pods          []*v1.Pod
}

// TestCrashAgent is no test, but the agent process that TestFinalStatusesSurviveKilledAgents starts and
// kills. It prints events until its standard input ends.
func TestCrashAgent(t *testing.T) {
	text := os.Getenv(asCrashAgent)
	if text == "" {
		return
	}
	var o agentConfig
	require.NoError(t, json.Unmarshal([]byte(text), &o))
	client, err := apistatus.NewClient(&rest.Config{Host: o.Server})
	require.NoError(t, err)
	reporter, err := apistatus.New(apistatus.Options{Client: client, NodeName: o.Node})
	require.NoError(t, err)
	pods, err := openPodJournal(o.Journal)
	require.NoError(t, err)
	for _, pod := range o.Pods {
		if !o.NextBoot || slices.Contains(o.StartedPods, pod.Name) {
			pods.running = append(pods.running, pod)
		}
	}
	options := shutdown.Options{
		Config: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
			{Priority: 0, ShutdownGracePeriodSeconds: 1}, {Priority: 1000, ShutdownGracePeriodSeconds: 1},
		}},
		ListPods: shutdown.ListPodsFunc(pods.runningPods, nil),
		Killer:   pods,
		Reporter: reporter,
		StateDir: o.StateDir,
		Plan:     plan.Options{Limit: hostLimit},
	}
	host := o.fakeHost()
	if host != nil {
		options.Source = host
	}
	manager, err := shutdown.NewManager(options)
	require.NoError(t, err)
	ctx, stop := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	<-manager.Ready()
	fmt.Println("agent: ready")
	switch {
	case !o.BeginShutdown:
	case host != nil:
		host.Announce(source.Event{Kind: source.KindReboot})
	default:
		require.NoError(t, manager.Trigger(source.Event{Kind: source.KindReboot}))
	}
	var watching sync.WaitGroup
	watching.Go(func() { poll(ctx, func() bool { return printEnd(manager) }) })
	if o.NextBoot {
		watching.Go(func() { poll(ctx, func() bool { return pods.startAdmitted(ctx, manager, client, o.Pods) }) })
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	require.NoError(t, err)
	stop()
	watching.Wait()
	require.NoError(t, <-ended)
	report, _ := manager.LastReport()
	reportJSON, err := json.Marshal(report)
	require.NoError(t, err)
	fmt.Printf("agent: report %s\n", reportJSON)
}

// fakeHost returns the source of the agent; nil if it has none.
func (o agentConfig) fakeHost() *shutdowntest.Host {
	host := &shutdowntest.Host{}
	switch o.Host {
	case hostPending:
		pending := &source.Event{Kind: source.KindReboot}
		if !o.HostEnd.IsZero() && time.Until(o.HostEnd) < 2*time.Second {
			pending.Deadline = o.HostEnd // too late for another shutdown after the stored one
		}
		host.SetPending(pending)
	case hostUnknown:
		host.PendingErr = errors.ErrUnsupported
	case hostNone:
		return nil
	}
	return host
}

// poll calls check every 5 ms until it returns false.
func poll(ctx context.Context, check func() bool) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for check() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

// printEnd prints a line once the drain has ended. Until then it returns true, and poll calls it again.
func printEnd(m *shutdown.Manager) (again bool) {
	report, ok := m.LastReport()
	if !ok || report.Ended.IsZero() {
		return true
	}
	fmt.Println("agent: ended")
	return false
}

// podJournal simulates the pods of a node, and is the agent's Killer. A signal is a line in a file with the time at
// which the pod ends, so that the pods end on time even if their agent is killed.
type podJournal struct {
	file *os.File

	mu      sync.Mutex // guards all below
	running []*v1.Pod
	ends    map[string]time.Duration // since the boot; missing: not signalled
}

// signal is a line of the journal.
type signal struct {
	Name     string
	At, Ends time.Duration // since the boot
}

// sinceBoot returns CLOCK_MONOTONIC, which all processes share.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // every Linux has this clock
	}
	return time.Duration(now.Nano())
}

// openPodJournal returns the journal with the signals that earlier agents have written to the file.
func openPodJournal(path string) (*podJournal, error) {
	signals, err := readSignals(path)
	if err != nil {
		return nil, err
	}
	p := &podJournal{ends: map[string]time.Duration{}}
	for _, s := range signals {
		p.ends[s.Name] = s.Ends
	}
	p.file, err = os.OpenFile(path, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o600)
	return p, err
}

// runningPods returns the pods that have not ended, for Options.ListPods.
func (p *podJournal) runningPods() []*v1.Pod {
	p.mu.Lock()
	defer p.mu.Unlock()
	var running []*v1.Pod
	for _, pod := range p.running {
		if ends, ok := p.ends[pod.Name]; !ok || sinceBoot() < ends {
			running = append(running, pod)
		}
	}
	return running
}

// KillPod records the signal and waits for the end of the pod.
func (p *podJournal) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	ends, err := p.recordSignal(pod, time.Duration(*req.GracePeriodSeconds)*time.Second)
	if err != nil {
		return shutdown.KillResult{}, err
	}
	timer := time.NewTimer(ends - sinceBoot())
	defer timer.Stop()
	select {
	case <-timer.C:
		return shutdown.KillResult{Outcome: "Gone"}, nil
	case <-ctx.Done():
		return shutdown.KillResult{}, context.Cause(ctx)
	}
}

// recordSignal writes the signal to the file, and returns when the pod ends.
func (p *podJournal) recordSignal(pod *v1.Pod, grace time.Duration) (ends time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := signal{Name: pod.Name, At: sinceBoot()}
	takes, err := time.ParseDuration(pod.Annotations[endsAfter])
	if err != nil {
		return 0, err
	}
	s.Ends = s.At + takes
	if pod.Annotations[ignoresGrace] == "" {
		s.Ends = min(s.Ends, s.At+grace)
	}
	if before, ok := p.ends[pod.Name]; ok {
		s.Ends = min(s.Ends, before)
	}
	p.ends[pod.Name] = s.Ends
	line, err := json.Marshal(s)
	if err == nil {
		_, err = p.file.Write(append(line, '\n'))
	}
	return s.Ends, err
}

// startAdmitted asks Admit for the node's pods after the reboot, and starts those that are admitted and that the API
// server still has as running. again is true while Admit refuses a pod, so that poll calls startAdmitted again.
func (p *podJournal) startAdmitted(ctx context.Context, m *shutdown.Manager, api kubernetes.Interface, pods []*v1.Pod) (again bool) {
	for _, pod := range pods {
		if p.isDecided(pod) {
			continue
		}
		again = true
		if !m.Admit(pod).Admit {
			continue
		}
		server, err := api.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			continue // the next call asks again
		}
		p.mu.Lock()
		p.ends[pod.Name] = 0 // it has ended
		if server.Status.Phase == v1.PodRunning {
			delete(p.ends, pod.Name)
			p.running = append(p.running, pod)
			fmt.Printf("agent: runs %s\n", pod.Name)
		}
		p.mu.Unlock()
	}
	return again
}

// isDecided reports whether the pod was started again or is known to have ended.
func (p *podJournal) isDecided(pod *v1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ended := p.ends[pod.Name]
	for _, running := range p.running {
		ended = ended || running.Name == pod.Name
	}
	return ended
}
