package podcondition_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
)

// Set changes the status, reason and message of a condition, LastTransitionTime only together with the status, and no
// other fields. The status shares its list of conditions with a cached one. The cached list is changed neither by Set nor
// by a later SetObservedGeneration.
func TestSet(t *testing.T) {
	before, now := metav1.NewTime(time.Unix(1, 0)), metav1.NewTime(time.Unix(2, 0))
	ready := v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, Message: "old", LastTransitionTime: before, LastProbeTime: before, ObservedGeneration: 3}
	scheduled := v1.PodCondition{Type: v1.PodScheduled, Status: v1.ConditionTrue}
	for name, test := range map[string]struct {
		set, want v1.PodCondition // the argument of Set, and the condition afterwards
	}{
		"status changes": {
			set:  v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "Why", Message: "new", LastProbeTime: now},
			want: v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: "Why", Message: "new", ObservedGeneration: 3, LastTransitionTime: now, LastProbeTime: before},
		},
		"status stays": {
			set:  v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, Reason: "Why"},
			want: v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionTrue, Reason: "Why", ObservedGeneration: 3, LastTransitionTime: before, LastProbeTime: before},
		},
		"new condition": {
			set:  v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, ObservedGeneration: 4, LastProbeTime: before},
			want: v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, ObservedGeneration: 4, LastProbeTime: before, LastTransitionTime: now},
		},
		"new condition with a time": {
			set:  v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, LastTransitionTime: before},
			want: v1.PodCondition{Type: v1.DisruptionTarget, Status: v1.ConditionTrue, LastTransitionTime: before},
		},
	} {
		t.Run(name, func(t *testing.T) {
			cached := v1.PodStatus{Conditions: []v1.PodCondition{scheduled, ready}}
			status := cached
			podcondition.Set(&status, test.set, now)
			require.Equal(t, test.want, *podcondition.Get(&status, test.set.Type))
			require.Equal(t, scheduled, *podcondition.Get(&status, v1.PodScheduled))
			podcondition.SetObservedGeneration(&status, test.set.Type, 9)
			require.Equal(t, []v1.PodCondition{scheduled, ready}, cached.Conditions, "the cached list is not changed")
		})
	}
	require.Nil(t, podcondition.Get(&v1.PodStatus{}, v1.PodReady))
}

// A status has the conditions Ready and DisruptionTarget. SetObservedGeneration sets the generation of DisruptionTarget alone, and does
// nothing for PodScheduled, which the status does not have.
func TestObserve(t *testing.T) {
	status := v1.PodStatus{Conditions: []v1.PodCondition{{Type: v1.PodReady}, {Type: v1.DisruptionTarget, ObservedGeneration: 2}}}
	podcondition.SetObservedGeneration(&status, v1.DisruptionTarget, 3)
	podcondition.SetObservedGeneration(&status, v1.PodScheduled, 3)
	require.Equal(t, []v1.PodCondition{{Type: v1.PodReady}, {Type: v1.DisruptionTarget, ObservedGeneration: 3}}, status.Conditions)
}

// The generation of a static pod is 0: the API server knows the pod only as its mirror pod, which has a generation of
// its own.
func TestGeneration(t *testing.T) {
	pod := &v1.Pod{ObjectMeta: metav1.ObjectMeta{Generation: 3}}
	require.EqualValues(t, 3, podcondition.Generation(pod))
	static := pod.DeepCopy()
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	require.Zero(t, podcondition.Generation(static))
}
