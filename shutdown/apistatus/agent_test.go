//go:build go1.25

package apistatus_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// agent is a manager with a reporter, a fake host and a scripted killer. Its schedule gives
// 10 s to critical pods and 20 s to the others.
type agent struct {
	t       testing.TB
	opts    shutdown.Options
	host    *shutdowntest.Host
	killer  *shutdowntest.Killer
	pods    []*v1.Pod
	manager *shutdown.Manager
	ended   chan error         // gets the error of Run
	stop    context.CancelFunc // ends the context of Run
	tick    time.Duration      // the interval in which awaitRelease checks
}

// newAgent returns an agent with a reporter on a node with these pods. Its manager is not running yet.
func newAgent(t testing.TB, reporter shutdown.Reporter, pods ...*v1.Pod) *agent {
	a := &agent{t: t, host: &shutdowntest.Host{}, killer: &shutdowntest.Killer{}, pods: pods, tick: time.Millisecond}
	a.opts = shutdown.Options{
		Config: plan.Config{
			ShutdownGracePeriod:             metav1.Duration{Duration: 30 * time.Second},
			ShutdownGracePeriodCriticalPods: metav1.Duration{Duration: 10 * time.Second},
		},
		ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return a.pods }, nil),
		Killer:   a.killer,
		Source:   a.host,
		Reporter: reporter,
	}
	t.Cleanup(func() { require.NoError(t, a.host.Err()) })
	return a
}

// run starts the manager and waits until it is ready.
func (a *agent) run() {
	a.t.Helper()
	manager, err := shutdown.NewManager(a.opts)
	require.NoError(a.t, err)
	ctx, stop := context.WithCancel(a.t.Context())
	a.manager, a.stop, a.ended = manager, stop, make(chan error, 1)
	go func() { a.ended <- manager.Run(ctx) }()
	<-manager.Ready()
}

// end stops the manager and ends the kills that hang. It requires that no drain was in progress.
func (a *agent) end() {
	a.t.Helper()
	a.stop()
	a.killer.Release()
	require.NoError(a.t, <-a.ended)
}

// interrupt stops the manager like end, but during a drain: Run must return ErrInterrupted.
func (a *agent) interrupt() {
	a.t.Helper()
	a.stop()
	a.killer.Release()
	require.ErrorIs(a.t, <-a.ended, shutdown.ErrInterrupted)
}

// shutDown makes the host announce a shutdown, waits until the inhibitor lock is released, and returns
// the report.
func (a *agent) shutDown(kind source.Kind) shutdown.Report {
	a.t.Helper()
	a.host.Announce(source.Event{Kind: kind})
	return a.awaitRelease()
}

// awaitRelease waits until the drain has ended and the inhibitor lock is released, and returns the report.
func (a *agent) awaitRelease() shutdown.Report {
	a.t.Helper()
	ticker := time.NewTicker(a.tick)
	defer ticker.Stop()
	for range ticker.C {
		report, ok := a.manager.LastReport()
		hasEnded := ok && !report.Ended.IsZero()
		isReleased := a.opts.Source == nil || a.host.Held() == 0 // without a source there is no lock
		if hasEnded && isReleased {
			return report
		}
	}
	return shutdown.Report{} // not reached: the ticker never ends
}

// unflushedNames returns the names of the pods whose final statuses were not acknowledged.
func unflushedNames(report shutdown.Report) []string {
	var names []string
	for _, pod := range report.Pods {
		if pod.Unflushed {
			names = append(names, pod.Name)
		}
	}
	return names
}

// workload returns a running pod with a grace period and a priority.
func workload(name string, priority int32, grace int64) *v1.Pod {
	pod := running(name)
	pod.Spec.Priority, pod.Spec.TerminationGracePeriodSeconds = &priority, &grace
	return pod
}

// critical is the lowest priority of critical pods.
const critical int32 = 2_000_000_000

// inBubble runs a test in a synctest bubble, with a fake cluster of one node and these pods, and an agent that is not
// running yet.
func inBubble(t *testing.T, pods []*v1.Pod, test func(*testing.T, *cluster, *agent)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		objects := []runtime.Object{nodeOf(ready)}
		for _, pod := range pods {
			objects = append(objects, pod)
		}
		c := newCluster(objects...)
		a := newAgent(t, c.reporter(t), pods...)
		a.tick = time.Second
		test(t, c, a)
	})
}

// advance advances the time of the bubble and waits until all goroutines are blocked.
func advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}
