package agent_test

import (
	"bytes"
	"context"
	"os"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/agent"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/embedded"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// testbed is an agent on a host that a test shuts down, with pods that are played.
type testbed struct {
	t        *testing.T
	opts     agent.Options
	host     *shutdowntest.Host
	signals  chan os.Signal
	result   chan error
	mu       sync.Mutex // guards what follows
	out      bytes.Buffer
	notified []string
}

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

// Write receives the output of the agent.
func (b *testbed) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.Write(p)
}

func (b *testbed) notify(state string) error {
	b.mu.Lock()
	defer b.mu.Unlock()
	b.notified = append(b.notified, state)
	return nil
}

func (b *testbed) output() string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.out.String()
}

func (b *testbed) states() []string {
	b.mu.Lock()
	defer b.mu.Unlock()
	return append([]string(nil), b.notified...)
}

// status returns what the service manager shows.
func (b *testbed) status() string {
	states := slices.DeleteFunc(b.states(), func(state string) bool { return !strings.HasPrefix(state, "STATUS=") })
	return states[len(states)-1]
}

// start starts the agent.
func (b *testbed) start() {
	b.t.Helper()
	a, err := agent.New(b.opts)
	require.NoError(b.t, err)
	go func() { b.result <- a.Run(klog.NewContext(b.t.Context(), klog.Logger{})) }()
}

// run starts the agent in a bubble, and lets a second pass.
func (b *testbed) run() {
	b.t.Helper()
	b.start()
	b.advance(time.Second)
}

func (b *testbed) advance(d time.Duration) {
	<-time.After(d) // in a bubble
	synctest.Wait()
}

// podOf returns a pod with one container, app.
func podOf(name string, priority int32, script string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: name, UID: types.UID(name), Annotations: map[string]string{embedded.ScriptPrefix + "app": script}},
		Spec:       v1.PodSpec{Priority: &priority, TerminationGracePeriodSeconds: ptr.To(int64(5)), Containers: []v1.Container{{Name: "app"}}},
	}
}

func TestTheHostIsHeldAndItsPodsDrainedInOrder(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 2s}"), podOf("db", 1000, "{exitAfterTerm: 1s}"))
		b.run()
		require.Contains(t, b.states(), "READY=1")
		require.Contains(t, b.output(), "This machine's shutdown is held back for up to ")
		b.host.Announce(source.Event{Kind: source.KindReboot})
		b.advance(10 * time.Second)
		require.Contains(t, b.output(), "ns/web                   gone after 2s: stopped in time")
		require.Contains(t, b.output(), "ns/db                    gone after 1s: stopped in time")
		require.Contains(t, b.states(), "STATUS=The pods have been stopped")
		require.Zero(t, b.host.Held())
		b.signals <- syscall.SIGTERM
		require.NoError(t, <-b.result)
	})
}

func TestSignals(t *testing.T) {
	for name, test := range map[string]struct {
		during bool
		twice  bool
		want   string
		err    string
	}{
		"outside a shutdown":  {want: "SIGTERM: leaving. The agent stops no pod now."},
		"once in a drain":     {during: true, want: "A second signal ends the waiting."},
		"a second in a drain": {during: true, twice: true, want: "no longer waiting for the pods", err: "a second SIGTERM ended the waiting for ns/web"},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 3s}"))
				b.run()
				if test.during {
					b.host.Announce(source.Event{})
					b.advance(time.Second)
				}
				b.signals <- syscall.SIGTERM
				if test.twice {
					b.signals <- syscall.SIGTERM
				}
				err := <-b.result
				require.Contains(t, b.output(), test.want)
				if test.err != "" {
					require.ErrorContains(t, err, test.err)
					return
				}
				require.NoError(t, err)
			})
		})
	}
}

// A cancelled shutdown leaves what was not told to stop, and the next one begins anew.
func TestAShutdownAfterACancelledOne(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 3s}"), podOf("db", 1000, ""))
		b.run()
		b.host.Announce(source.Event{})
		b.advance(time.Second)
		b.host.Cancel()
		b.advance(10 * time.Second)
		require.Contains(t, b.output(), "and was called off after ")
		b.host.Announce(source.Event{})
		b.advance(10 * time.Second)
		require.Contains(t, b.output(), "Shutting down 1 pod in 1 bucket")
		b.signals <- os.Interrupt
		require.NoError(t, <-b.result)
	})
}

// failingRuntime does not list its pods until it may, and cannot stop sandboxes.
type failingRuntime struct {
	agent.Runtime
	mu    sync.Mutex
	lists bool
}

func (r *failingRuntime) Pods(ctx context.Context) ([]*v1.Pod, error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if !r.lists {
		return nil, os.ErrNotExist
	}
	return r.Runtime.Pods(ctx)
}

func (r *failingRuntime) StopPodSandbox(context.Context, *v1.Pod) error { return os.ErrInvalid }

// A runtime that is not there is said, and used once it is. A sandbox that cannot be stopped does not
// keep its pod from having ended.
func TestARuntimeThatComesLate(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		b := newTestbed(t, podOf("web", 0, "{exitAfterTerm: 3s}"))
		runtime := &failingRuntime{Runtime: b.opts.Runtime}
		b.opts.Runtime = runtime
		b.run()
		require.Contains(t, b.status(), "missing: container runtime: file does not exist")
		runtime.mu.Lock()
		runtime.lists = true
		runtime.mu.Unlock()
		b.advance(5 * time.Second)
		require.NotContains(t, b.status(), "missing")
		b.host.Announce(source.Event{})
		b.advance(10 * time.Second)
		require.Contains(t, b.output(), "ns/web         0       5s    3s  stopped in time")
		b.signals <- syscall.SIGTERM
		require.NoError(t, <-b.result)
	})
}
