//go:build go1.25

package apistatus_test

import (
	"fmt"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/component-base/featuregate"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/apistatus"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	inProgress v1.NodeConditionType = "GracefulNodeShutdownInProgress"
	draining   v1.NodeConditionType = "DrainInProgress"
	// shutdownMessage is KEP-6249's.
	shutdownMessage = "Kubelet received a shutdown signal and is terminating pods"
)

// conditionText is a node condition without its times.
type conditionText struct {
	Type            v1.NodeConditionType
	Status          v1.ConditionStatus
	Reason, Message string
}

var (
	ready      = conditionText{v1.NodeReady, v1.ConditionTrue, "KubeletReady", "kubelet is posting ready status"}
	notReady   = conditionText{v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "node is shutting down"}
	rebooting  = conditionText{inProgress, v1.ConditionTrue, "NodeShutdown", shutdownMessage + ": reboot"}
	noShutdown = conditionText{inProgress, v1.ConditionFalse, "NodeShutdown", "no node shutdown is in progress"}
	drains     = conditionText{draining, v1.ConditionTrue, "NodeShutdown", "Graceful node shutdown is draining pods on this node"}
	noDrain    = conditionText{draining, v1.ConditionFalse, "NodeShutdown", "no node shutdown is in progress"}
	drained    = conditionText{draining, v1.ConditionFalse, "KubectlDrainCompleted", ""}
	pressure   = conditionText{v1.NodeDiskPressure, v1.ConditionFalse, "KubeletHasNoDiskPressure", ""}
)

// nodeOf returns a node with these conditions, which were set at the time before.
func nodeOf(conditions ...conditionText) *v1.Node {
	node := &v1.Node{ObjectMeta: metav1.ObjectMeta{Name: nodeName, UID: "uid-node", ResourceVersion: "7"}}
	node.Status.Addresses = []v1.NodeAddress{{Type: v1.NodeInternalIP, Address: "192.168.0.1"}}
	for _, c := range conditions {
		node.Status.Conditions = append(node.Status.Conditions, v1.NodeCondition{
			Type: c.Type, Status: c.Status, Reason: c.Reason, Message: c.Message,
			LastHeartbeatTime: before, LastTransitionTime: before,
		})
	}
	return node
}

// conditionTexts returns the conditions without their times, so that tests can compare them.
func conditionTexts(conditions []v1.NodeCondition) []conditionText {
	var all []conditionText
	for _, c := range conditions {
		all = append(all, conditionText{c.Type, c.Status, c.Reason, c.Message})
	}
	return all
}

// reboot is the state of a node that reboots.
var reboot = shutdown.NodeState{ShuttingDown: true, Kind: source.KindReboot}

// A node has the conditions found. PublishNode publishes a reboot, or that no shutdown is in progress (notShuttingDown), as at each
// boot. It changes only the conditions that a shutdown sets, and writes nothing if none of them changes.
func TestPublishNodeChangesOnlyItsOwnConditions(t *testing.T) {
	unknown := conditionText{v1.NodeReady, v1.ConditionUnknown, "NodeStatusUnknown", "Kubelet stopped posting node status."}
	broken := conditionText{v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "container runtime is down"}
	foreign := conditionText{inProgress, v1.ConditionFalse, "AdminRequested", ""}
	for name, test := range map[string]struct {
		found []conditionText
		state shutdown.NodeState
		want  []conditionText
	}{
		"shutdown":                        {found: []conditionText{ready, pressure}, state: reboot, want: []conditionText{notReady, pressure, rebooting}},
		"shutdown of a new node":          {state: reboot, want: []conditionText{notReady, rebooting}},
		"shutdown of a broken node":       {found: []conditionText{broken}, state: reboot, want: []conditionText{notReady, rebooting}},
		"shutdown after another":          {found: []conditionText{ready, noShutdown}, state: reboot, want: []conditionText{notReady, rebooting}},
		"shutdown, partly published":      {found: []conditionText{notReady}, state: reboot, want: []conditionText{notReady, rebooting}},
		"reset":                           {found: []conditionText{notReady, rebooting}, state: notShuttingDown, want: []conditionText{ready, noShutdown}},
		"reset after a heartbeat":         {found: []conditionText{ready, rebooting}, state: notShuttingDown, want: []conditionText{ready, noShutdown}},
		"reset on a broken node":          {found: []conditionText{broken, rebooting}, state: notShuttingDown, want: []conditionText{broken, noShutdown}},
		"reset after an outage":           {found: []conditionText{unknown, rebooting}, state: notShuttingDown, want: []conditionText{unknown, noShutdown}},
		"reset, only Ready was published": {found: []conditionText{notReady}, state: notShuttingDown, want: []conditionText{ready}},
		"published already":               {found: []conditionText{notReady, rebooting}, state: reboot, want: []conditionText{notReady, rebooting}},
		"boot":                            {found: []conditionText{ready}, state: notShuttingDown, want: []conditionText{ready}},
		"boot of a new node":              {state: notShuttingDown},
		"boot after an outage":            {found: []conditionText{unknown}, state: notShuttingDown, want: []conditionText{unknown}},
		"reset already":                   {found: []conditionText{ready, noShutdown}, state: notShuttingDown, want: []conditionText{ready, noShutdown}},
		"reset by another":                {found: []conditionText{ready, foreign}, state: notShuttingDown, want: []conditionText{ready, foreign}},
		"drain of another over":           {found: []conditionText{ready, drained}, state: notShuttingDown, want: []conditionText{ready, drained}},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(nodeOf(test.found...))
			require.NoError(t, c.reporter(t).PublishNode(t.Context(), test.state))
			node := c.node(t)
			require.Equal(t, test.want, conditionTexts(node.Status.Conditions))
			require.Equal(t, nodeOf().Status.Addresses, node.Status.Addresses, "the rest of the status stays")
			if slices.Equal(test.found, test.want) {
				require.Equal(t, []string{"get"}, c.verbs(), "nothing is written")
				return
			}
			require.Equal(t, []string{"get", "patch status"}, c.verbs())
			require.NotContains(t, c.callsOf("patch status")[0].Body, "addresses", "only the conditions are written")
			require.Contains(t, c.callsOf("patch status")[0].Body, `"resourceVersion":"7"`, "the version that was read is a precondition")
		})
	}
}

// gate is a feature gate with DaemonSetGracefulNodeShutdown on or off.
func gate(t testing.TB, on bool) featuregate.FeatureGate {
	t.Helper()
	g := featuregate.NewFeatureGate()
	require.NoError(t, shutdown.AddFeatureGates(g))
	require.NoError(t, g.SetFromMap(map[string]bool{string(shutdown.DaemonSetGracefulNodeShutdown): on}))
	return g
}

// A node has the conditions found, and PublishNode publishes state. With the feature DaemonSetGracefulNodeShutdown it writes
// DrainInProgress together with GracefulNodeShutdownInProgress, unless another program, such as kubectl or an admin's,
// drains the node. It resets its own DrainInProgress even without the feature.
func TestDrainInProgressIsPublishedWithItsFeature(t *testing.T) {
	kubectlDrains := conditionText{draining, v1.ConditionTrue, "KubectlDrainStarted", "kubectl drain started processing this Node"}
	adminDrains := conditionText{draining, v1.ConditionTrue, "AdminRequested", ""}
	for name, test := range map[string]struct {
		found []conditionText
		state shutdown.NodeState
		off   []conditionText // the conditions that must result with the feature off
		on    []conditionText // and with the feature on
	}{
		"shutdown": {
			found: []conditionText{ready}, state: reboot,
			off: []conditionText{notReady, rebooting},
			on:  []conditionText{notReady, rebooting, drains},
		},
		"shutdown after another": {
			found: []conditionText{ready, noShutdown, noDrain}, state: reboot,
			off: []conditionText{notReady, rebooting, noDrain},
			on:  []conditionText{notReady, rebooting, drains},
		},
		"shutdown of a node that was drained": {
			found: []conditionText{ready, drained}, state: reboot,
			off: []conditionText{notReady, drained, rebooting},
			on:  []conditionText{notReady, drains, rebooting},
		},
		"shutdown of a node that kubectl drains": {
			found: []conditionText{ready, kubectlDrains}, state: reboot,
			off: []conditionText{notReady, kubectlDrains, rebooting},
			on:  []conditionText{notReady, kubectlDrains, rebooting},
		},
		"reset": {
			found: []conditionText{notReady, rebooting, drains}, state: notShuttingDown,
			off: []conditionText{ready, noShutdown, noDrain}, // a previous agent had the feature
			on:  []conditionText{ready, noShutdown, noDrain},
		},
		"reset on a node that an admin drains": {
			found: []conditionText{notReady, rebooting, adminDrains}, state: notShuttingDown,
			off: []conditionText{ready, noShutdown, adminDrains},
			on:  []conditionText{ready, noShutdown, adminDrains},
		},
		"reset, only DrainInProgress is left": {
			found: []conditionText{ready, drains}, state: notShuttingDown,
			off: []conditionText{ready, noDrain},
			on:  []conditionText{ready, noDrain},
		},
	} {
		for on, want := range map[bool][]conditionText{false: test.off, true: test.on} {
			t.Run(fmt.Sprintf("%s, feature %t", name, on), func(t *testing.T) {
				c := newCluster(nodeOf(test.found...))
				r := c.reporter(t, func(opts *apistatus.Options) { opts.Gates = gate(t, on) })
				require.NoError(t, r.PublishNode(t.Context(), test.state))
				require.Equal(t, want, conditionTexts(c.node(t).Status.Conditions))
				require.Equal(t, []string{"get", "patch status"}, c.verbs(), "all in one request")
				require.NoError(t, r.PublishNode(t.Context(), test.state))
				require.Len(t, c.callsOf("patch status"), 1, "the second call writes nothing")
			})
		}
	}
}

// A node was not ready before the shutdown. Its Ready condition gets another reason, but keeps the time since which the
// node has not been ready.
func TestTransitionTimeChangesOnlyWithTheStatus(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		c := newCluster(nodeOf(conditionText{v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "container runtime is down"}))
		now := metav1.Now()
		require.NoError(t, c.reporter(t).PublishNode(t.Context(), reboot))
		ready, inProgress := c.node(t).Status.Conditions[0], c.node(t).Status.Conditions[1]
		require.True(t, ready.LastHeartbeatTime.Equal(&now))
		require.True(t, ready.LastTransitionTime.Equal(&before), "it was not ready before")
		require.True(t, inProgress.LastHeartbeatTime.Equal(&now))
		require.True(t, inProgress.LastTransitionTime.Equal(&now), "it is new")
	})
}

// After a shutdown the Ready condition becomes the one that Options.Ready returns, here that of a broken node, and not the
// kubelet's True. PublishNode sets the condition's type, which is wrong here.
func TestReadyOptionIsRestoredAfterAShutdown(t *testing.T) {
	broken := v1.NodeCondition{Type: "Wrong", Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: "container runtime is down"}
	c := newCluster(nodeOf(notReady))
	r := c.reporter(t, func(opts *apistatus.Options) { opts.Ready = func() v1.NodeCondition { return broken } })
	require.NoError(t, r.PublishNode(t.Context(), notShuttingDown))
	require.Equal(t, []conditionText{{v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "container runtime is down"}},
		conditionTexts(c.node(t).Status.Conditions))
}

// A node that does not exist is an error at once: retries would not help.
func TestPublishNodeForAMissingNode(t *testing.T) {
	err := newCluster().reporter(t).PublishNode(t.Context(), reboot)
	require.EqualError(t, err, `node "node-1" does not exist: nodes "node-1" not found`)
}

// NodeConditions is for agents that write the node's conditions themselves, and gets the Ready condition that they have, here
// that of a broken node. During a shutdown it returns another Ready condition, and otherwise this one. It always adds
// GracefulNodeShutdownInProgress.
func TestNodeConditions(t *testing.T) {
	now := time.Date(2026, time.March, 1, 13, 0, 0, 0, time.UTC)
	broken := v1.NodeCondition{Status: v1.ConditionFalse, Reason: "KubeletNotReady", Message: "container runtime is down"}
	for name, test := range map[string]struct {
		state shutdown.NodeState
		want  []conditionText
	}{
		"reboot":                      {state: reboot, want: []conditionText{notReady, rebooting}},
		"shutdown of an unknown kind": {state: shutdown.NodeState{ShuttingDown: true}, want: []conditionText{notReady, {inProgress, v1.ConditionTrue, "NodeShutdown", shutdownMessage}}},
		"no shutdown":                 {state: notShuttingDown, want: []conditionText{{v1.NodeReady, v1.ConditionFalse, "KubeletNotReady", "container runtime is down"}, noShutdown}},
	} {
		t.Run(name, func(t *testing.T) {
			got := apistatus.NodeConditions(test.state, broken, now)
			require.Equal(t, test.want, conditionTexts(got))
			for _, c := range got {
				require.Equal(t, now, c.LastHeartbeatTime.Time)
				require.Equal(t, now, c.LastTransitionTime.Time)
			}
		})
	}
}
