//go:build go1.25

package apistatus_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/apistatus"
)

// FlushPod sends one patch for each of these pods. The body of the patch is compared literally, because other API servers
// must understand it. The time now is that at which a synctest bubble begins.
func TestFinalStatusPatchBody(t *testing.T) {
	const (
		now     = `"2000-01-01T00:00:00Z"`
		earlier = `"2026-03-01T12:00:00Z"`
		failed  = `{"type": "ContainersReady", "status": "False", "lastTransitionTime": ` + now + `, "reason": "PodFailed", "message": ""},
			{"type": "Ready", "status": "False", "lastTransitionTime": ` + now + `, "reason": "PodFailed", "message": ""}`
		disrupted = `{"type": "DisruptionTarget", "status": "True", "lastTransitionTime": ` + now + `,
			"reason": "TerminationByKubelet", "message": "Pod was terminated in response to imminent node shutdown."}`
		terminated = `"phase": "Failed", "reason": "Terminated", "message": "Pod was terminated in response to imminent node shutdown."`
	)
	for name, test := range map[string]struct {
		change func(*v1.Pod) // of the node's pod, which has ended
		want   string
	}{
		"a running pod": {
			func(*v1.Pod) {},
			`{"metadata": {"uid": "uid-web"}, "status": {` + terminated + `, "conditions": [` + disrupted + `,` + failed + `]}}`,
		},
		"observed generations": {
			func(pod *v1.Pod) {
				pod.Generation = 3
				disruption := len(pod.Status.Conditions) - 1             // ended appends DisruptionTarget
				pod.Status.Conditions[disruption].ObservedGeneration = 4 // set by another writer
			},
			`{"metadata": {"uid": "uid-web"}, "status": {` + terminated + `, "observedGeneration": 3, "conditions": [
				{"type": "DisruptionTarget", "observedGeneration": 4, "status": "True", "lastTransitionTime": ` + now + `,
					"reason": "TerminationByKubelet", "message": "Pod was terminated in response to imminent node shutdown."},
				{"type": "ContainersReady", "observedGeneration": 3, "status": "False", "lastTransitionTime": ` + now + `, "reason": "PodFailed", "message": ""},
				{"type": "Ready", "observedGeneration": 3, "status": "False", "lastTransitionTime": ` + now + `, "reason": "PodFailed", "message": ""}]}}`,
		},
		"succeeded": {
			func(pod *v1.Pod) {
				pod.Status = v1.PodStatus{Phase: v1.PodSucceeded}
			},
			`{"metadata": {"uid": "uid-web"}, "status": {"phase": "Succeeded", "reason": "", "message": "", "conditions": [
				{"type": "ContainersReady", "status": "False", "lastTransitionTime": ` + now + `, "reason": "PodCompleted", "message": ""},
				{"type": "Ready", "status": "False", "lastTransitionTime": ` + now + `, "reason": "PodCompleted", "message": ""}]}}`,
		},
		"not ready before": {
			func(pod *v1.Pod) {
				pod.Status.Conditions = []v1.PodCondition{
					condition(v1.PodReady, v1.ConditionFalse, "ContainersNotReady"),
					condition(v1.PodReadyToStartContainers, v1.ConditionFalse, ""),
				}
			},
			`{"metadata": {"uid": "uid-web"}, "status": {` + terminated + `, "conditions": [
				{"type": "PodReadyToStartContainers", "status": "False", "lastTransitionTime": ` + earlier + `, "reason": "", "message": ""},
				{"type": "ContainersReady", "status": "False", "lastTransitionTime": ` + now + `, "reason": "PodFailed", "message": ""},
				{"type": "Ready", "status": "False", "lastTransitionTime": ` + earlier + `, "reason": "PodFailed", "message": ""}]}}`,
		},
		"known and unknown exit codes": {
			func(pod *v1.Pod) {
				pod.Status.ContainerStatuses = []v1.ContainerStatus{
					{Name: "a", Image: "a:1", ImageID: "sha256:a", ContainerID: "containerd://a", State: v1.ContainerState{
						Terminated: &v1.ContainerStateTerminated{ExitCode: 143, Reason: "Error", StartedAt: before, FinishedAt: before, ContainerID: "containerd://a"},
					}},
					{Name: "b", Image: "b:1", ImageID: "sha256:b", ContainerID: "containerd://b", Ready: true, Started: new(bool), RestartCount: 2, State: v1.ContainerState{
						Running: &v1.ContainerStateRunning{StartedAt: before},
					}},
				}
			},
			`{"metadata": {"uid": "uid-web"}, "status": {` + terminated + `, "conditions": [` + disrupted + `,` + failed + `], "containerStatuses": [
				{"name": "a", "state": {"terminated": {"exitCode": 143, "reason": "Error", "startedAt": ` + earlier + `, "finishedAt": ` + earlier + `, "containerID": "containerd://a"}},
					"lastState": {}, "ready": false, "restartCount": 0, "image": "a:1", "imageID": "sha256:a", "containerID": "containerd://a"},
				{"name": "b", "state": {"terminated": {"exitCode": 137, "reason": "ContainerStatusUnknown",
					"message": "The container could not be located when the pod was terminated", "startedAt": null, "finishedAt": null}},
					"lastState": {}, "ready": false, "restartCount": 2, "image": "b:1", "imageID": "sha256:b", "containerID": "containerd://b", "started": false}]}}`,
		},
		"running phase": {
			func(pod *v1.Pod) {
				pod.Status = running("web").Status
				pod.Status.Conditions[containersReadyIndex] = condition(v1.ContainersReady, v1.ConditionFalse, "ContainersNotReady")
			},
			`{"metadata": {"uid": "uid-web"}, "status": {"conditions": [
				{"type": "ContainersReady", "status": "False", "lastTransitionTime": ` + earlier + `, "reason": "ContainersNotReady", "message": ""}]}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				pod := ended(running("web"))
				test.change(pod)
				was := pod.DeepCopy()
				c := flush(t, running("web"), pod)
				require.Equal(t, []string{"patch status"}, c.verbs(), "one request")
				require.JSONEq(t, test.want, c.callsOf("patch status")[0].Body)
				require.Equal(t, was, pod, "the pod is not modified")
			})
		})
	}
}

// The bodies that MarkNotReady and RestoreReadiness send are compared literally, because other API servers must
// understand them. Only the body of RestoreReadiness has a resourceVersion, because it depends on the pod that was read.
func TestReadinessPatchBodies(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		pod := running("web")
		pod.Generation, pod.ResourceVersion = 2, "7"
		c := newCluster(pod)
		require.NoError(t, c.reporter(t).MarkNotReady(t.Context(), pod))
		<-time.After(time.Second)
		require.NoError(t, c.reporter(t).RestoreReadiness(t.Context(), pod))
		require.Equal(t, []string{"patch status", "get", "patch status"}, c.verbs())
		require.JSONEq(t, `{"metadata": {"uid": "uid-web"}, "status": {"conditions": [
			{"type": "Ready", "observedGeneration": 2, "status": "False", "lastTransitionTime": "2000-01-01T00:00:00Z",
				"reason": "TerminationByKubelet", "message": "Pod is being terminated by its node."}]}}`, c.callsOf("patch status")[0].Body)
		require.JSONEq(t, `{"metadata": {"uid": "uid-web", "resourceVersion": "7"}, "status": {"conditions": [
			{"type": "Ready", "observedGeneration": 2, "status": "True", "lastTransitionTime": "2000-01-01T00:00:01Z",
				"reason": "", "message": ""}]}}`, c.callsOf("patch status")[1].Body)
	})
}

// FlushPod gets a running pod, whose status is the API server's. There is nothing to write, so it makes no request.
func TestFlushPodWithoutAChangeSendsNothing(t *testing.T) {
	c := flush(t, running("web"), running("web"))
	require.Empty(t, c.verbs())
}

// A channel cannot be encoded as JSON. twoWayPatch returns an error and does not panic.
func TestTwoWayPatchOfAValueThatIsNotJSON(t *testing.T) {
	_, err := apistatus.TwoWayPatch(make(chan int), 1)
	require.ErrorContains(t, err, "unsupported type")
}
