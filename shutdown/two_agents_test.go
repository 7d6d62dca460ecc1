//go:build unix && go1.25

package shutdown_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// withSecondAgent runs a test with two agents of one node. n has the state folder; other waits for it. prepare, if not
// nil, changes the options or the host of other.
func withSecondAgent(t *testing.T, prepare func(other *node), test func(t *testing.T, n, other *node)) {
	t.Helper()
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.runOnBoot(one)
		other := n.startOther(twoPods(), one, prepare)
		n.advance(time.Millisecond)
		test(t, n, other)
		other.end()
		other.judge()
	})
}

// A second agent on the same state folder holds the lock at once, and refuses pods while it waits ten
// seconds for the folder. Then it works without the folder and reports that. A third agent gets the folder
// when the first ends.
func TestTheSecondAgentWorksWithoutTheStateFolder(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.runOnBoot(one)
		other := n.startOther(nil, one, nil)
		n.advance(200 * time.Millisecond)
		require.Equal(t, 1, other.host.Held())
		require.False(t, other.m.Admit(nil).Admit)
		<-other.m.Ready()
		require.True(t, other.m.Admit(nil).Admit)
		other.announce()
		other.advance(3 * time.Second)
		require.Contains(t, other.lastReport().Errors[0], "another agent uses it")
		require.False(t, fileContains(filepath.Join(n.opts.StateDir, logFile), "shutdown"), "the second agent writes nothing")
		other.end()

		third := n.startOther(nil, one, nil)
		n.advance(time.Second)
		n.end()
		n.advance(100 * time.Millisecond)
		require.True(t, third.m.Admit(nil).Admit)
		third.end()
	})
}

// An agent that does not get the folder does not resume the shutdown of the agent that has it: it kills no
// pod, and changes neither files, node state nor readiness.
func TestAnAgentWithoutTheFolderLeavesTheShutdownToItsOwner(t *testing.T) {
	reporter := &shutdowntest.Reporter{}
	marked := shutdowntest.Pod("web", 0, 60)
	marked.Status.Conditions = []v1.PodCondition{{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: v1.PodReasonTerminationByKubelet}}
	withSecondAgent(t, func(other *node) { other.opts.Source, other.opts.Reporter, other.pods = nil, reporter, list(marked) }, func(t *testing.T, n, other *node) {
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, other.killer.Kills())
		require.Len(t, n.killer.Kills(), 2)
		require.Empty(t, reporter.Published())
		require.Empty(t, reporter.Marked())
	})
}

// An agent that starts during a shutdown, while another agent has the folder, requests no delay, because
// the host would refuse. It adopts the kept lock at once, and keeps it when a session is lost.
func TestALockIsAdoptedWhileAnotherAgentHasTheFolder(t *testing.T) {
	withSecondAgent(t, func(other *node) {
		other.host.SetPending(&source.Event{})
		other.host.KeptLock = true
		other.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
	}, func(t *testing.T, n, other *node) {
		n.advance(7 * time.Second)
		require.Equal(t, []string{"connect", "pending", "inhibit"}, other.host.Calls())
		require.NoError(t, other.m.Inhibitor().Err)
		other.host.Lose()
		n.advance(2 * time.Second)
		require.Equal(t, []string{"connect", "pending", "inhibit", "close", "connect", "pending"}, other.host.Calls())
		require.Equal(t, 1, other.host.Held())
		require.False(t, other.m.Admit(nil).Admit)
		require.Empty(t, other.host.RequestedDelays())
	})
}

// An announcement begins a drain at once although the agent waits for the folder. After a cancellation pods that were
// not signalled are admitted. A second announcement does not repeat the kill; that shutdown is in the log as soon as
// the agent has the folder.
func TestADrainDoesNotWaitForTheFolder(t *testing.T) {
	for name, announce := range map[string]func(n *node, isCancelled bool){
		"by the host": func(n *node, isCancelled bool) { n.host.Announce(source.Event{Cancelled: isCancelled}) },
		"by the embedder": func(n *node, isCancelled bool) {
			require.NoError(n.t, n.m.Trigger(source.Event{Cancelled: isCancelled}))
		},
	} {
		t.Run(name, func(t *testing.T) {
			withSecondAgent(t, nil, func(t *testing.T, n, other *node) {
				path := filepath.Join(n.opts.StateDir, logFile)
				other.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				announce(other, false)
				n.advance(time.Second)
				require.False(t, other.m.Admit(nil).Admit)
				require.Equal(t, map[string]int64{"web": 20}, other.grantedSeconds())
				announce(other, true)
				synctest.Wait()
				require.True(t, other.m.Admit(nil).Admit)
				require.False(t, other.m.Admit(other.pods[0]).Admit, "it was signalled")
				announce(other, false)
				n.advance(time.Second)
				require.Len(t, other.killer.Kills(), 1, "the kill is not repeated")
				require.False(t, fileContains(path, "uid-"))
				n.end()
				n.advance(time.Second)
				require.True(t, fileContains(path, "uid-etcd"))
				n.advance(time.Minute)
				require.Len(t, other.killer.Kills(), 2, "one for each pod")
				require.True(t, other.lastReport().Pods[0].Joined, "the cancelled shutdown has signalled web")
			})
		})
	}
}
