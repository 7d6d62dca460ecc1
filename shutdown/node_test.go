//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// node is a node whose manager runs in a synctest bubble, with a fake host and killer. The test changes opts
// before run.
type node struct {
	t      *testing.T
	opts   shutdown.Options
	host   *shutdowntest.Host
	killer *shutdowntest.Killer
	events *recorder
	m      *shutdown.Manager     // the newest manager
	steps  shutdown.StepRecorder // records the steps of all managers of the node, for package judge
	ended  chan error            // gets the error of Run
	stop   context.CancelFunc    // ends the context of Run; nil: no manager runs
	log    logLines

	mu   sync.Mutex // guards pods
	pods []*v1.Pod
}

// inBubble runs a test in a synctest bubble, on a node with these pods. The schedule gives 20 s to pods and
// then 10 s to critical ones. Without other steps the manager requests a delay of 32.5 s: the 30 s, 2 s for containers
// that have used up their grace period, and a margin of 500 ms. At the end no lock may be held, and no promise of
// judge.Node may be broken.
func inBubble(t *testing.T, pods []*v1.Pod, test func(t *testing.T, n *node)) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, pods)
		t.Cleanup(func() {
			n.end()
			require.NoError(t, n.host.Err())
			n.judge()
		})
		test(t, n)
	})
}

// subtestInBubble runs a subtest as inBubble runs a test.
func subtestInBubble(t *testing.T, name string, pods []*v1.Pod, test func(t *testing.T, n *node)) {
	t.Helper()
	t.Run(name, func(t *testing.T) { inBubble(t, pods, test) })
}

// inBubbleWithState runs a test in a bubble, with a node that has an empty state folder. The test starts the manager
// with runOnBoot(thisBoot).
func inBubbleWithState(t *testing.T, pods []*v1.Pod, test func(t *testing.T, n *node, thisBoot *boot)) {
	t.Helper()
	dir := t.TempDir() // outside the bubble, so that it is removed after the manager has ended
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.opts.StateDir = dir
		test(t, n, &boot{id: "one", began: time.Now()})
	})
}

// newNode returns a node. The test must end its manager.
func newNode(t *testing.T, pods []*v1.Pod) *node {
	t.Helper()
	n := &node{t: t, host: &shutdowntest.Host{}, killer: &shutdowntest.Killer{}, events: &recorder{}, log: newLogLines(), pods: pods}
	n.opts = shutdown.Options{
		Config:   config(30*time.Second, 10*time.Second),
		ListPods: shutdown.ListPodsFunc(n.currentPods, nil),
		Killer:   n.killer,
		Source:   n.host,
		Events:   n.events,
		Node:     &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: "node"}},
	}
	return n
}

// run starts the manager and waits until it is ready.
func (n *node) run() {
	n.t.Helper()
	m, err := shutdown.NewManager(n.opts)
	require.NoError(n.t, err)
	n.start(m)
	<-m.Ready()
	synctest.Wait()
}

// newManager makes the node's manager, but does not run it.
func (n *node) newManager() {
	n.t.Helper()
	var err error
	n.m, err = shutdown.NewManager(n.opts)
	require.NoError(n.t, err)
}

// start runs a manager, and does not wait until it is ready.
func (n *node) start(m *shutdown.Manager) {
	ctx, stop := context.WithCancel(n.t.Context())
	ctx = klog.NewContext(ctx, n.log.Logger)
	m.RecordSteps(&n.steps)
	n.m, n.stop, n.ended = m, stop, make(chan error, 1)
	go func() { n.ended <- m.Run(ctx) }()
}

// startOtherAgent starts another agent, without pods, with the state folder of n, on the same boot. It does not wait until the
// agent is ready.
func (n *node) startOtherAgent(thisBoot *boot) *node {
	n.t.Helper()
	other := newNode(n.t, nil)
	other.opts.StateDir = n.opts.StateDir
	m, err := shutdown.NewManagerOn(other.opts, thisBoot.sinceBoot)
	require.NoError(n.t, err)
	other.start(m)
	return other
}

// end ends Run if it is under way. It lets kills that hang return, and requires that no lock is held after Run.
func (n *node) end() {
	n.t.Helper()
	if n.stop == nil {
		return
	}
	n.stop()
	n.stop = nil
	n.killer.Release()
	requireEnded(n.t, <-n.ended)
	require.Zero(n.t, n.host.Held(), "locks after Run")
}

// stopRun ends the context of Run, and returns the error of Run.
func (n *node) stopRun() error {
	n.stop()
	n.stop = nil
	return <-n.ended
}

// replaceKiller gives the next manager a killer that has not killed any pod yet.
func (n *node) replaceKiller() {
	n.killer = &shutdowntest.Killer{Default: n.killer.Default}
	n.opts.Killer = n.killer
}

// judge requires that the recorded steps of all managers of the node break no promise of package judge.
func (n *node) judge() {
	n.t.Helper()
	if broken := judge.Node(&n.steps.Record.NodeRecord); len(broken) > 0 {
		n.t.Errorf("broken invariants:\n%s\n\n%s", strings.Join(broken, "\n"), n.steps.Record.Story())
	}
}

// requireEnded requires that Run has returned nil or ErrInterrupted.
func requireEnded(t *testing.T, err error) {
	t.Helper()
	if !errors.Is(err, shutdown.ErrInterrupted) {
		require.NoError(t, err)
	}
}

// advance advances the clock of the bubble, then waits until all goroutines are blocked.
func (n *node) advance(d time.Duration) {
	<-time.After(d)
	synctest.Wait()
}

// announce makes the host announce a shutdown without a deadline.
func (n *node) announce() {
	n.host.Announce(source.Event{})
	synctest.Wait()
}

// currentPods returns the pods of the node.
func (n *node) currentPods() []*v1.Pod {
	n.mu.Lock()
	defer n.mu.Unlock()
	return slices.Clone(n.pods)
}

// podsNotEnded implements [shutdown.Options].ListPods. It leaves out the pods whose kills have returned.
func (n *node) podsNotEnded(context.Context) ([]*v1.Pod, error) {
	return slices.DeleteFunc(n.currentPods(), func(pod *v1.Pod) bool {
		kill, isKilled := n.killer.Kill(pod.Name)
		return isKilled && !kill.Ended.IsZero()
	}), nil
}

// setPods replaces the pods of the node.
func (n *node) setPods(pods ...*v1.Pod) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.pods = pods
}

// grantedSeconds returns the grace period of each pod's last kill, by the names of the pods.
func (n *node) grantedSeconds() map[string]int64 {
	granted := map[string]int64{}
	for _, kill := range n.killer.Kills() {
		granted[kill.Pod.Name] = *kill.Request.GracePeriodSeconds
	}
	return granted
}

// killedAfter returns the time from since to the start of the kill of a pod.
func (n *node) killedAfter(name string, since time.Time) time.Duration {
	n.t.Helper()
	kill, ok := n.killer.Kill(name)
	require.True(n.t, ok, "%s was not killed", name)
	return kill.Started.Sub(since)
}

// releasedAfter returns the time from since to the release of the lock.
func (n *node) releasedAfter(since time.Time) time.Duration {
	n.t.Helper()
	released, ok := n.host.Released()
	require.True(n.t, ok, "the lock is still held")
	return released.Sub(since)
}

// lastReport returns the last report. It fails the test if there is none.
func (n *node) lastReport() shutdown.Report {
	n.t.Helper()
	report, ok := n.m.LastReport()
	require.True(n.t, ok, "no report")
	return report
}

// outcomes returns the outcomes in a report, by the names of the pods.
func outcomes(report shutdown.Report) map[string]string {
	all := map[string]string{}
	for _, pod := range report.Pods {
		all[pod.Name] = pod.Outcome
	}
	return all
}

// podReport returns the entry of a pod in a report.
func podReport(t *testing.T, r shutdown.Report, name string) shutdown.PodReport {
	t.Helper()
	i := slices.Index(names(r), name)
	require.GreaterOrEqual(t, i, 0, "the report has no pod %s", name)
	return r.Pods[i]
}

// recorder records events.
type recorder struct {
	mu     sync.Mutex
	events []string
}

// Event records an event as "TYPE REASON MESSAGE".
func (r *recorder) Event(_ runtime.Object, eventtype, reason, message string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, eventtype+" "+reason+" "+message)
}

// all returns the events so far.
func (r *recorder) all() []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.events)
}

// admits reports whether the manager admits a pod.
func (n *node) admits(pod *v1.Pod) bool { return n.m.Admit(pod).Admit }

// admitsNewPods reports whether the manager admits a pod that it does not know.
func (n *node) admitsNewPods() bool { return n.m.Admit(nil).Admit }

// endedAfter returns the time from since to the end of the kill of a pod.
func (n *node) endedAfter(name string, since time.Time) time.Duration {
	n.t.Helper()
	kill, ok := n.killer.Kill(name)
	require.True(n.t, ok && !kill.Ended.IsZero(), "%s has not ended", name)
	return kill.Ended.Sub(since)
}

// storedReport returns the report that is stored in the state folder. It fails the test if there is none.
func (n *node) storedReport() shutdown.Report {
	n.t.Helper()
	report, found, err := shutdown.StoredReport(n.opts.StateDir)
	require.NoError(n.t, err)
	require.True(n.t, found)
	return report
}

// announcements returns the node states that were published after the first one. The first one must be zero: it reverts the
// state that a previous agent may have published.
func announcements(t *testing.T, reporter *shutdowntest.Reporter) []shutdown.NodeState {
	t.Helper()
	published := reporter.Published()
	require.NotEmpty(t, published)
	require.Equal(t, shutdown.NodeState{}, published[0])
	return published[1:]
}

// metricValue returns the value of the gauge or counter with a name.
func metricValue(t *testing.T, reg prometheus.Gatherer, name string) float64 {
	t.Helper()
	families, err := reg.Gather()
	require.NoError(t, err)
	for _, family := range families {
		if family.GetName() == name {
			metric := family.GetMetric()[0]
			return metric.GetGauge().GetValue() + metric.GetCounter().GetValue()
		}
	}
	t.Fatalf("%s is not there", name)
	return 0
}
