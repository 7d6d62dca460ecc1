//go:build go1.25

package shutdown_test

import (
	"context"
	"io"
	"runtime"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	k8sruntime "k8s.io/apimachinery/pkg/runtime"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// misbehaviours maps the name of a call of the embedder's code to a function that changes the
// options of a node: the call then calls misbehave first.
var misbehaviours = map[string]func(n *node, misbehave func()){
	"Options.Pods": func(n *node, misbehave func()) {
		n.opts.Pods = shutdown.PodsFunc(func() []*v1.Pod { misbehave(); return n.currentPods() })
	},
	"Options.Plan.PriorityOf": func(n *node, misbehave func()) {
		n.pods[0].Spec.Priority, n.pods[0].Spec.PriorityClassName = nil, "gold"
		n.opts.Plan.PriorityOf = func(string) (int32, bool) { misbehave(); return 0, true }
	},
	"Options.Policy": func(n *node, misbehave func()) {
		n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { misbehave(); return shutdown.PolicySetTerminal }
	},
	"Options.LateStart": func(n *node, misbehave func()) {
		n.opts.LateStart = func(shutdown.Event) bool { misbehave(); return false }
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

// eventFunc is a recorder of events that calls a function.
type eventFunc func()

func (r eventFunc) Event(k8sruntime.Object, string, string, string) { r() }

// callingReporter is a reporter that calls functions; nil ones do nothing.
type callingReporter struct{ publish, mark, flush func() }

func (r callingReporter) PublishNode(context.Context, shutdown.NodeState) error {
	return callIfSet(r.publish)
}

func (r callingReporter) MarkNotReady(_ context.Context, pod *v1.Pod) error {
	if pod.Name != "web" {
		return nil
	}
	return callIfSet(r.mark)
}

func (r callingReporter) FlushPod(_ context.Context, pod *v1.Pod) error {
	if pod.Name != "web" {
		return nil
	}
	return callIfSet(r.flush)
}

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

func (c closingHost) Connect(ctx context.Context) (shutdown.Session, error) {
	session, err := c.Host.Connect(ctx)
	return closingSession{session, c.before}, err
}

type closingSession struct {
	shutdown.Session

	before func()
}

func (s closingSession) Inhibit(ctx context.Context) (io.Closer, error) {
	lock, err := s.Session.Inhibit(ctx)
	if err != nil {
		return nil, err
	}
	return closerFunc(func() error { s.before(); return lock.Close() }), nil
}

type closerFunc func() error

func (f closerFunc) Close() error { return f() }

// Code of the embedder that hangs, panics or ends its goroutine neither delays the host beyond
// its time, nor keeps the loop from a cancellation or other pods from their kills. Run waits ten
// seconds for calls that hang, and names them.
func TestCodeOfTheEmbedderMisbehaves(t *testing.T) {
	for name, set := range misbehaviours {
		for how, misbehave := range map[string]func(over <-chan struct{}){
			"hangs":  func(over <-chan struct{}) { <-over },
			"panics": func(<-chan struct{}) { panic("of " + name) },
			"exits":  func(<-chan struct{}) { runtime.Goexit() },
		} {
			t.Run(name+" "+how, func(t *testing.T) {
				synctest.Test(t, func(t *testing.T) { drainWithMisbehaviour(t, name, how == "hangs", set, misbehave) })
			})
		}
	}
}

func drainWithMisbehaviour(t *testing.T, name string, hangs bool, set func(*node, func()), misbehave func(<-chan struct{})) {
	t.Helper()
	n := newNode(t, list(shutdowntest.Pod("web", 0, 5), shutdowntest.Pod("etcd", topPriority, 5)))
	over := make(chan struct{})
	var begun atomic.Bool
	set(n, func() {
		if begun.Load() {
			misbehave(over)
		}
	})
	n.run()
	synctest.Wait()
	begun.Store(true)
	began := time.Now()
	const limit = 50 * time.Second
	n.host.Announce(shutdown.Event{Deadline: began.Add(limit)})
	n.advance(limit)
	if name != "the closing of the shutdown inhibitor" {
		require.LessOrEqual(t, n.releasedAfter(began), limit, "the host was let go in time")
	}
	if name != "Options.Pods" {
		_, killed := n.killer.Kill("etcd")
		require.True(t, killed)
	}
	n.host.Cancel()
	synctest.Wait()
	require.NoError(t, n.m.ShutdownStatus(), "a cancellation is heard")

	n.stop()
	n.stop = nil
	stopped := time.Now()
	err := <-n.ended
	if hangs {
		require.ErrorContains(t, err, name)
		require.LessOrEqual(t, time.Since(stopped), 10*time.Second)
	} else {
		require.Less(t, time.Since(stopped), 10*time.Second)
	}
	close(over)
}

// A host that leaves less time than a call of the embedder's code takes is released in time.
func TestHostWithLessTimeThanAnAnswer(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		over := make(chan struct{})
		n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { <-over; return shutdown.PolicySetTerminal }
		n.run()
		began := time.Now()
		n.host.Announce(shutdown.Event{Deadline: began.Add(800 * time.Millisecond)})
		n.advance(time.Minute)
		require.LessOrEqual(t, n.releasedAfter(began), 800*time.Millisecond)
		_, killed := n.killer.Kill("web")
		require.True(t, killed, "as early as can be")
		close(over)
	})
}

// An event that leaves less time also counts while a call of the embedder's code is waited for,
// before the plan is made.
func TestLessTimeBeforeThePlan(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		over := make(chan struct{})
		n.opts.Policy = func(shutdown.Kind) shutdown.PodPolicy { <-over; return shutdown.PolicySetTerminal }
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		n.run()
		began := time.Now()
		n.announce()
		n.advance(500 * time.Millisecond)
		n.host.Announce(shutdown.Event{Deadline: began.Add(10 * time.Second)})
		n.advance(time.Minute)
		require.LessOrEqual(t, n.releasedAfter(began), 10*time.Second)
		close(over)
	})
}
