package apistatus_test

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// takenOut is the Ready condition of a pod that MarkReady has taken out.
func takenOut() v1.PodCondition {
	c := condition(v1.PodReady, v1.ConditionFalse, apistatus.ReasonTakenOut)
	c.Message = apistatus.MessageTakenOut
	return c
}

// mark calls MarkReady for a pod and gives its Ready condition and what was asked.
func mark(t *testing.T, pod *v1.Pod, ready bool) (v1.PodCondition, *cluster) {
	t.Helper()
	c := newCluster(pod)
	own := pod.DeepCopy()
	own.Generation = 2
	require.NoError(t, c.reporter(t).MarkReady(t.Context(), []*v1.Pod{own}, ready))
	return c.pod(t, pod.Name).Status.Conditions[2], c
}

func TestTakeOut(t *testing.T) {
	got, c := mark(t, running("web"), false)
	require.Equal(t, v1.ConditionFalse, got.Status)
	require.Equal(t, "TerminationByKubelet", got.Reason)
	require.Equal(t, "Pod is being terminated by its node.", got.Message)
	require.EqualValues(t, 2, got.ObservedGeneration)
	require.False(t, got.LastTransitionTime.Equal(&before))
	require.Equal(t, []string{"get", "patch status"}, c.verbs())
	require.Contains(t, c.all("patch status")[0].Body, `"uid":"uid-web"`)
	require.Equal(t, v1.ConditionTrue, c.pod(t, "web").Status.Conditions[3].Status, "its containers are ready all the same")
}

func TestPodsThatAreLeftInPeace(t *testing.T) {
	with := func(change func(*v1.Pod)) *v1.Pod {
		pod := running("web")
		change(pod)
		return pod
	}
	for name, pod := range map[string]*v1.Pod{
		"not ready":     with(func(pod *v1.Pod) { pod.Status.Conditions[2].Status = v1.ConditionFalse }),
		"not known":     with(func(pod *v1.Pod) { pod.Status.Conditions[2].Type = "Other" }),
		"ended":         with(func(pod *v1.Pod) { pod.Status.Phase = v1.PodFailed }),
		"completed":     with(func(pod *v1.Pod) { pod.Status.Phase = v1.PodSucceeded }),
		"taken already": with(func(pod *v1.Pod) { pod.Status.Conditions[2] = takenOut() }),
	} {
		t.Run(name, func(t *testing.T) {
			_, c := mark(t, pod, false)
			require.Equal(t, []string{"get"}, c.verbs())
		})
	}
	for name, pod := range map[string]*v1.Pod{
		"ready": running("web"),
		"another message": with(func(pod *v1.Pod) {
			pod.Status.Conditions[2] = condition(v1.PodReady, v1.ConditionFalse, apistatus.ReasonTakenOut)
		}),
		"another reason": with(func(pod *v1.Pod) {
			pod.Status.Conditions[2] = takenOut()
			pod.Status.Conditions[2].Reason = "ContainersNotReady"
		}),
		"not known": with(func(pod *v1.Pod) { pod.Status.Conditions[2].Type = "Other" }),
		"ended": with(func(pod *v1.Pod) {
			pod.Status.Conditions[2], pod.Status.Phase = takenOut(), v1.PodFailed
		}),
	} {
		t.Run("put back: "+name, func(t *testing.T) {
			_, c := mark(t, pod, true)
			require.Equal(t, []string{"get"}, c.verbs())
		})
	}
}

func TestPutBack(t *testing.T) {
	for name, test := range map[string]struct {
		change          func(*v1.Pod)
		status          v1.ConditionStatus
		reason, message string
	}{
		"ready again": {func(*v1.Pod) {}, v1.ConditionTrue, "", ""},
		"containers are not ready": {func(pod *v1.Pod) {
			pod.Status.Conditions[3] = v1.PodCondition{
				Type: v1.ContainersReady, Status: v1.ConditionFalse,
				Reason: "ContainersNotReady", Message: "containers with unready status: [a]",
			}
		}, v1.ConditionFalse, "ContainersNotReady", "containers with unready status: [a]"},
		"nothing is known of the containers": {func(pod *v1.Pod) {
			pod.Status.Conditions[3].Type = "Other"
		}, v1.ConditionFalse, "ContainersNotReady", ""},
		"an open gate": {func(pod *v1.Pod) {
			pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/gate"}}
		}, v1.ConditionTrue, "", ""},
		"closed gates": {
			func(pod *v1.Pod) {
				pod.Spec.ReadinessGates = []v1.PodReadinessGate{{ConditionType: "example.com/gate"}, {ConditionType: "example.com/none"}}
				pod.Status.Conditions[1].Status = v1.ConditionFalse
			}, v1.ConditionFalse, "ReadinessGatesNotReady",
			`the status of pod readiness gate "example.com/gate" is not "True", but False, ` +
				`corresponding condition of pod readiness gate "example.com/none" does not exist.`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			pod := running("web")
			pod.Status.Conditions[2] = takenOut()
			test.change(pod)
			got, _ := mark(t, pod, true)
			require.Equal(t, test.status, got.Status)
			require.Equal(t, test.reason, got.Reason)
			require.Equal(t, test.message, got.Message)
			require.Equal(t, test.status == v1.ConditionFalse, got.LastTransitionTime.Equal(&before))
		})
	}
}

func TestAPodThatWasTakenOutEnds(t *testing.T) {
	pod := running("web")
	pod.Status.Conditions[2] = takenOut()
	got := flush(t, pod, ended(running("web"))).pod(t, "web").Status
	require.Contains(t, sketches(got), sketch{v1.PodReady, v1.ConditionFalse, "PodFailed", 0, false})
}

func TestEndpointConditions(t *testing.T) {
	with := func(ready, containers v1.PodCondition) *v1.Pod {
		return &v1.Pod{Status: v1.PodStatus{Conditions: []v1.PodCondition{ready, containers}}}
	}
	yes, no := condition(v1.PodReady, v1.ConditionTrue, ""), condition(v1.PodReady, v1.ConditionFalse, "")
	up, down := condition(v1.ContainersReady, v1.ConditionTrue, ""), condition(v1.ContainersReady, v1.ConditionFalse, "")
	for name, test := range map[string]struct {
		pod     *v1.Pod
		serving bool
	}{
		"ready":                         {with(yes, up), true},
		"not ready":                     {with(no, down), false},
		"a gate is closed":              {with(no, up), false},
		"taken out":                     {with(takenOut(), up), true},
		"taken out, and down":           {with(takenOut(), down), false},
		"taken out, nothing else known": {with(takenOut(), yes), false},
		"nothing is known":              {&v1.Pod{}, false},
		"no pod":                        {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			got := apistatus.EndpointConditions(test.pod)
			require.False(t, *got.Ready)
			require.True(t, *got.Terminating)
			require.Equal(t, test.serving, *got.Serving)
		})
	}
}
