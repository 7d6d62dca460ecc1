package agent_test

import (
	"bytes"
	"context"
	"os"
	"strings"
	"sync"
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

// bench is one agent in a bubble, with what surrounds it.
type bench struct {
	t       *testing.T
	opts    agent.Options
	gate    featuregate.MutableVersionedFeatureGate
	runtime *embedded.Runtime
	signals chan os.Signal
	told    []string // to the service manager
	out     bytes.Buffer
	outMu   sync.Mutex // guards out
	ended   chan error
}

// inBubble runs a test with an agent that has no pods yet, is configured for two
// buckets of 20 s and 10 s, and has no host.
func inBubble(t *testing.T, test func(*testing.T, *bench)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		gate := featuregate.NewFeatureGate()
		require.NoError(t, lifecycle.AddFeatureGates(gate))
		require.NoError(t, shutdown.AddFeatureGates(gate))
		b := &bench{t: t, gate: gate, runtime: embedded.New(), signals: make(chan os.Signal), ended: make(chan error, 1)}
		b.opts = agent.Options{
			Config: plan.Config{ShutdownGracePeriodByPodPriority: []plan.PodPriorityGracePeriod{
				{Priority: 0, ShutdownGracePeriodSeconds: 20},
				{Priority: 1000, ShutdownGracePeriodSeconds: 10},
			}},
			Runtime: b.runtime,
			Signals: b.signals,
			Gates:   gate,
			View:    view.New(b, nil),
			Notify:  func(state string) error { b.told = append(b.told, state); return nil },
		}
		test(t, b)
	})
}

// Write collects the output.
func (b *bench) Write(p []byte) (int, error) {
	b.outMu.Lock()
	defer b.outMu.Unlock()
	return b.out.Write(p)
}

func (b *bench) output() string {
	b.outMu.Lock()
	defer b.outMu.Unlock()
	return b.out.String()
}

// pod adds a pod of one container, app.
func (b *bench) pod(name string, priority int32, script string) *v1.Pod {
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

// run starts the agent and waits until all that can happen at once has happened.
func (b *bench) run() {
	b.t.Helper()
	a, err := agent.New(b.opts)
	require.NoError(b.t, err)
	ctx, cancel := context.WithCancel(klog.NewContext(b.t.Context(), klog.Logger{}))
	b.t.Cleanup(cancel)
	go func() { b.ended <- a.Run(ctx) }()
	b.pass(0)
}

// pass lets so much time go by.
func (b *bench) pass(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// running tells whether the agent has not ended.
func (b *bench) running() bool {
	synctest.Wait()
	return len(b.ended) == 0
}

// end waits for the end of the agent and gives its error.
func (b *bench) end() error {
	b.t.Helper()
	select {
	case err := <-b.ended:
		return err
	case <-time.After(time.Hour):
		require.FailNow(b.t, "the agent does not end", b.output())
		return nil
	}
}

// order are the containers that were stopped, in the order of their stop.
func (b *bench) order() string {
	var ids []string
	for _, stop := range b.runtime.Stops() {
		ids = append(ids, stop.ID)
	}
	return strings.Join(ids, " ")
}
