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

// Two agents do not use the same state folder. The second agent holds the host from its start
// on. It waits ten seconds for the folder, then goes on without it and reports that. A third
// agent gets the folder as soon as the first one has ended.
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
		require.NoFileExists(t, filepath.Join(n.opts.StateDir, progressFile), "the second agent writes nothing")
		other.end()

		third := n.startOther(nil, one, nil)
		n.advance(time.Second)
		n.end()
		n.advance(100 * time.Millisecond)
		require.Equal(t, 1, third.host.Held())
		third.end()
	})
}

// An agent that is started during a shutdown, while another agent uses the folder, does not ask
// the host for a delay, because the host would refuse. Once its wait for the folder is over, it
// adopts the lock that the host has kept. Until then it notices the loss of a session.
func TestPendingAtStartBesideAnotherAgent(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		other := n.startOther(nil, one, func(other *node) {
			other.host.SetPending(&shutdown.Event{})
			other.host.Kept = true
		})
		n.advance(7 * time.Second)
		require.Equal(t, []string{"connect", "pending"}, other.host.Calls())
		require.NoError(t, other.m.Inhibitor().Err)
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

// While an agent waits for the folder, a cancellation that comes after the answer of Pending
// opens admission.
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

// An agent that does not get the folder does not resume the shutdown of the agent that uses it:
// it kills no pod and writes nothing. It admits no pod until that shutdown is over, or until its
// host says that none is pending.
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
					require.False(t, other.m.Admit(nil).Admit, "it waits for the folder")
					n.advance(time.Second)
				}
				n.advance(2 * time.Second)
				require.Equal(t, sourced, other.m.Admit(nil).Admit, "its wait for the folder is over")
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

// If the first agent ends during a shutdown while the second waits for the folder, the second
// resumes the shutdown from the last state file. The shutdown keeps its end.
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
		require.Equal(t, map[string]int64{"web": 15, "etcd": 25}, other.grantedSeconds(), "the rest of the first bucket, and the second bucket with what the first leaves")
		n.advance(time.Minute)
		report := other.lastReport()
		require.Len(t, report.Pods, 2, "each pod once")
		require.Empty(t, report.Errors)
		other.end()
	})
}

// A shutdown that the host or the embedder announces while an agent waits for the folder closes
// admission at once. Its pods are killed once the agent has read the state file, and not at all
// if the shutdown was cancelled before.
func TestAnnouncedWhileWaitingForTheFolder(t *testing.T) {
	for name, test := range map[string]struct {
		announce, cancel func(n *node)
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
				test.announce(other)
				require.False(t, other.m.Admit(nil).Admit)
				test.cancel(other)
				synctest.Wait()
				require.True(t, other.m.Admit(nil).Admit)
				test.announce(other)
				announced := time.Now()
				n.advance(time.Second)
				require.Empty(t, other.killer.Kills())
				require.Equal(t, 1, other.host.Held())
				n.end()
				n.advance(time.Second)
				require.Len(t, other.killer.Kills(), 2)
				require.Less(t, other.killedAfter("web", announced), 2*time.Second)
				n.advance(time.Minute)
				require.Len(t, other.lastReport().Pods, 2)
				require.WithinRange(t, other.lastReport().Started, began, announced)
				other.end()
			})
		})
	}
}

// A shutdown that is announced while the agent waits for the folder begins after that wait. Its
// report is the last one, also if TerminateAll was called in between.
func TestReportOfAShutdownThatTerminateAllOvertakes(t *testing.T) {
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

// TerminateAll works at any moment of the wait for the folder.
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

// A cancelled Trigger admits pods again, even if another agent has a shutdown on record.
func TestTriggerIsCancelledBesideAnotherAgent(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		n.announce()
		n.advance(2 * time.Second)
		other := n.startOther(twoPods(), one, func(other *node) { other.opts.Source = nil })
		n.advance(12 * time.Second)
		require.False(t, other.m.Admit(nil).Admit)
		require.NoError(t, other.m.Trigger(shutdown.Event{Cancelled: true}))
		synctest.Wait()
		require.True(t, other.m.Admit(nil).Admit)
		other.end()
	})
}
