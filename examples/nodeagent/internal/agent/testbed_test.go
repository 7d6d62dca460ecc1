package agent_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/component-base/featuregate"
	"k8s.io/klog/v2"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/agent"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/embedded"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// testbed is an agent in a synctest bubble, with its runtime and signals. Tests change opts
// before they call run.
type testbed struct {
	t        *testing.T
	opts     agent.Options
	gate     featuregate.MutableVersionedFeatureGate
	runtime  *embedded.Runtime
	signals  chan os.Signal
	notified []string // what the service manager was sent
	out      bytes.Buffer
	outMu    sync.Mutex // guards out
	result   chan error // of Run
}

// inBubble runs a test with an agent that has no pods, two buckets of 20 s and 10 s, and no
// host: SIGTERM starts its shutdown.
func inBubble(t *testing.T, test func(*testing.T, *testbed)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		gate := featuregate.NewFeatureGate()
		require.NoError(t, lifecycle.AddFeatureGates(gate))
		require.NoError(t, shutdown.AddFeatureGates(gate))
		b := &testbed{t: t, gate: gate, runtime: embedded.New(), signals: make(chan os.Signal), result: make(chan error, 1)}
		b.opts = agent.Options{
			Config: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
				{Priority: 0, ShutdownGracePeriodSeconds: 20},
				{Priority: 1000, ShutdownGracePeriodSeconds: 10},
			}},
			Runtime: b.runtime,
			Signals: b.signals,
			Gates:   gate,
			View:    view.New(b, nil),
			Notify:  func(state string) error { b.notified = append(b.notified, state); return nil },
		}
		test(t, b)
	})
}

// Write receives the output of the agent.
func (b *testbed) Write(p []byte) (int, error) {
	b.outMu.Lock()
	defer b.outMu.Unlock()
	return b.out.Write(p)
}

func (b *testbed) output() string {
	b.outMu.Lock()
	defer b.outMu.Unlock()
	return b.out.String()
}

// addPod adds a pod with one container, app, and returns it for changes.
func (b *testbed) addPod(name string, priority int32, script string) *v1.Pod {
	pod := &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "ns", Name: name, UID: types.UID(name),
			Annotations: map[string]string{embedded.ScriptPrefix + "app": script},
		},
		Spec: v1.PodSpec{
			Priority:                      &priority,
			TerminationGracePeriodSeconds: ptr.To(int64(5)),
			Containers:                    []v1.Container{{Name: "app"}},
		},
	}
	b.opts.Pods = append(b.opts.Pods, pod)
	return pod
}

// run starts the agent and waits until all of its goroutines are blocked.
func (b *testbed) run() {
	b.t.Helper()
	a, err := agent.New(b.opts)
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(klog.NewContext(b.t.Context(), klog.Logger{}))
	b.t.Cleanup(cancel)
	go func() { b.result <- a.Run(ctx) }()
	b.advance(0)
}

// advance lets time pass, and waits until all goroutines are blocked again.
func (b *testbed) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// running reports whether the agent has not ended.
func (b *testbed) running() bool {
	synctest.Wait()
	return len(b.result) == 0
}

// terminate sends SIGTERM, waits for the end of the agent and returns its error.
func (b *testbed) terminate() error {
	b.t.Helper()
	b.signals <- syscall.SIGTERM
	return b.waitEnd()
}

// waitEnd waits for the end of the agent and returns its error.
func (b *testbed) waitEnd() error {
	b.t.Helper()
	select {
	case err := <-b.result:
		return err
	case <-time.After(time.Hour):
		require.FailNow(b.t, "the agent does not end", b.output())
		return nil
	}
}

// stopOrder returns the IDs of the containers that were stopped, in order, as in
// "web/app db/app".
func (b *testbed) stopOrder() string {
	var ids []string
	for _, stop := range b.runtime.Stops() {
		ids = append(ids, stop.ID)
	}
	return strings.Join(ids, " ")
}
