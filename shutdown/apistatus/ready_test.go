package apistatus_test

import (
	"net/http"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
)

// markedNotReady returns the Ready condition that MarkNotReady sets.
func markedNotReady() v1.PodCondition {
	c := condition(v1.PodReady, v1.ConditionFalse, v1.PodReasonTerminationByKubelet)
	c.Message = "Pod is being terminated by its node."
	return c
}

// runningWith returns a running pod after change has changed it.
func runningWith(change func(*v1.Pod)) *v1.Pod {
	pod := running("web")
	change(pod)
	return pod
}

// MarkNotReady makes no request for a pod that is not ready, has ended, or is marked already, which saves time in a shutdown.
// A pod without a Ready condition, whose readiness the agent does not know, is marked.
func TestMarkNotReadySkipsPodsThatAreNotReady(t *testing.T) {
	for name, pod := range map[string]*v1.Pod{
		"not ready": runningWith(func(pod *v1.Pod) { pod.Status.Conditions[readyIndex].Status = v1.ConditionFalse }),
		"ended":     runningWith(func(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed }),
		"completed": runningWith(func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded }),
		"marked":    runningWith(func(pod *v1.Pod) { pod.Status.Conditions[readyIndex] = markedNotReady() }),
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(pod)
			require.NoError(t, c.reporter(t).MarkNotReady(t.Context(), pod))
			require.Empty(t, c.verbs())
		})
	}
	t.Run("unknown readiness", func(t *testing.T) {
		c := newCluster(running("web"))
		require.NoError(t, c.reporter(t).MarkNotReady(t.Context(), runningWith(func(pod *v1.Pod) { pod.Status.Conditions = nil })))
		require.Equal(t, v1.ConditionFalse, c.pod(t, "web").Status.Conditions[readyIndex].Status)
	})
}

// restore calls RestoreReadiness in a cluster whose API server has serverPod. The node's own pod has the generation 1. It
// returns the pod's Ready condition after the call, and the cluster.
func restore(t *testing.T, serverPod *v1.Pod) (v1.PodCondition, *cluster) {
	t.Helper()
	c := newCluster(serverPod)
	pod := running("web")
	pod.Generation = 1
	require.NoError(t, c.reporter(t).RestoreReadiness(t.Context(), pod))
	return c.pod(t, pod.Name).Status.Conditions[readyIndex], c
}

// RestoreReadiness reverts only a Ready condition with the reason and the message that MarkNotReady sets. It reads each of
// these pods and writes nothing: they have another Ready condition or none, have ended, or have another UID.
func TestRestoreReadinessSkipsPodsThatAreNotMarked(t *testing.T) {
	for name, pod := range map[string]*v1.Pod{
		"ready": running("web"),
		"another message": runningWith(func(pod *v1.Pod) {
			pod.Status.Conditions[readyIndex] = condition(v1.PodReady, v1.ConditionFalse, v1.PodReasonTerminationByKubelet)
		}),
		"another reason": runningWith(func(pod *v1.Pod) {
			pod.Status.Conditions[readyIndex] = markedNotReady()
			pod.Status.Conditions[readyIndex].Reason = "ContainersNotReady"
		}),
		"no Ready condition": runningWith(func(pod *v1.Pod) { pod.Status.Conditions[readyIndex].Type = "Other" }),
		"ended": runningWith(func(pod *v1.Pod) {
			pod.Status.Conditions[readyIndex], pod.Status.Phase = markedNotReady(), v1.PodFailed
		}),
		"another pod": runningWith(func(pod *v1.Pod) {
			pod.Status.Conditions[readyIndex], pod.UID = markedNotReady(), "another"
		}),
	} {
		t.Run(name, func(t *testing.T) {
			_, c := restore(t, pod)
			require.Equal(t, []string{"get"}, c.verbs())
		})
	}
}

// A request of MarkNotReady or RestoreReadiness fails. The error wraps the API server's answer, by which the caller decides
// whether it repeats the call.
func TestReadinessErrorsWrapTheServersAnswer(t *testing.T) {
	pod := runningWith(func(pod *v1.Pod) { pod.Status.Conditions[readyIndex] = markedNotReady() })
	for _, verb := range []string{"get", "patch status"} {
		c := newCluster(pod)
		c.fault = failFirst(1, verb, statusError(http.StatusForbidden))
		require.True(t, apierrors.IsForbidden(c.reporter(t).RestoreReadiness(t.Context(), pod)))
	}
	c := newCluster(pod)
	c.fault = failFirst(1, anyVerb, statusError(http.StatusForbidden))
	require.True(t, apierrors.IsForbidden(c.reporter(t).MarkNotReady(t.Context(), running("web"))))
}

// RestoreReadiness makes a marked pod ready only if its containers are ready and its readiness gates are met. Otherwise the
// Ready condition stays False with the kubelet's reason and message, and keeps its transition time. The condition keeps its
// observed generation, 2, because the node's own pod has an older one, 1.
func TestRestoreReadinessComputesReady(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*v1.Pod)
		status          v1.ConditionStatus
		reason, message string
	}{
		"ready again": {change: func(*v1.Pod) {}, status: v1.ConditionTrue},
		"containers are not ready": {change: func(pod *v1.Pod) {
			pod.Status.Conditions[containersReadyIndex] = v1.PodCondition{
				Type: v1.ContainersReady, Status: v1.ConditionFalse,
				Reason: "ContainersNotReady", Message: "containers with unready status: [a]",
			}
		}, status: v1.ConditionFalse, reason: "ContainersNotReady", message: "containers with unready status: [a]"},
		"no ContainersReady condition": {change: func(pod *v1.Pod) {
			pod.Status.Conditions[containersReadyIndex].Type = "Other"
		}, status: v1.ConditionFalse, reason: "ContainersNotReady"},
		"met readiness gate": {change: func(pod *v1.Pod) {
			pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/gate"}}
		}, status: v1.ConditionTrue},
		"unmet readiness gates": {
			change: func(pod *v1.Pod) {
				pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/gate"}, {ConditionType: "example.com/none"}}
				pod.Status.Conditions[gateIndex].Status = v1.ConditionFalse
			},
			status: v1.ConditionFalse, reason: "ReadinessGatesNotReady",
			message: `the status of pod readiness gate "example.com/gate" is not "True", but False, ` +
				`corresponding condition of pod readiness gate "example.com/none" does not exist.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := running("web")
			pod.Status.Conditions[readyIndex] = markedNotReady()
			pod.Status.Conditions[readyIndex].ObservedGeneration = 2 // newer than the generation of the pod that restore passes
			test.change(pod)
			got, _ := restore(t, pod)
			require.EqualValues(t, 2, got.ObservedGeneration, "the newer of both generations")
			require.Equal(t, test.status, got.Status)
			require.Equal(t, test.reason, got.Reason)
			require.Equal(t, test.message, got.Message)
			keptTransitionTime := got.LastTransitionTime.Equal(&before)
			require.Equal(t, test.status == v1.ConditionFalse, keptTransitionTime)
		})
	}
}
