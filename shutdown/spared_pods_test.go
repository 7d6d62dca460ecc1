//go:build go1.25

package shutdown_test

import (
	"errors"
	"fmt"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A shutdown that is cancelled during its marks reverts them.
func TestSparedPodsAreReadyAgain(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{MarkTakes: 300 * time.Millisecond, MarkErr: func(call int) error {
			if call == 1 {
				return errors.New("not now")
			}
			return nil
		}}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.host.Cancel()
		synctest.Wait()
		n.advance(time.Minute)
		require.Empty(t, n.killer.Kills())
		marked := reporter.Marked()
		require.Len(t, marked, 3)
		require.Error(t, marked[0].Err, "its context has ended")
		require.False(t, marked[0].Ready)
		require.True(t, marked[1].Ready)
		require.True(t, marked[2].Ready)
		require.NoError(t, marked[2].Err, "it was tried again")
		require.Empty(t, n.lastReport().Errors)
	})
}

// The reverts of a cancelled shutdown do not reach into the next shutdown.
func TestShutDownAgainBeforeSparedPodsAreReady(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{MarkTakes: 300 * time.Millisecond}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.host.Cancel()
		n.advance(100 * time.Millisecond) // web is being restored
		n.announce()
		n.advance(time.Minute)
		marked := reporter.Marked()
		require.Len(t, marked, 3)
		require.True(t, marked[1].Ready)
		require.Error(t, marked[1].Err, "it was given up")
		require.False(t, marked[2].Ready, "which comes last")
		require.NoError(t, marked[2].Err)
		require.Len(t, n.killer.Kills(), 1)
	})
}

// The reverts that the next shutdown has dropped are made when that one is cancelled too, at
// whatever step.
func TestShutDownAgainAndCancelled(t *testing.T) {
	for name, until := range map[string]time.Duration{"before the first bucket": 0, "within it": time.Second} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("db", 0, 60)), func(t *testing.T, n *node) {
				reporter := &shutdowntest.Reporter{MarkTakes: 300 * time.Millisecond}
				n.opts.Reporter = reporter
				n.killer.Default = shutdowntest.Behaviour{Takes: 10 * time.Second}
				n.run()
				n.announce()
				n.host.Cancel()
				n.advance(100 * time.Millisecond) // both are being restored
				n.setPods(n.pods[1])              // and the next one does not come to web
				n.announce()
				n.advance(until)
				n.host.Cancel()
				n.advance(time.Minute)
				ready := map[string]bool{}
				for _, mark := range reporter.Marked() {
					if mark.Err == nil {
						ready[mark.Pod] = mark.Ready
					}
				}
				require.True(t, ready["web"])
				if len(n.killer.Kills()) > 0 {
					require.False(t, ready["db"], "it was killed")
				} else {
					require.True(t, ready["db"])
				}
			})
		})
	}
}

// If the next shutdown is announced at the moment of the cancellation, the last call for a killed pod
// still marks it as not ready.
func TestShutDownAgainAtOnce(t *testing.T) {
	for range 50 {
		inBubble(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node) {
			reporter := &shutdowntest.Reporter{MarkTakes: 300 * time.Millisecond}
			n.opts.Reporter = reporter
			n.run()
			n.announce()
			n.host.Cancel()
			n.host.Announce(shutdown.Event{})
			n.advance(time.Minute)
			require.Len(t, n.killer.Kills(), 1)
			marked := reporter.Marked()
			require.False(t, marked[len(marked)-1].Ready, "the last call for a pod that is killed")
			require.NoError(t, marked[len(marked)-1].Err)
		})
	}
}

// A shutdown that is cancelled during its kills spares the pods that it has not signalled.
func TestSignalledPodsAreNotSpared(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 3 * time.Second}
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.run()
		n.announce()
		n.host.Cancel()
		n.advance(time.Minute)
		require.Len(t, reporter.Marked(), 1, "of those that end")
		require.Equal(t, "web", reporter.Flushed()[0].Pod)
	})
}

// In a bucket that is cancelled each pod is either killed or spared. Spared pods that may have
// been marked become ready again.
func TestOvertakenKillsAreSpared(t *testing.T) {
	var pods []*v1.Pod
	for i := range 100 {
		pods = append(pods, shutdowntest.Pod(fmt.Sprintf("pod-%02d", i), 0, 60))
	}
	for range 20 {
		inBubble(t, pods, func(t *testing.T, n *node) {
			reporter := &shutdowntest.Reporter{}
			n.opts.Reporter = reporter
			n.opts.Source = nil
			var cancel sync.Once
			n.killer.OnKill = func(*v1.Pod) {
				cancel.Do(func() { require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true})) })
			}
			n.run()
			require.NoError(t, n.m.Trigger(shutdown.Event{}))
			n.advance(time.Minute)
			last := map[string]bool{} // what was said last of each pod: it is ready
			for _, marked := range reporter.Marked() {
				if marked.Err == nil || !marked.Ready {
					last[marked.Pod] = marked.Ready
				}
			}
			killed := map[string]bool{}
			for _, kill := range n.killer.Kills() {
				killed[kill.Pod.Name] = true
			}
			require.NotEmpty(t, killed)
			for name, ready := range last {
				require.Equal(t, !killed[name], ready, name)
			}
		})
	}
}

// A pod was marked not ready and not killed when its shutdown was cancelled or its agent died, and
// the API server was away. The next agent restores it once the node stays.
func TestMarksThatADeadAgentHasLeftAreRestored(t *testing.T) {
	nothing := func(*node) {}
	for name, test := range map[string]struct{ last, meanwhile func(n *node) }{
		"cancelled by the host":             {func(n *node) { n.host.Cancel() }, nothing},
		"dismissed by Trigger":              {func(n *node) { require.NoError(n.t, n.m.Trigger(shutdown.Event{Cancelled: true})) }, nothing},
		"cancelled while no agent runs":     {nothing, func(n *node) { n.host.SetPending(nil) }},
		"not cancelled before its time ran": {nothing, func(n *node) { n.advance(time.Minute); n.host.SetPending(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				reporter := &shutdowntest.Reporter{MarkTakes: 900 * time.Millisecond, MarkErr: func(int) error { return errors.New("no API server") }}
				n.opts.Reporter = reporter
				n.runOnBoot(one)
				n.announce()
				n.advance(500 * time.Millisecond)
				test.last(n)
				n.advance(300 * time.Millisecond)
				n.crash()
				reporter.MarkTakes, reporter.MarkErr = 0, nil
				before := len(reporter.Marked())
				test.meanwhile(n)
				n.runOnBoot(one)
				n.advance(time.Second)
				require.Empty(t, n.killer.Kills())
				marked := reporter.Marked()[before:]
				require.Len(t, marked, 1)
				require.True(t, marked[0].Ready)
			})
		})
	}
}
