//go:build go1.25

package shutdown_test

import (
	"testing"
	"testing/synctest"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// statusAfterShutdown is what a shutdown of this kind makes of a pod's status.
func statusAfterShutdown(t *testing.T, kind shutdown.Kind, status v1.PodStatus) (after v1.PodStatus) {
	t.Helper()
	pod := shutdowntest.Pod("web", 0, 5)
	pod.Status, pod.Generation = status, 7
	inBubble(t, list(pod), func(t *testing.T, n *node) {
		n.opts.Policy = func(kind shutdown.Kind) shutdown.PodPolicy {
			switch kind {
			case shutdown.KindReboot:
				return shutdown.PolicyLeaveAsIs
			case shutdown.KindHalt:
				return shutdown.PolicyDelete
			default:
				return shutdown.PolicySetTerminal
			}
		}
		n.run()
		n.host.Announce(shutdown.Event{Kind: kind})
		synctest.Wait()
		kill, _ := n.killer.Kill("web")
		require.False(t, kill.Request.Evict)
		after = kill.Status
	})
	return after
}

// The status is the kubelet's, unless the policy for the kind says otherwise.
func TestPolicy(t *testing.T) {
	for _, test := range []struct {
		name string
		kind shutdown.Kind
		from v1.PodPhase
		want v1.PodPhase
		left bool
	}{
		{"running", shutdown.KindPoweroff, v1.PodRunning, v1.PodFailed, false},
		{"failed", shutdown.KindPoweroff, v1.PodFailed, v1.PodFailed, false},
		{"succeeded", shutdown.KindUnknown, v1.PodSucceeded, v1.PodSucceeded, false},
		{"left as is", shutdown.KindReboot, v1.PodRunning, v1.PodRunning, true},
		{"deleted", shutdown.KindHalt, v1.PodRunning, v1.PodFailed, false},
	} {
		t.Run(test.name, func(t *testing.T) {
			status := statusAfterShutdown(t, test.kind, v1.PodStatus{Phase: test.from})
			require.Equal(t, test.want, status.Phase)
			if test.left {
				require.Equal(t, v1.PodStatus{Phase: test.from}, status)
				return
			}
			require.Equal(t, "Terminated", status.Reason)
			require.Equal(t, "Pod was terminated in response to imminent node shutdown.", status.Message)
			require.Len(t, status.Conditions, 1)
			require.False(t, status.Conditions[0].LastTransitionTime.IsZero())
			status.Conditions[0].LastTransitionTime = v1.PodCondition{}.LastTransitionTime
			require.Equal(t, v1.PodCondition{
				Type:    v1.DisruptionTarget,
				Status:  v1.ConditionTrue,
				Reason:  "TerminationByKubelet",
				Message: "Pod was terminated in response to imminent node shutdown.",

				ObservedGeneration: 7,
			}, status.Conditions[0])
		})
	}
}

// A condition that is there already is written over, and keeps the time of its
// transition if it was true.
func TestPolicyOverAnOldCondition(t *testing.T) {
	for _, old := range []v1.ConditionStatus{v1.ConditionTrue, v1.ConditionFalse} {
		condition := v1.PodCondition{Type: v1.DisruptionTarget, Status: old, Reason: "EvictionByEvictionAPI"}
		ready := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue}
		status := statusAfterShutdown(t, shutdown.KindPoweroff, v1.PodStatus{Conditions: []v1.PodCondition{ready, condition}})
		require.Len(t, status.Conditions, 2)
		require.Equal(t, ready, status.Conditions[0])
		require.Equal(t, "TerminationByKubelet", status.Conditions[1].Reason)
		require.Equal(t, old == v1.ConditionTrue, status.Conditions[1].LastTransitionTime.IsZero())
	}
}

// The conditions of a shallow copy are not written through to the original.
func TestPolicyWritesToNoSharedConditions(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.run()
		n.announce()
		kill, _ := n.killer.Kill("web")
		original := v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionFalse}}}
		shallow := original
		kill.Request.SetStatus(&shallow)
		require.Equal(t, v1.ConditionFalse, original.Conditions[0].Status)
		require.Equal(t, v1.ConditionTrue, shallow.Conditions[0].Status)
	})
}
