//go:build unix

package shutdown_test

import (
	"os"
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Two agents do not share a folder: the second waits ten seconds for it, then it goes on
// without, and says so; it holds the host from the beginning on. A third has the folder as
// soon as the first is gone.
func TestTwoAgentsOnOneFolder(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		other := n.startOther(nil, one, nil)
		n.advance(time.Millisecond)
		require.Equal(t, 1, other.host.Held())
		<-other.m.Ready()
		n.advance(11 * time.Second)
		other.announce()
		other.advance(time.Second)
		require.Contains(t, other.lastReport().Errors[0], "another agent uses it")
		require.NoFileExists(t, filepath.Join(n.opts.StateDir, progressFile), "the folder is the first agent's")
		other.end()

		third := n.startOther(nil, one, nil)
		n.advance(time.Second)
		n.end()
		n.advance(100 * time.Millisecond)
		require.Equal(t, 1, third.host.Held())
		third.end()
	})
}

// An agent that is started in the middle of a shutdown, while another agent has the folder,
// does not ask the host to be delayed: the host would refuse. It takes the lock that the host
// has kept once it has the folder, or cannot have it, and hears a lost session meanwhile.
func TestPendingAtStartBesideAnotherAgent(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		other := n.startOther(nil, one, func(other *node) {
			other.host.SetPending(&shutdown.Event{})
			other.host.Kept = true
		})
		n.advance(7 * time.Second)
		require.Equal(t, []string{"connect", "pending"}, other.host.Calls())
		require.NoError(t, other.m.Inhibitor().Err, "the host has answered")
		other.host.Lose()
		n.advance(2 * time.Second)
		require.Equal(t, []string{"connect", "pending", "close", "connect", "pending"}, other.host.Calls())
		require.False(t, other.m.Admit(nil).Admit)
		<-other.m.Ready()
		n.advance(time.Second)
		require.Empty(t, other.host.Wishes())
		require.Equal(t, "inhibit", other.host.Calls()[5])
		other.end()
	})
}

// An answer of Pending that is older than a cancellation does not keep admission closed, though
// both come while the agent waits for the folder.
func TestCancelledWhileTheFolderIsWaitedFor(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		other := n.startOther(nil, one, func(other *node) {
			other.host.SetPending(&shutdown.Event{})
			other.host.PendingTakes = 2 * time.Second
		})
		n.advance(time.Second)
		other.host.Cancel()
		n.advance(12 * time.Second)
		require.True(t, other.m.Admit(nil).Admit)
		require.Equal(t, 1, other.host.Held())
		other.end()
	})
}

// An agent that cannot have the folder does not take up the shutdown of the one that has
// it: it kills nobody and writes nothing. It admits nobody either, until that shutdown is
// over or the host says that there is none.
func TestShutdownOfAnotherAgent(t *testing.T) {
	for name, sourced := range map[string]bool{"without a source": false, "on a host of its own": true} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.runOnBoot(one)
				n.announce()
				n.advance(2 * time.Second)
				stored, err := os.ReadFile(filepath.Join(n.opts.StateDir, progressFile))
				require.NoError(t, err)

				other := n.startOther(twoPods(), one, func(other *node) {
					if !sourced {
						other.opts.Source = nil
					}
				})
				for range 9 {
					require.False(t, other.m.Admit(nil).Admit, "as long as it waits")
					n.advance(time.Second)
				}
				n.advance(2 * time.Second)
				require.Equal(t, sourced, other.m.Admit(nil).Admit, "it has the folder no more than before")
				now, err := os.ReadFile(filepath.Join(n.opts.StateDir, progressFile))
				require.NoError(t, err)
				require.Equal(t, string(stored), string(now))
				n.advance(time.Minute)
				require.True(t, other.m.Admit(nil).Admit)
				require.Empty(t, other.killer.Kills())
				require.Len(t, n.killer.Kills(), 2)
				other.end()
				require.NotZero(t, n.lastReport().Ended)
			})
		})
	}
}

// An agent whose predecessor ends in the middle of a shutdown while it waits for the folder
// takes up what that one has stored last: it has the same end.
func TestSuccessorWaitsForTheFolder(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		other := n.startOther(twoPods(), one, func(other *node) { other.opts.Source = nil })
		n.announce()
		n.advance(5 * time.Second)
		n.end()
		n.advance(time.Second)
		require.False(t, other.m.Admit(nil).Admit)
		require.Equal(t, map[string]int64{"web": 15, "etcd": 25}, other.grantedSeconds(), "what is left of the first, and what it leaves")
		n.advance(time.Minute)
		report := other.lastReport()
		require.Len(t, report.Pods, 2, "each once")
		require.Empty(t, report.Errors)
		other.end()
	})
}

// What the host or the embedder says while an agent waits for the folder counts for admission
// at once; pods are killed when it is known what the agent before has left, and none if the
// shutdown was cancelled meanwhile.
func TestAnnouncedWhileWaitingForTheFolder(t *testing.T) {
	for name, test := range map[string]struct {
		say, cancel func(n *node)
	}{
		"by the host": {func(n *node) { n.announce() }, func(n *node) { n.host.Cancel() }},
		"before": {func(n *node) {
			n.host.SetPending(&shutdown.Event{})
			n.host.Lose()
			n.advance(2 * time.Second)
		}, func(n *node) { n.host.Cancel() }},
		"by the embedder": {
			func(n *node) { require.NoError(n.t, n.m.Trigger(shutdown.Event{})) },
			func(n *node) { require.NoError(n.t, n.m.Trigger(shutdown.Event{Cancelled: true})) },
		},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				n.runOnBoot(one)
				other := n.startOther(twoPods(), one, nil)
				n.advance(time.Millisecond)
				require.Equal(t, 1, other.host.Held())
				require.True(t, other.m.Admit(nil).Admit)
				began := time.Now()
				test.say(other)
				require.False(t, other.m.Admit(nil).Admit)
				test.cancel(other)
				synctest.Wait()
				require.True(t, other.m.Admit(nil).Admit)
				test.say(other)
				said := time.Now()
				n.advance(time.Second)
				require.Empty(t, other.killer.Kills())
				require.Equal(t, 1, other.host.Held())
				n.end()
				n.advance(time.Second)
				require.Len(t, other.killer.Kills(), 2)
				require.Less(t, other.startedAt("web", said), 2*time.Second)
				n.advance(time.Minute)
				require.Len(t, other.lastReport().Pods, 2)
				require.WithinRange(t, other.lastReport().Started, began, said)
				other.end()
			})
		})
	}
}

// A shutdown that was announced before pods are terminated, and that is taken up after it, is
// the one that is reported last.
func TestTerminateAllBeforeAnAnnouncementIsTakenUp(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		other := n.startOther(twoPods(), one, nil)
		n.advance(time.Millisecond)
		other.host.Announce(shutdown.Event{Origin: "host"})
		n.advance(time.Second)
		_, err := other.m.TerminateAll(t.Context())
		require.NoError(t, err)
		n.advance(time.Minute)
		require.Equal(t, "host", other.lastReport().Origin)
		other.end()
	})
}

// Pods can be terminated at any moment of the wait for the folder.
func TestTerminateAllWhileWaitingForTheFolder(t *testing.T) {
	for _, after := range []time.Duration{time.Second, 10 * time.Second} {
		t.Run(after.String(), func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				n.runOnBoot(one)
				other := n.startOther(twoPods(), one, nil)
				<-time.After(after)
				report, err := other.m.TerminateAll(t.Context())
				if after < 10*time.Second {
					require.NoError(t, err)
				}
				require.Len(t, report.Pods, 2)
				require.Len(t, other.killer.Kills(), 2)
				other.end()
			})
		})
	}
}
