//go:build go1.25

package shutdown_test

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// misbehaviours has an entry for each call of the manager to embedder code. The entry changes the options of a node so that the
// embedder code first calls misbehave.
var misbehaviours = map[string]func(n *node, misbehave func()){
	"Options.ListPods": func(n *node, misbehave func()) {
		n.opts.ListPods = shutdown.ListPodsFunc(func() []*v1.Pod { misbehave(); return n.currentPods() }, nil)
	},
	"Options.Plan.PriorityOf": func(n *node, misbehave func()) {
		n.pods[0].Spec.Priority, n.pods[0].Spec.PriorityClassName = nil, "gold"
		n.opts.Plan.PriorityOf = func(string) (int32, bool) { misbehave(); return 0, true }
	},
	"Options.Prepare": func(n *node, misbehave func()) {
		n.opts.Prepare = func(context.Context) error { misbehave(); return nil }
	},
	"Options.Hold": func(n *node, misbehave func()) {
		n.opts.Hold = func(context.Context) error { misbehave(); return nil }
	},
	"Options.OnPlan": func(n *node, misbehave func()) {
		n.opts.OnPlan = func(context.Context, plan.Plan) { misbehave() }
	},
	"Options.OnReport": func(n *node, misbehave func()) {
		n.opts.OnReport = func(context.Context, shutdown.Report) { misbehave() }
	},
	"Options.OnRelease": func(n *node, misbehave func()) {
		n.opts.OnRelease = func(context.Context) { misbehave() }
	},
	"Options.Volumes": func(n *node, misbehave func()) {
		n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { misbehave(); return nil })
	},
	"Options.Events": func(n *node, misbehave func()) {
		n.opts.Events = eventFunc(func() { misbehave() })
	},
	"Options.Killer for pod default/web": func(n *node, misbehave func()) {
		n.opts.Killer = shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			if pod.Name == "web" {
				misbehave()
			}
			return n.killer.KillPod(ctx, pod, req)
		})
	},
	"Options.Reporter.PublishNode": func(n *node, misbehave func()) { n.opts.Reporter = callingReporter{publish: misbehave} },
	"Options.Reporter.MarkNotReady for pod default/web": func(n *node, misbehave func()) {
		n.opts.Reporter = callingReporter{mark: misbehave}
	},
	"Options.Reporter.FlushPod for pod default/web": func(n *node, misbehave func()) {
		n.opts.Reporter = callingReporter{flush: misbehave}
	},
	"the closing of the shutdown inhibitor": func(n *node, misbehave func()) {
		n.opts.Source = closingHost{n.host, misbehave}
	},
}

// eventFunc is an EventRecorder that calls a function for each event.
type eventFunc func()

// Event calls the function, and drops the event.
func (r eventFunc) Event(k8sruntime.Object, string, string, string) { r() }

// callingReporter is a reporter that calls functions, if they are not nil, and succeeds.
type callingReporter struct{ publish, mark, flush func() }

// PublishNode calls r.publish.
func (r callingReporter) PublishNode(context.Context, shutdown.NodeState) error {
	return callIfSet(r.publish)
}

// MarkNotReady calls r.mark, for the pod "web" only.
func (r callingReporter) MarkNotReady(_ context.Context, pod *v1.Pod) error {
	if pod.Name != "web" {
		return nil
	}
	return callIfSet(r.mark)
}

// RestoreReadiness does nothing.
func (callingReporter) RestoreReadiness(context.Context, *v1.Pod) error { return nil }

// FlushPod calls r.flush, for the pod "web" only.
func (r callingReporter) FlushPod(_ context.Context, pod *v1.Pod) error {
	if pod.Name != "web" {
		return nil
	}
	return callIfSet(r.flush)
}

// callIfSet calls f, if it is not nil, and returns nil: a reporter's call always succeeds.
func callIfSet(f func()) error {
	if f != nil {
		f()
	}
	return nil
}

// closingHost is a host whose locks call a function before they are closed.
type closingHost struct {
	*shutdowntest.Host

	before func()
}

// Connect returns a session whose locks call c.before when they are closed.
func (c closingHost) Connect(ctx context.Context) (source.Session, error) {
	session, err := c.Host.Connect(ctx)
	return closingSession{session, c.before}, err
}

// closingSession is a session with a closingHost.
type closingSession struct {
	source.Session

	before func()
}

// Inhibit returns a lock that calls s.before when it is closed.
func (s closingSession) Inhibit(ctx context.Context) (io.Closer, error) {
	lock, err := s.Session.Inhibit(ctx)
	if err != nil {
		return nil, err
	}
	return closerFunc(func() error { s.before(); return lock.Close() }), nil
}

// closerFunc is a lock whose Close is the function.
type closerFunc func() error

// Close calls the function.
func (f closerFunc) Close() error { return f() }

// The manager calls code of the agent that embeds it. A call that hangs, panics or ends its goroutine delays neither the release of
// the lock, nor a cancellation, nor the kills of other pods. Run waits up to ten seconds for calls that hang, and names them.
func TestMisbehavingEmbedderCodeDelaysNothing(t *testing.T) {
	for name, set := range misbehaviours {
		for how, misbehave := range map[string]func(over <-chan struct{}){
			"hangs":  func(over <-chan struct{}) { <-over },
			"panics": func(<-chan struct{}) { panic("of " + name) },
			"exits":  func(<-chan struct{}) { runtime.Goexit() },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) {
					drainWithMisbehaviour(t, misbehaviour{call: name, hangs: how == "hangs", set: set, misbehave: misbehave})
				})
			})
		}
	}
}

// misbehaviour is a call to embedder code that misbehaves during a drain.
type misbehaviour struct {
	call      string
	hangs     bool                            // the call hangs until over is closed; otherwise it panics or ends its goroutine
	set       func(n *node, misbehave func()) // changes the options of the node so that the embedder code first calls misbehave
	misbehave func(over <-chan struct{})
}

// drainWithMisbehaviour begins a drain of the pods web and etcd, during which a call to embedder code misbehaves: if the call is about
// a pod, that is web. It requires that the lock is released on time and etcd is killed nevertheless, that a cancellation takes effect,
// and that Run ends within 10 s, with an error that names a call that hangs.
func drainWithMisbehaviour(t *testing.T, m misbehaviour) {
	t.Helper()
	n := newNode(t, list(shutdowntest.Pod("web", regularPriority, 5), shutdowntest.Pod("etcd", criticalPriority, 5)))
	over := make(chan struct{})
	var hasBegun atomic.Bool // the drain: earlier calls behave
	m.set(n, func() {
		if hasBegun.Load() {
			m.misbehave(over)
		}
	})
	n.run()
	synctest.Wait()
	hasBegun.Store(true)
	began := time.Now()
	const limit = 50 * time.Second // more than all steps need, so that one that hangs is given up first
	n.host.Announce(source.Event{Deadline: began.Add(limit)})
	n.advance(limit)
	if m.call != "the closing of the shutdown inhibitor" { // a lock whose Close misbehaves is never released
		require.LessOrEqual(t, n.releasedAfter(began), limit, "the lock was released on time")
	}
	if m.call != "Options.ListPods" { // without a list the manager knows no pod
		_, killed := n.killer.Kill("etcd")
		require.True(t, killed)
	}
	n.host.Cancel()
	synctest.Wait()
	require.NoError(t, n.m.ShutdownStatus(), "the cancellation takes effect")

	stopped := time.Now()
	err := n.stopRun()
	if m.hangs {
		require.ErrorContains(t, err, m.call)
		require.LessOrEqual(t, time.Since(stopped), 10*time.Second)
	} else {
		require.Less(t, time.Since(stopped), 10*time.Second)
	}
	close(over)
}

// OnPlan takes 30 s, and the context of Run ends 2 s after the announcement. Run waits 28 s more, until OnPlan has returned. It would
// wait until 42.5 s: 10 s after the end of the requested delay of 32.5 s.
func TestRunWaitsForCallsUntilTenSecondsAfterTheHostsTime(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
		n.opts.OnPlan = func(context.Context, plan.Plan) { <-time.After(30 * time.Second) }
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		n.announce()
		n.advance(2 * time.Second)
		stopped := time.Now()
		n.end() // fails the test if Run names a call
		require.Equal(t, 28*time.Second, time.Since(stopped))
	})
}

// nilError is an error whose methods panic if the pointer is nil, which happens if a function returns a nil
// *nilError as an error.
type nilError struct{ text string }

// Error panics if e is nil.
func (e *nilError) Error() string { return e.text }

// Is panics if e is nil. errors.Is calls it.
func (e *nilError) Is(error) bool { return e.text == "" }

// KillPod for web, and FlushPod for etcd, return a nil pointer as an error: the methods of such an error panic. That ends neither the
// process nor the drain: web is not known to have ended, and etcd's final status is not acknowledged. dns has neither fault.
func TestAnErrorMayPanic(t *testing.T) {
	inBubble(t, append(webAndEtcd(), shutdowntest.Pod("dns", criticalPriority, 60)), func(t *testing.T, n *node) {
		n.opts.Reporter = flushFunc(func(pod *v1.Pod) error {
			if pod.Name == "etcd" {
				return (*apierrors.StatusError)(nil)
			}
			return nil
		})
		n.opts.Killer = shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			if pod.Name == "web" {
				return shutdown.KillResult{}, (*nilError)(nil)
			}
			return n.killer.KillPod(ctx, pod, req)
		})
		n.run()
		n.announce()
		n.advance(time.Minute)
		report := n.lastReport()
		require.NotEmpty(t, podReport(t, report, "web").Error)
		require.Equal(t, map[string]string{"web": "", "etcd": "Graceful", "dns": "Graceful"}, outcomes(report))
		require.True(t, podReport(t, report, "etcd").Unflushed)
		require.False(t, podReport(t, report, "dns").Unflushed)
	})
}

// flushFunc is a StatusFlusher that calls this function for each final status.
type flushFunc func(pod *v1.Pod) error

// PublishNode succeeds at once.
func (flushFunc) PublishNode(context.Context, shutdown.NodeState) error { return nil }

// FlushPod calls the function.
func (f flushFunc) FlushPod(_ context.Context, pod *v1.Pod) error { return f(pod) }

// ongoingKillError is the error of a kill that is still under way.
type ongoingKillError struct{ takes time.Duration }

// Error returns the kubelet's text.
func (ongoingKillError) Error() string { return "timeout waiting to kill pod" }

// Await waits for the end of the kill: it takes g.takes.
func (g ongoingKillError) Await(context.Context) (shutdown.KillResult, error) {
	<-time.After(g.takes)
	return shutdown.KillResult{Outcome: "Forced"}, nil
}

// If the killer's error has an Await method, the manager calls Await, and does not call the killer again. The killer
// returns such an error for web at once, and the kill ends after 8 s. Only then is etcd killed, in the next bucket.
func TestAKillWhoseErrorHasAwaitIsNotRepeated(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", regularPriority, 5), shutdowntest.Pod("etcd", criticalPriority, 5)), func(t *testing.T, n *node) {
		webKills := 0
		n.opts.Killer = shutdown.PodKillerFunc(func(ctx context.Context, pod *v1.Pod, req shutdown.KillRequest) (shutdown.KillResult, error) {
			if pod.Name == "web" {
				webKills++
				return shutdown.KillResult{}, fmt.Errorf("overdue: %w", ongoingKillError{8 * time.Second})
			}
			return n.killer.KillPod(ctx, pod, req)
		})
		n.run()
		began := time.Now()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, 1, webKills)
		require.Equal(t, 8*time.Second, n.killedAfter("etcd", began))
		require.Equal(t, "Forced", podReport(t, n.lastReport(), "web").Outcome)
	})
}
