package apistatus_test

import (
	"context"
	"fmt"
	"net/url"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
)

// before is the time of everything that the API server has when a test starts.
var before = metav1.NewTime(time.Date(2026, time.March, 1, 12, 0, 0, 0, time.UTC))

// The indexes of the conditions that running gives a pod.
const gateIndex, readyIndex, containersReadyIndex = 1, 2, 3

// running returns a running, ready pod.
func running(name string) *v1.Pod {
	return &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: metav1.NamespaceDefault, UID: types.UID("uid-" + name)},
		Spec:       v1.PodSpec{Containers: []v1.Container{{Name: "app", Image: "app:1"}}},
		Status: v1.PodStatus{
			Phase: v1.PodRunning, PodIP: "10.0.0.7", HostIP: "192.168.0.1", StartTime: &before, QOSClass: v1.PodQOSBestEffort,
			Conditions: []v1.PodCondition{
				condition(v1.PodScheduled, v1.ConditionTrue, ""),
				condition("example.com/gate", v1.ConditionTrue, ""),
				condition(v1.PodReady, v1.ConditionTrue, ""),
				condition(v1.ContainersReady, v1.ConditionTrue, ""),
			},
		},
	}
}

// condition returns a pod condition that was set at the time before.
func condition(conditionType v1.PodConditionType, status v1.ConditionStatus, reason string) v1.PodCondition {
	return v1.PodCondition{Type: conditionType, Status: status, Reason: reason, LastTransitionTime: before}
}

// ended returns a copy of a pod with the final status that a shutdown sets.
func ended(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	if pod.Status.Phase != v1.PodSucceeded {
		pod.Status.Phase = v1.PodFailed
	}
	pod.Status.Reason, pod.Status.Message = "Terminated", "Pod was terminated in response to imminent node shutdown."
	pod.Status.Conditions = append(pod.Status.Conditions, v1.PodCondition{
		Type: v1.DisruptionTarget, Status: v1.ConditionTrue,
		Reason: v1.PodReasonTerminationByKubelet, Message: "Pod was terminated in response to imminent node shutdown.",
	})
	return pod
}

// deleted returns a copy of a pod with a deletion timestamp.
func deleted(pod *v1.Pod) *v1.Pod {
	pod = pod.DeepCopy()
	pod.DeletionTimestamp = &before
	return pod
}

// conditionSummary is a pod condition without its times.
type conditionSummary struct {
	Type       v1.PodConditionType
	Status     v1.ConditionStatus
	Reason     string
	Generation int64
	Moved      bool // its last transition is later than the time before
}

// conditionSummaries returns the conditions of a status without their times, so that tests can compare them.
func conditionSummaries(status v1.PodStatus) []conditionSummary {
	var found []conditionSummary
	for _, c := range status.Conditions {
		found = append(found, conditionSummary{c.Type, c.Status, c.Reason, c.ObservedGeneration, !c.LastTransitionTime.Equal(&before)})
	}
	return found
}

// flush calls FlushPod(pod) in a cluster whose API server has serverPod, and returns the cluster.
func flush(t *testing.T, serverPod, pod *v1.Pod) *cluster {
	t.Helper()
	c := newCluster(serverPod)
	require.NoError(t, c.reporter(t).FlushPod(t.Context(), pod))
	return c
}

// podsAndFinalStatuses returns n running pods, and copies with their final statuses.
func podsAndFinalStatuses(n int) (live []runtime.Object, final []*v1.Pod) {
	for i := range n {
		pod := running(fmt.Sprintf("web-%03d", i))
		live, final = append(live, pod), append(final, ended(pod))
	}
	return live, final
}

// hang waits until the request is cancelled.
func hang(ctx context.Context, _ call) error {
	<-ctx.Done()
	return &url.Error{Op: "Get", URL: "http://server", Err: context.Cause(ctx)}
}
