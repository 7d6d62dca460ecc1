package agent_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"google.golang.org/grpc/test/bufconn"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/agent"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/embedded"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/socket"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/units"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/notice"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// testbed is an agent with simulated pods, on a fake host that the test shuts down. It receives the agent's
// output and its messages to the service manager.
type testbed struct {
	t        *testing.T
	opts     agent.Options
	host     *shutdowntest.Host
	signals  chan os.Signal
	result   chan error // what Run has returned
	mu       sync.Mutex // guards all below
	out      bytes.Buffer
	notified []string // the messages to the service manager
}

// newTestbed returns a testbed whose agent is not started. Its buckets are those of priority 0, with 20 s, and
// of priority 1000, with 10 s.
func newTestbed(t *testing.T, pods ...*v1.Pod) *testbed {
	t.Helper()
	gate := featuregate.NewFeatureGate()
	require.NoError(t, lifecycle.AddFeatureGates(gate))
	require.NoError(t, shutdown.AddFeatureGates(gate))
	runtime, err := embedded.New(pods)
	require.NoError(t, err)
	b := &testbed{t: t, host: &shutdowntest.Host{}, signals: make(chan os.Signal), result: make(chan error, 1)}
	b.opts = agent.Options{
		Config: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
			{Priority: 0, ShutdownGracePeriodSeconds: 20}, {Priority: 1000, ShutdownGracePeriodSeconds: 10},
		}},
		Runtime: runtime, Source: b.host, Signals: b.signals, Gates: gate, View: view.New(b), Notify: b.notify,
	}
	return b
}

// endBySIGTERM sends SIGTERM to the agent, which must end without an error.
func (b *testbed) endBySIGTERM() {
	b.t.Helper()
	b.signals <- syscall.SIGTERM
	require.NoError(b.t, <-b.result)
}

// Write receives the output of the agent.
func (b *testbed) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

// notify receives the messages to the service manager.
func (b *testbed) notify(state string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notified = append(b.notified, state)
	return nil
}

// output returns the output of the agent so far.
func (b *testbed) output() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

// notifications returns the messages to the service manager so far.
func (b *testbed) notifications() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.notified...)
}

// status returns the last STATUS= message, which systemctl status would show.
func (b *testbed) status() string {
	states := slices.DeleteFunc(b.notifications(), func(state string) bool { return !strings.HasPrefix(state, "STATUS=") })
	return states[len(states)-1]
}

// start starts the agent. Its result is sent to b.result.
func (b *testbed) start() {
	b.t.Helper()
	a, err := agent.New(b.opts)
	require.NoError(b.t, err)
	go func() { b.result <- a.Run(klog.NewContext(b.t.Context(), klog.Logger{})) }()
}

// startInBubble starts the agent in a synctest bubble, and lets a second pass.
func (b *testbed) startInBubble() {
	b.t.Helper()
	b.start()
	b.advance(time.Second)
}

// advance lets d of a synctest bubble's time pass, and waits until all goroutines are idle.
func (b *testbed) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// advanceUntil lets a synctest bubble's time pass, at most a minute, until the last STATUS= message is this.
func (b *testbed) advanceUntil(status string) {
	b.t.Helper()
	for range 600 {
		if b.status() == status {
			return
		}
		b.advance(time.Second / 10)
	}
	require.Fail(b.t, "another status", b.status())
}

// awaitNotification waits, outside a bubble, for a message to the service manager that begins with prefix.
func (b *testbed) awaitNotification(prefix string) {
	b.t.Helper()
	require.Eventually(b.t, func() bool {
		return slices.ContainsFunc(b.notifications(), func(state string) bool { return strings.HasPrefix(state, prefix) })
	}, 20*time.Second, 10*time.Millisecond)
}

// podOf returns a pod with one container, app, and a grace period of 5 s. script says how the container ends
// (package embedded).
func podOf(name string, priority int32, script string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{embedded.ScriptPrefix + "app": script}},
		Spec:       v1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: ptr.To(int64(5)), Containers: []v1.Container{{Name: "app"}}},
	}
}

// The agent takes an inhibitor lock when it starts. When a reboot is announced, it stops the pods, which take 2 s and 1
// s to exit, and then releases the lock. It keeps running until a signal ends it.
func TestPodsAreDrainedInOrderUnderTheLock(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 2s}"), podOf("db", 1000, "{exitAfterTerm: 1s}"))
		b.startInBubble()
		require.Contains(t, b.notifications(), "READY=1")
		require.Contains(t, b.output(), "Holds the inhibitor lock: a shutdown of this machine waits for up to ")

		b.host.Announce(source.Event{Kind: source.KindReboot})
		b.advance(10 * time.Second)
		require.Contains(t, b.output(), "ns/web                   gone after 2s: stopped in time")
		require.Contains(t, b.output(), "ns/db                    gone after 1s: stopped in time")
		require.Contains(t, b.notifications(), "STATUS=The pods have been stopped")
		require.Zero(t, b.host.Held(), "the lock is released")

		b.endBySIGTERM()
	})
}

// runtimeWithInfo is a runtime that does not know the priorities of its pods: Pods gets them from Info.
type runtimeWithInfo struct {
	agent.Runtime
	info      *podinfo.Info
	listTakes atomic.Int64 // how long each call of Pods takes, in nanoseconds
}

// Pods returns the pods without their priorities, enriched with what Info has.
func (r *runtimeWithInfo) Pods(ctx context.Context) ([]*v1.Pod, error) {
	<-times.After(time.Now().Add(time.Duration(r.listTakes.Load())))
	pods, err := r.Runtime.Pods(ctx)
	for i, pod := range pods {
		pods[i] = pod.DeepCopy()
		pods[i].Spec.Priority = nil
		pods[i] = r.info.Enrich(pods[i])
	}
	return pods, err
}

// The agent learns the priority of a pod from the API server, and the shutdown begins before it next lists its pods.
// The drain waits 1 s for a list. Whether the list comes at once or after 1.5 s, the pod must be stopped in the bucket
// of its priority. The priority must also be in the state folder, for an agent that starts during the shutdown, when no
// API server may answer.
func TestAPriorityOfTheAPIServerIsStoredInAShutdown(t *testing.T) {
	for name, listTakes := range map[string]time.Duration{"the list comes at once": 0, "the list comes late": 1500 * time.Millisecond} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				dir := t.TempDir()
				// storedPriority returns the priority that a new agent finds in the state folder.
				storedPriority := func() int32 {
					next, err := podinfo.New(dir, nil)
					require.NoError(t, err)
					return *next.Enrich(podOf("db", 0, "")).Spec.Priority
				}
				info, err := podinfo.New(dir, nil)
				require.NoError(t, err)
				b := newTestbed(t, podOf("db", 1000, "{exitAfterTerm: 3s}"))
				runtime := &runtimeWithInfo{Runtime: b.opts.Runtime, info: info}
				b.opts.Info, b.opts.Runtime = info, runtime
				b.startInBubble()

				// The agent learns the priority, and the shutdown begins.
				info.Record(podinfo.FromAPIServer, []v1.Pod{*podOf("db", 1000, "")})
				runtime.listTakes.Store(int64(listTakes))
				b.host.Announce(source.Event{})
				b.advance(1100 * time.Millisecond) // longer than the drain waits for a list
				require.Equal(t, int32(1000), storedPriority())

				b.advance(10 * time.Second)
				require.Contains(t, b.output(), "ns/db      1000       5s    3s  stopped in time")
				require.Equal(t, int32(1000), storedPriority())
				b.endBySIGTERM()
			})
		})
	}
}

// Without a shutdown, SIGTERM ends the agent at once. During the drain of a pod that takes 3 s, a first SIGTERM ends
// the agent after the drain. A second SIGTERM ends it at once, with an error that names the pod that is still being
// stopped.
func TestSignals(t *testing.T) {
	for name, test := range map[string]struct {
		isDraining bool // the signals arrive 1 s after the shutdown began
		isTwice    bool // there are two signals
		output     string
		err        string // that Run returns
	}{
		"one signal without a shutdown": {output: "SIGTERM: leaving. The agent stops no pod now."},
		"one signal during a drain":     {isDraining: true, output: "A second signal ends the waiting."},
		"two signals during a drain":    {isDraining: true, isTwice: true, output: "no longer waiting for the pods", err: "a second SIGTERM ended the waiting for ns/web"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 3s}"))
				b.startInBubble()
				if test.isDraining {
					b.host.Announce(source.Event{})
					b.advance(time.Second)
				}
				b.signals <- syscall.SIGTERM
				if test.isTwice {
					b.signals <- syscall.SIGTERM
				}
				err := <-b.result
				synctest.Wait()
				require.Contains(t, b.output(), test.output)
				require.NotContains(t, b.output(), "not stopped", "the stop of the pod continues")
				if test.err != "" {
					require.ErrorContains(t, err, test.err)
					return
				}
				require.NoError(t, err)
			})
		})
	}
}

// A shutdown is cancelled while the pod web is being stopped, and another one begins a second later. A signal then ends the
// agent after the drain. web ends before the pod db is told to stop, and with it the cancelled shutdown. The agent must not
// take that for the end of its drain: it must stop db before it leaves.
func TestASignalWaitsForTheShutdownThatFollowsACancelledOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 4s}"), podOf("db", 1000, "{exitAfterTerm: 3s}"))
		b.startInBubble()
		b.host.Announce(source.Event{})
		b.advance(time.Second)
		b.host.Cancel()
		b.advance(time.Second)
		b.host.Announce(source.Event{})
		b.advance(time.Second)
		b.endBySIGTERM()
		require.Contains(t, b.output(), "ns/db                    gone after 3s: stopped in time")
	})
}

// A shutdown is cancelled before any pod is told to stop, because the runtime does not list its pods. A signal then ends the agent at
// once.
func TestASignalAfterACancelledShutdownEndsTheAgent(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t)
		b.opts.Runtime = &failingRuntime{Runtime: b.opts.Runtime}
		b.startInBubble()
		b.host.Announce(source.Event{})
		b.advance(time.Second)
		require.Contains(t, b.status(), "Stopping pods")
		b.host.Cancel()
		b.advance(time.Second)
		b.endBySIGTERM()
	})
}

// failingRuntime fails to list its pods until isUp is set. It always fails to stop a sandbox.
type failingRuntime struct {
	agent.Runtime
	mu   sync.Mutex // guards isUp
	isUp bool
}

// setUp changes isUp.
func (r *failingRuntime) setUp(isUp bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.isUp = isUp
}

// Pods fails until isUp is set.
func (r *failingRuntime) Pods(ctx context.Context) ([]*v1.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.isUp {
		return nil, os.ErrNotExist
	}
	return r.Runtime.Pods(ctx)
}

// StopPodSandbox always fails.
func (r *failingRuntime) StopPodSandbox(context.Context, *v1.Pod) error { return os.ErrInvalid }

// The agent starts before its container runtime. Its status must say that the runtime is missing, until the runtime
// answers. A drain then stops the pod as usual, in time although its sandbox cannot be stopped. Because of the sandbox the runtime
// still lists the pod, so a second shutdown stops the pod again.
func TestARuntimeThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 3s}"))
		runtime := &failingRuntime{Runtime: b.opts.Runtime}
		b.opts.Runtime = runtime
		b.startInBubble()
		require.Contains(t, b.status(), "missing: container runtime: file does not exist")

		// The runtime comes, and a shutdown drains the pod.
		runtime.setUp(true)
		b.advance(5 * time.Second)
		require.NotContains(t, b.status(), "missing")
		b.host.Announce(source.Event{})
		b.advance(10 * time.Second)
		require.Contains(t, b.output(), "ns/web         0       5s    3s  stopped in time")

		// A second shutdown, after a cancellation, stops the pod again.
		b.host.Cancel()
		b.advance(time.Second)
		b.host.Announce(source.Event{})
		b.advance(10 * time.Second)
		require.Equal(t, 2, strings.Count(b.output(), "ns/web                   has 5s to stop\n"), "once in each shutdown")
		b.endBySIGTERM()
	})
}

// A shutdown has stopped all pods, and is cancelled. Another shutdown begins at once, and the runtime cannot list the pods. The
// status must say that pods are being stopped, and a signal must wait for the end of the drain, whose report has the failure.
func TestAShutdownRightAfterACancelledOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t)
		runtime := &failingRuntime{Runtime: b.opts.Runtime, isUp: true}
		b.opts.Runtime = runtime
		b.startInBubble()
		b.host.Announce(source.Event{})
		b.advance(10 * time.Second)
		require.Contains(t, b.status(), "The pods have been stopped")

		runtime.setUp(false)
		b.host.Cancel()
		b.host.Announce(source.Event{})
		b.advance(time.Second)
		require.Contains(t, b.status(), "Stopping pods")
		b.signals <- syscall.SIGTERM
		b.advance(time.Second)
		require.Empty(t, b.result, "the agent waits")
		runtime.setUp(true)
		require.ErrorContains(t, <-b.result, "the list of the pods failed")
	})
}

// A shutdown begins, and a signal arrives at the same moment. The agent must stop web before it leaves.
func TestASignalWaitsForAShutdownThatHasJustBegun(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 3s}"))
		b.startInBubble()
		b.host.Announce(source.Event{})
		synctest.Wait()
		b.endBySIGTERM()
		require.Contains(t, b.output(), "ns/web         0       5s    3s  stopped in time")
	})
}

// countingRuntime counts the commands that preStop hooks run in containers.
type countingRuntime struct {
	agent.Runtime
	commands atomic.Int64
	hangs    bool // the first command runs until its context ends
}

// RunInContainer counts a command and runs it.
func (r *countingRuntime) RunInContainer(ctx context.Context, id string, cmd []string, timeout time.Duration) ([]byte, error) {
	if r.commands.Add(1) == 1 && r.hangs {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return r.Runtime.RunInContainer(ctx, id, cmd, timeout)
}

// Two signals end an agent in the middle of a drain. A second agent resumes the drain, with the same runtime. If the
// pod's hook has run before the first agent ends, the second agent must not run it again. If the end of the first agent
// cancels the hook, the second agent must run it again. A third agent, without a pending shutdown, must remove the
// files that say which hooks have run, so that the next shutdown runs them.
//
// The test is not in a synctest bubble, because the clock of the machine (CLOCK_MONOTONIC) does not follow a bubble's
// clock. The state log has times of the machine's clock, so the second agent would reject the log.
func TestAHookThatHasRunDoesNotRunAgain(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		isCutOff bool  // the first agent ends while the hook runs, rather than after it
		commands int64 // how often both agents together run the hook's command
	}{
		"the hook has run":    {commands: 1},
		"the hook is cut off": {isCutOff: true, commands: 2},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			pod := podOf("web", 0, "{exitAfterTerm: 2s}")
			pod.Spec.Containers[0].Lifecycle = &v1.Lifecycle{PreStop: &v1.LifecycleHandler{Exec: &v1.ExecAction{Command: []string{"flush"}}}}
			pod.Spec.TerminationGracePeriodSeconds = ptr.To(int64(15))
			first := newTestbed(t, pod)
			runtime, dir := &countingRuntime{Runtime: first.opts.Runtime, hangs: test.isCutOff}, t.TempDir()
			hooks := filepath.Join(dir, "kubegrace-node_hooks")
			first.opts.Runtime, first.opts.StateDir = runtime, dir
			first.start()
			first.awaitNotification("READY=1")
			first.host.Announce(source.Event{})
			first.awaitNotification("STATUS=Stopping pods")
			require.Eventually(t, func() bool { // the hook runs, or has run and is recorded
				_, err := os.Stat(hooks)
				isRecorded := err == nil
				wantsRecord := !test.isCutOff
				return runtime.commands.Load() == 1 && isRecorded == wantsRecord
			}, 20*time.Second, 10*time.Millisecond)

			// Two signals end the first agent.
			first.signals <- syscall.SIGTERM
			first.signals <- syscall.SIGTERM
			require.ErrorContains(t, <-first.result, "ended the waiting")
			firstEnded := time.Now()

			// The second agent resumes the drain.
			second := newTestbed(t)
			second.opts.Runtime, second.opts.StateDir = runtime, dir
			second.host.SetPending(&source.Event{})
			second.start()
			second.awaitNotification("STATUS=The pods have been stopped")
			require.Equal(t, test.commands, runtime.commands.Load())
			second.endBySIGTERM()
			report, found, err := shutdown.StoredReport(dir)
			require.NoError(t, err)
			require.True(t, found)
			require.True(t, report.Started.Before(firstEnded), "it is the drain of the first agent")
			require.NotContains(t, strings.Join(report.Errors, "\n"), "is not usable")

			require.DirExists(t, hooks)

			// The third agent finds no shutdown pending.
			third := newTestbed(t)
			third.opts.StateDir = dir
			third.start()
			third.awaitNotification("READY=1")
			require.NoDirExists(t, hooks, "the files that say which hooks have run")
			third.endBySIGTERM()
		})
	}
}

// slowHost is a host that takes 1 s to close a session.
type slowHost struct{ source.Source }

// slowSession is a session of a slowHost.
type slowSession struct{ source.Session }

// Connect returns a session whose Close takes 1 s.
func (h slowHost) Connect(ctx context.Context) (source.Session, error) {
	session, err := h.Source.Connect(ctx)
	return slowSession{session}, err
}

// Close closes the session after 1 s.
func (s slowSession) Close() error {
	<-time.After(time.Second)
	return s.Session.Close()
}

// serveAzure serves the metadata service of Azure until the test ends. It announces that Azure terminates the machine in five minutes,
// or as soon as the agent acknowledges that. acknowledged counts the acknowledgements.
func serveAzure(t *testing.T) (provider *notice.Provider, acknowledged *atomic.Int32) {
	t.Helper()
	ends := time.Now().Add(5 * time.Minute).UTC().Format(http.TimeFormat)
	acknowledged = &atomic.Int32{}
	connections := bufconn.Listen(1 << 12) // not a socket, because a bubble cannot wait for one
	azure := &http.Server{ReadHeaderTimeout: time.Minute, Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method == http.MethodPost:
			acknowledged.Add(1)
		case strings.HasSuffix(r.URL.Path, "/name"):
			_, _ = fmt.Fprint(w, "node-1") // if this fails, the client's request fails
		default:
			_, _ = fmt.Fprintf(w, `{"DocumentIncarnation": 1, "Events": [{"EventId": "A", "EventType": "Terminate",
				"Resources": ["node-1"], "EventStatus": "Scheduled", "NotBefore": %q}]}`, ends)
		}
	})}
	served := make(chan error, 1)
	go func() { served <- azure.Serve(connections) }()
	t.Cleanup(func() {
		require.NoError(t, azure.Close())
		require.ErrorIs(t, <-served, http.ErrServerClosed)
	})
	azureProvider := notice.Azure()
	azureProvider.Dial = func(ctx context.Context, _, _ string) (net.Conn, error) { return connections.DialContext(ctx) }
	return &azureProvider, acknowledged
}

// Azure announces that it terminates the machine in five minutes. The agent drains the pod, and acknowledges the announcement, so that
// Azure need not wait any longer.
func TestACompleteDrainIsAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 3s}"))
		provider, acknowledged := serveAzure(t)
		b.opts.Notice = provider
		b.startInBubble()
		b.advanceUntil("STATUS=The pods have been stopped")
		b.endBySIGTERM()
		require.EqualValues(t, 1, acknowledged.Load())
	})
}

// Azure announces that it terminates the machine, and signals end the agent in the middle of the drain. It must not acknowledge, even if
// its host takes a second to end the session: the pod still runs, and the next agent continues the drain.
func TestAnInterruptedDrainIsNotAcknowledged(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 3s}"))
		provider, acknowledged := serveAzure(t)
		b.opts.Source, b.opts.Notice = slowHost{b.host}, provider
		b.startInBubble()
		b.advanceUntil("STATUS=Stopping pods")
		b.signals <- syscall.SIGTERM
		b.signals <- syscall.SIGTERM
		require.ErrorContains(t, <-b.result, "the waiting for ns/web")
		require.Zero(t, acknowledged.Load())
	})
}

// limitedHost is a host with a limit, which may be 0 or infinite.
type limitedHost struct {
	source.Source
	limit time.Duration
}

// limitedSession is a session of a limitedHost.
type limitedSession struct {
	source.Session
	limit time.Duration
}

// Connect returns a session with the limit.
func (h limitedHost) Connect(ctx context.Context) (source.Session, error) {
	session, err := h.Source.Connect(ctx)
	return limitedSession{session, h.limit}, err
}

// RequestDelay grants the limit.
func (s limitedSession) RequestDelay(context.Context, time.Duration) (time.Duration, error) {
	return s.limit, nil
}

// The plan of the agent has the host's limit. A limit of 0, with which the host does not wait, is shown as 0 and not as
// unknown. If the host has an infinite limit, the plan has none.
func TestThePlanHasTheLimitOfTheHost(t *testing.T) {
	for limit, want := range map[time.Duration]*float64{0: ptr.To(0.0), 10 * time.Second: ptr.To(10.0), math.MaxInt64: nil} {
		t.Run(limit.String(), func(t *testing.T) {
			b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 10ms}"))
			socketPath := filepath.Join(t.TempDir(), "s")
			b.opts.Source = limitedHost{b.host, limit}
			b.opts.Control = func() (net.Listener, error) { return socket.Listen(socketPath) }
			b.start()
			b.awaitNotification("READY=1")
			var answer nodeplan.Document
			require.Eventually(t, func() bool {
				return api.Request(t.Context(), socketPath, http.MethodGet, "/plan", &answer) == nil
			}, 20*time.Second, 10*time.Millisecond)
			if want == nil {
				require.Nil(t, answer.LimitSeconds)
			} else {
				require.InDelta(t, *want, *answer.LimitSeconds, 1e-6)
			}
			b.signals <- syscall.SIGTERM
			require.NoError(t, <-b.result)
		})
	}
}

// POST /drain stops the pod and answers with the report. A second POST /drain answers with the same report. The node
// stays drained until POST /undrain, also if the agent is restarted in between with the same /run. While the node is
// drained, the agent holds no lock.
func TestDrainAndUndrain(t *testing.T) {
	b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 10ms}"))
	socketPath, runDir := filepath.Join(t.TempDir(), "s"), t.TempDir()
	// ask sends a request on the agent's socket.
	ask := func(method, resource string, answer any) error {
		return api.Request(t.Context(), socketPath, method, resource, answer)
	}
	// awaitStatus waits until the agent's status has these values of Held, Drained and ShuttingDown.
	awaitStatus := func(want api.Status) {
		t.Helper()
		require.Eventually(t, func() bool {
			var status api.Status
			err := ask(http.MethodGet, "/status", &status)
			return err == nil && status.Held == want.Held && status.Drained == want.Drained && status.ShuttingDown == want.ShuttingDown
		}, 20*time.Second, 10*time.Millisecond)
	}
	idle, drained := api.Status{Held: true}, api.Status{Drained: true, ShuttingDown: true}
	// start starts an agent that finds in runDir what the previous agent has stored.
	start := func() {
		var err error
		b.opts.Units, err = units.New(runDir, nil)
		require.NoError(t, err)
		b.opts.Control = func() (net.Listener, error) { return socket.Listen(socketPath) }
		b.start()
	}
	start()
	awaitStatus(idle)
	require.ErrorContains(t, ask(http.MethodPost, "/undrain", &api.Meta{}), "this node is not drained")

	// Drain the node. A second request answers with the same report. Then restart the agent: the node stays drained.
	for range 2 {
		var report api.Report
		require.NoError(t, ask(http.MethodPost, "/drain", &report))
		require.Len(t, report.Shutdown.Pods, 1)
		require.Equal(t, "Graceful", report.Shutdown.Pods[0].Outcome)
	}
	awaitStatus(drained)
	b.endBySIGTERM()
	start()
	awaitStatus(drained)

	require.NoError(t, ask(http.MethodPost, "/undrain", &api.Meta{}))
	awaitStatus(idle)
	b.endBySIGTERM()
}

// silentSource is a host that does not answer.
type silentSource struct{}

// Connect waits until ctx ends.
func (silentSource) Connect(ctx context.Context) (source.Session, error) {
	<-ctx.Done()
	return nil, ctx.Err()
}

// The node is drained, and the agent is restarted without a state folder. POST /drain arrives before the manager is ready, which waits
// 2 s for the host. The answer must wait for the drain that the agent continues when it is ready.
func TestADrainWaitsForAnAgentThatStarts(t *testing.T) {
	b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 10ms}"))
	b.opts.Source = silentSource{}
	socketPath, runDir := filepath.Join(t.TempDir(), "s"), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(runDir, units.File), []byte(`{"drained": true}`), 0o600))
	var err error
	b.opts.Units, err = units.New(runDir, nil)
	require.NoError(t, err)
	listener, err := socket.Listen(socketPath) // now, so that the request need not wait for the agent
	require.NoError(t, err)
	b.opts.Control = func() (net.Listener, error) { return listener, nil }
	b.start()
	var report api.Report
	require.NoError(t, api.Request(t.Context(), socketPath, http.MethodPost, "/drain", &report))
	require.Len(t, report.Shutdown.Pods, 1)
	b.endBySIGTERM()
}

// A drain stops the pods, but not the unit that would start them again, because no systemd answers. POST /drain answers with the
// report and the reason.
func TestADrainSaysWhyAUnitWasNotStopped(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent")
	b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 10ms}"))
	socketPath := filepath.Join(t.TempDir(), "s")
	var err error
	b.opts.Units, err = units.New(t.TempDir(), []string{"kubelet.service"})
	require.NoError(t, err)
	b.opts.Control = func() (net.Listener, error) { return socket.Listen(socketPath) }
	b.start()
	b.awaitNotification("READY=1")
	var report api.Report
	require.NoError(t, api.Request(t.Context(), socketPath, http.MethodPost, "/drain", &report))
	require.Equal(t, "Graceful", report.Shutdown.Pods[0].Outcome)
	require.ErrorContains(t, report.Err(), "the pods may be started again: failed to connect to systemd")
	b.endBySIGTERM()
}

// A node was drained, and the unit that was stopped cannot be started again, because no systemd answers. POST /undrain answers
// with the reason.
func TestUndrainSaysWhyAUnitCannotBeStarted(t *testing.T) {
	t.Setenv("DBUS_SYSTEM_BUS_ADDRESS", "unix:path=/nonexistent")
	b := newTestbed(t)
	socketPath, runDir := filepath.Join(t.TempDir(), "s"), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(runDir, units.File), []byte(`{"drained": true, "units": ["kubelet.service"]}`), 0o600))
	var err error
	b.opts.Units, err = units.New(runDir, nil)
	require.NoError(t, err)
	b.opts.Control = func() (net.Listener, error) { return socket.Listen(socketPath) }
	b.start()
	b.awaitNotification("STATUS=The pods have been stopped")
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	err = api.Request(ctx, socketPath, http.MethodPost, "/undrain", &api.Meta{})
	require.ErrorIs(t, err, api.ErrRefused)
	require.ErrorContains(t, err, "failed to connect to systemd")
	b.signals <- syscall.SIGTERM
	require.Error(t, <-b.result, "the unit cannot be started at the end either")
}
