//go:build go1.25

package podkiller_test

import (
	"context"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// mayRun is a manager over a terminator, and a pod of which it may once not be known whether it
// runs.
type mayRun struct {
	*testing.T

	rt       *lifecycletest.Runtime
	life     *lifecycle.Pod
	pod      *v1.Pod
	ctx      context.Context //nolint:containedctx // with a silent logger
	unknown  bool            // the agent has lost it
	failures atomic.Int64    // answers of the killer that say that the pod may run
}

// status shows the container only when it has ended: until then the agent does not know of it.
func (m *mayRun) status(context.Context, *v1.Pod) *v1.PodStatus {
	if !m.unknown {
		return nil
	}
	status := v1.ContainerStatus{Name: "web", State: v1.ContainerState{Waiting: &v1.ContainerStateWaiting{}}}
	if code, exited := m.rt.ExitCode("id"); exited {
		status.State = v1.ContainerState{Terminated: &v1.ContainerStateTerminated{ExitCode: code, FinishedAt: metav1.Now()}}
	}
	return &v1.PodStatus{Phase: v1.PodRunning, ContainerStatuses: []v1.ContainerStatus{status}}
}

// A manager whose killer has said once that the pod may run does not report that it has ended
// before the runtime says so, however often the killer is asked.
func TestAPodThatMayRunIsNotReportedAsEnded(t *testing.T) {
	for name, test := range map[string]struct {
		begin func(*mayRun)
		ends  bool
		lost  bool // the agent has lost it
	}{
		"a start that panicked":             {func(m *mayRun) { m.startUnknown(lifecycletest.Script{}, panicking) }, false, true},
		"a start that panicked, and an end": {func(m *mayRun) { m.startUnknown(lifecycletest.Script{ExitAfter: 12500 * time.Millisecond}, panicking) }, true, true},
		"a start that was cut":              {func(m *mayRun) { go m.startUnknown(lifecycletest.Script{}, cut) }, false, true},
		"a start that was cut, and an end":  {func(m *mayRun) { go m.startUnknown(lifecycletest.Script{ExitAfter: 12500 * time.Millisecond}, cut) }, true, true},
		"a stop that fails":                 {func(m *mayRun) { m.start(lifecycletest.Script{FailStops: 12}) }, true, false},
		"a stop that hangs":                 {func(m *mayRun) { m.start(lifecycletest.Script{HangStops: -1}) }, false, false},
		"a runtime that is away": {func(m *mayRun) {
			m.start(lifecycletest.Script{IgnoreTerm: true})
			m.rt.Away(0, 15*time.Second)
		}, true, false},
		"a start that goes on": {func(m *mayRun) {
			go m.start(lifecycletest.Script{StartTakes: 16 * time.Second, StartDeaf: true})
		}, true, false},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &mayRun{T: t, unknown: test.lost, rt: lifecycletest.NewRuntime(), pod: shutdowntest.Pod("web", 0, 5)}
				m.pod.Spec.Containers = []v1.Container{{Name: "web"}}
				m.ctx = klog.NewContext(t.Context(), klog.Logger{})
				m.drain(test.begin, test.ends)
			})
		})
	}
}

func panicking(context.Context) (string, error) { panic("boom") }

func cut(ctx context.Context) (string, error) { <-ctx.Done(); return "", context.Cause(ctx) }

// startUnknown is a start of which it is not known whether it has started a container. It has.
func (m *mayRun) startUnknown(script lifecycletest.Script, start func(context.Context) (string, error)) {
	m.rt.Start("id", script)
	_ = m.life.Start(m.ctx, "web", start)
}

func (m *mayRun) start(script lifecycletest.Script) {
	_ = m.life.Start(m.ctx, "web", func(ctx context.Context) (string, error) { return m.rt.StartContainer(ctx, "id", script) })
}

func (m *mayRun) drain(begin func(*mayRun), ends bool) {
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: m.rt, GiveUp: time.Second})
	require.NoError(m, err)
	m.life = terminator.Pod(m.pod)
	killer := podkiller.New(terminator, podkiller.Options{Status: m.status})
	host, reporter := &shutdowntest.Host{}, &shutdowntest.Reporter{}
	manager, err := shutdown.NewManager(shutdown.Options{
		Config: plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 20 * time.Second}},
		Pods:   shutdown.PodsFunc(func() []*v1.Pod { return []*v1.Pod{m.pod} }), Source: host, Reporter: reporter,
		Killer: shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			result, err := killer.KillPod(ctx, pod, req)
			if err != nil {
				m.failures.Add(1)
			}
			return result, err
		}),
	})
	require.NoError(m, err)
	ctx, stop := context.WithCancel(m.ctx)
	ended := make(chan error, 1)
	go func() { ended <- manager.Run(ctx) }()
	<-manager.Ready()
	begin(m)
	synctest.Wait() // a start has begun
	host.Announce(shutdown.Event{Kind: shutdown.KindPoweroff})
	for released := false; !released; _, released = host.Released() {
		<-time.After(100 * time.Millisecond)
		synctest.Wait()
		if report, ok := manager.LastReport(); ok && len(report.Pods) > 0 && !report.Pods[0].Ended.IsZero() {
			m.requireExit(report.Pods[0].Ended)
		}
		for _, flushed := range reporter.Flushed() {
			m.requireExit(flushed.At)
		}
	}
	require.Positive(m, m.failures.Load(), "the killer has said that it may run")
	report, ok := manager.LastReport()
	require.True(m, ok)
	require.Equal(m, ends, !report.Pods[0].Ended.IsZero(), "%+v", report)
	require.Equal(m, ends, report.Err() == nil, "%v", report.Err())
	stop()
	require.NoError(m, <-ended)
	require.NoError(m, terminator.Close(m.ctx))
}

// requireExit requires that the container had exited at a time.
func (m *mayRun) requireExit(at time.Time) {
	m.Helper()
	exits := m.rt.Exits()
	require.NotEmpty(m, exits, "it was said to have ended")
	require.False(m, at.Before(exits[0].At))
}
