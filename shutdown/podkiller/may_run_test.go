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
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// failingPod is a pod whose kill fails at least once, so that the pod may still run, with its runtime and terminator.
type failingPod struct {
	*testing.T

	rt         *lifecycletest.Runtime
	terminator *lifecycle.Terminator
	pod        *v1.Pod
	ctx        context.Context //nolint:containedctx // with a silent logger
	failures   atomic.Int64    // how many kills have failed
}

// Kills of a pod fail because its runtime fails, and the manager repeats them for 20 s. It must not report that the pod has
// ended before the pod's container has exited. If the runtime recovers in time, the report must say in the end that the pod
// has ended. If the runtime never recovers, the report must not say so.
func TestAPodThatMayRunIsNotReportedAsEnded(t *testing.T) {
	const (
		always       = -1               // all stops
		recoversLate = 15 * time.Second // but before the manager's 20 s are over
	)
	for name, test := range map[string]struct {
		begin func(*failingPod) // starts the container in its situation
		ends  bool              // the runtime recovers in time: the last report must say that the pod has ended
	}{
		"a start that panicked": {begin: func(m *failingPod) {
			m.rt.Start(m.pod, "web", "id", lifecycletest.Script{FailStops: always})
			_ = m.terminator.Start(m.ctx, m.pod, "web", func(context.Context) error { panic("boom") })
		}},
		// The first 12 stops fail.
		"a stop that fails": {begin: func(m *failingPod) { m.start(lifecycletest.Script{FailStops: 12}) }, ends: true},
		"a stop that hangs": {begin: func(m *failingPod) { m.start(lifecycletest.Script{HangStops: always}) }},
		"a runtime that is unavailable": {begin: func(m *failingPod) {
			m.start(lifecycletest.Script{IgnoreTerm: true})
			const fromNow = 0
			m.rt.Away(fromNow, recoversLate)
		}, ends: true},
		"a runtime that cannot list": {begin: func(m *failingPod) {
			m.start(lifecycletest.Script{})
			m.rt.SetLists(lifecycletest.Lists{Err: lifecycletest.ErrAway})
		}},
		"a start that ignores its context": {begin: func(m *failingPod) {
			go m.start(lifecycletest.Script{StartTakes: recoversLate, StartIgnoresContext: true})
		}, ends: true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := &failingPod{T: t, rt: lifecycletest.NewRuntime(), pod: webPod(5)}
				m.pod.Spec.Containers = []v1.Container{{Name: "web"}}
				m.ctx = klog.NewContext(t.Context(), klog.Logger{})
				m.drain(test.begin, test.ends)
			})
		})
	}
}

// start starts the pod's container with the terminator, so that the terminator knows of the start when the pod is killed.
func (m *failingPod) start(script lifecycletest.Script) {
	_ = m.terminator.Start(m.ctx, m.pod, "web", func(ctx context.Context) error { return m.rt.StartContainer(ctx, m.pod, "web", "id", script) })
}

// drain lets a manager drain the pod, after begin has started its container. Until the lock is released it
// checks that neither the report nor the reporter is told of the pod's end before its container has exited. ends says
// whether the last report must say that the pod has ended.
func (m *failingPod) drain(begin func(*failingPod), ends bool) {
	terminator, err := lifecycle.NewTerminator(lifecycle.TerminatorOptions{Runtime: m.rt, GiveUpAfter: time.Second})
	require.NoError(m, err)
	m.terminator = terminator
	killer := podkiller.New(terminator, podkiller.Options{})
	host, reporter := &shutdowntest.Host{}, &shutdowntest.Reporter{}
	manager, err := shutdown.NewManager(shutdown.Options{
		Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 20 * time.Second}},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{m.pod} }, nil), Source: host, Reporter: reporter,
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
	host.Announce(source.Event{Kind: source.KindPoweroff})
	for released := false; !released; _, released = host.Released() {
		<-time.After(100 * time.Millisecond)
		synctest.Wait()
		if report, ok := manager.LastReport(); ok && len(report.Pods) > 0 && !report.Pods[0].Ended.IsZero() {
			m.requireExitBy(report.Pods[0].Ended)
		}
		for _, flushed := range reporter.Flushed() {
			m.requireExitBy(flushed.At)
		}
	}
	require.Positive(m, m.failures.Load(), "a kill failed")
	report, ok := manager.LastReport()
	require.True(m, ok)
	require.Equal(m, ends, !report.Pods[0].Ended.IsZero(), "%+v", report)
	require.Equal(m, ends, report.Err() == nil, "%v", report.Err())
	stop()
	require.NoError(m, <-ended)
	require.NoError(m, terminator.Close(m.ctx))
}

// requireExitBy requires that the container had exited when the pod was reported as ended.
func (m *failingPod) requireExitBy(reported time.Time) {
	m.Helper()
	exits := m.rt.Exits()
	require.NotEmpty(m, exits, "the pod was reported as ended")
	require.False(m, reported.Before(exits[0].At))
}
