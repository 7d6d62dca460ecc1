//go:build unix && go1.25

package shutdown_test

import (
	"os"
	"path/filepath"
	"strings"
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
// the host for a delay, because the host would refuse. It adopts the lock that the host has kept
// without a wait for the folder, and keeps it when a session is lost.
func TestPendingAtStartBesideAnotherAgent(t *testing.T) {
	inBubbleWithState(t, nil, func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		other := n.startOther(nil, one, func(other *node) {
			other.host.SetPending(&shutdown.Event{})
			other.host.Kept = true
			other.opts.Pods = shutdown.PodsFunc(twoPods)
			other.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		})
		n.advance(7 * time.Second)
		require.Equal(t, []string{"connect", "pending", "inhibit"}, other.host.Calls())
		require.NoError(t, other.m.Inhibitor().Err)
		require.Equal(t, 1, other.host.Held())
		other.host.Lose()
		n.advance(2 * time.Second)
		require.Equal(t, []string{"connect", "pending", "inhibit", "close", "connect", "pending"}, other.host.Calls())
		require.Equal(t, 1, other.host.Held())
		require.False(t, other.m.Admit(nil).Admit)
		<-other.m.Ready()
		n.advance(time.Second)
		require.Empty(t, other.host.Wishes())
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
					n.advance(time.Second)
					require.Equal(t, sourced, other.m.Admit(nil).Admit, "it waits for the folder, and for its host")
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
// admission and begins at once, because the time of the host runs. Once it is cancelled, pods are
// admitted that it has not signalled. The next shutdown joins the others, and is on record as soon
// as the folder is had.
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
				pods := twoPods()
				n.runOnBoot(one)
				other := n.startOther(pods, one, func(other *node) {
					other.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				})
				n.advance(time.Millisecond)
				require.Equal(t, 1, other.host.Held())
				require.True(t, other.m.Admit(nil).Admit)
				test.announce(other)
				synctest.Wait()
				require.False(t, other.m.Admit(nil).Admit)
				n.advance(time.Second)
				require.Equal(t, map[string]int64{"web": 20}, other.grantedSeconds())
				test.cancel(other)
				synctest.Wait()
				require.True(t, other.m.Admit(nil).Admit)
				require.False(t, other.m.Admit(pods[0]).Admit, "it was signalled")
				announced := time.Now()
				test.announce(other)
				n.advance(time.Second)
				require.Len(t, other.killer.Kills(), 1, "the kill that is under way goes on")
				require.Equal(t, 1, other.host.Held())
				require.NoFileExists(t, filepath.Join(n.opts.StateDir, progressFile))
				n.end()
				n.advance(time.Second)
				require.True(t, fileContains(filepath.Join(n.opts.StateDir, progressFile), "uid-etcd"))
				n.advance(time.Minute)
				require.Len(t, other.killer.Kills(), 2, "one for each pod")
				report := other.lastReport()
				require.Len(t, report.Pods, 2)
				require.True(t, report.Pods[0].Joined)
				require.WithinRange(t, report.Started, announced, announced.Add(2*time.Second))
				other.end()
			})
		})
	}
}

// A shutdown that is announced while the agent waits for the folder begins at once. TerminateAll waits
// for it and returns its report, which is the last one.
func TestReportOfAShutdownThatTerminateAllOvertakes(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		other := n.startOther(twoPods(), one, func(other *node) {
			other.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		})
		n.advance(time.Millisecond)
		other.host.Announce(shutdown.Event{Origin: "host"})
		n.advance(time.Second)
		report, err := other.m.TerminateAll(t.Context())
		require.EqualError(t, err, report.Err().Error())
		require.Equal(t, "host", report.Origin)
		require.Len(t, report.Pods, 2)
		n.advance(time.Minute)
		require.Equal(t, "host", other.lastReport().Origin)
		other.end()
	})
}

// The time of the host runs while another agent has the folder. With a deadline of 5 s the lock is
// let go in time, each pod has had its grace period, and the report says why nothing is on record.
func TestDeadlineWhileWaitingForTheFolder(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		pods := list(shutdowntest.Pod("web", 0, 2), shutdowntest.Pod("etcd", topPriority, 2))
		other := n.startOther(pods, one, func(other *node) {
			other.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		})
		n.advance(time.Second)
		began := time.Now()
		other.host.Announce(shutdown.Event{Deadline: began.Add(5 * time.Second)})
		n.advance(5 * time.Second)
		require.Zero(t, other.host.Held())
		require.LessOrEqual(t, other.releasedAfter(began), 5*time.Second)
		require.Equal(t, map[string]int64{"web": 2, "etcd": 2}, other.grantedSeconds())
		n.advance(time.Minute)
		require.Contains(t, strings.Join(other.lastReport().Errors, "\n"), "another agent uses it")
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
