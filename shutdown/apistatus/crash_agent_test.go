//go:build linux

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

// asCrashAgent makes the test binary an agent, see [TestCrashAgent].
const asCrashAgent = "KUBEGRACE_TEST_CRASH_AGENT"

// What the host of such an agent does.
const (
	hostGoesDown   = "goes down"   // as it has announced to a former agent
	hostCannotTell = "cannot tell" // what it is doing
	hostIsNone     = "is none"     // there is no source
	hostIsIdle     = "is idle"
)

// takesFor says how long a pod needs to end; one that is deaf is not killed at the end of
// its grace.
const takesFor, deaf = "test/takes", "test/deaf"

// orders are what such an agent is to do.
type orders struct {
	Server   string // URL
	Node     string
	Host     string
	Booted   bool     // it is the next boot
	Runs     []string // the pods that have been started in it so far
	Begins   bool     // the shutdown begins when the agent is ready
	StateDir string
	Journal  string // of the kills, which outlives the agents as the pods do
	Pods     []*v1.Pod
}

// TestCrashAgent is not a test but the process of an agent that other tests start and
// kill. It says what happens on its standard output, until its standard input ends.
func TestCrashAgent(t *testing.T) {
	text := os.Getenv(asCrashAgent)
	if text == "" {
		return
	}
	var o orders
	require.NoError(t, json.Unmarshal([]byte(text), &o))
	client, err := apistatus.NewClient(&rest.Config{Host: o.Server})
	require.NoError(t, err)
	reporter, err := apistatus.New(apistatus.Options{Client: client, NodeName: o.Node})
	require.NoError(t, err)
	pods, err := openPodJournal(o.Journal)
	require.NoError(t, err)
	for _, pod := range o.Pods {
		if !o.Booted || slices.Contains(o.Runs, pod.Name) {
			pods.running = append(pods.running, pod)
		}
	}
	options := shutdown.Options{
		Config: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
			{Priority: 0, ShutdownGracePeriodSeconds: 1}, {Priority: 1000, ShutdownGracePeriodSeconds: 1},
		}},
		Pods:     pods.now,
		Killer:   pods,
		Reporter: reporter,
		StateDir: o.StateDir,
		Plan:     plan.Options{Limit: 6 * time.Second},
	}
	host := o.host()
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
	case !o.Begins:
	case host != nil:
		host.Announce(shutdown.Event{Kind: shutdown.KindReboot})
	default:
		require.NoError(t, manager.Trigger(shutdown.Event{Kind: shutdown.KindReboot}))
	}
	var watching sync.WaitGroup
	watching.Go(func() { watch(ctx, func() bool { return saysEnded(manager) }) })
	if o.Booted {
		watching.Go(func() { watch(ctx, func() bool { return pods.admit(ctx, manager, client, o.Pods) }) })
	}
	_, err = io.Copy(io.Discard, os.Stdin)
	require.NoError(t, err)
	stop()
	watching.Wait()
	require.NoError(t, <-ended)
	report, _ := manager.LastReport()
	said, err := json.Marshal(report)
	require.NoError(t, err)
	fmt.Printf("agent: report %s\n", said)
}

// host is what the agent watches; nil: nothing.
func (o orders) host() *shutdowntest.Host {
	host := &shutdowntest.Host{}
	switch o.Host {
	case hostGoesDown:
		host.SetPending(&shutdown.Event{Kind: shutdown.KindReboot})
	case hostCannotTell:
		host.PendingErr = errors.ErrUnsupported
	case hostIsNone:
		return nil
	}
	return host
}

// watch looks every few milliseconds, until there is no more to see.
func watch(ctx context.Context, look func() bool) {
	ticker := time.NewTicker(5 * time.Millisecond)
	defer ticker.Stop()
	for look() {
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return
		}
	}
}

func saysEnded(m *shutdown.Manager) (again bool) {
	report, ok := m.LastReport()
	if !ok || report.Ended.IsZero() {
		return true
	}
	fmt.Println("agent: ended")
	return false
}

// podJournal is the pods of a node: what was signalled, and when each ends, is in a file, so
// that they outlive their agent. It is the killer too.
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

// sinceBoot is CLOCK_MONOTONIC, the same for all processes.
func sinceBoot() time.Duration {
	var now unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_MONOTONIC, &now); err != nil {
		panic(err) // there is no such Linux
	}
	return time.Duration(now.Nano())
}

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

// now are the pods that have not ended.
func (p *podJournal) now() []*v1.Pod {
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

// KillPod writes down that the pod is signalled, and waits for its end.
func (p *podJournal) KillPod(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
	ends, err := p.signal(pod, time.Duration(req.GracePeriodSeconds)*time.Second)
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

func (p *podJournal) signal(pod *v1.Pod, grace time.Duration) (ends time.Duration, err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s := signal{Name: pod.Name, At: sinceBoot()}
	takes, err := time.ParseDuration(pod.Annotations[takesFor])
	if err != nil {
		return 0, err
	}
	s.Ends = s.At + takes
	if pod.Annotations[deaf] == "" {
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

// admit starts the pods again that the node is still to run: those that the API server
// does not call ended, as soon as they are admitted. False: there are no others.
func (p *podJournal) admit(ctx context.Context, m *shutdown.Manager, api kubernetes.Interface, pods []*v1.Pod) (again bool) {
	for _, pod := range pods {
		if p.decided(pod) {
			continue
		}
		again = true
		if !m.Admit(pod).Admit {
			continue
		}
		server, err := api.CoreV1().Pods(pod.Namespace).Get(ctx, pod.Name, metav1.GetOptions{})
		if err != nil {
			continue // and asked again
		}
		p.mu.Lock()
		p.ends[pod.Name] = 0
		if server.Status.Phase == v1.PodRunning {
			delete(p.ends, pod.Name)
			p.running = append(p.running, pod)
			fmt.Printf("agent: runs %s\n", pod.Name)
		}
		p.mu.Unlock()
	}
	return again
}

// decided tells whether a pod runs again, or never will.
func (p *podJournal) decided(pod *v1.Pod) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, ended := p.ends[pod.Name]
	for _, running := range p.running {
		ended = ended || running.Name == pod.Name
	}
	return ended
}
