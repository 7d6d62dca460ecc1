package fork

import (
	"errors"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/record"

	"github.com/kubegrace/kubegrace/shutdown/podkiller"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

const lowMemory = "The node was low on resource: memory."

// The grace periods of the eviction manager: 1 s at a hard threshold, the lesser of the
// maximum and the pod's own at a soft one.
func TestEvictionGracePeriods(t *testing.T) {
	for name, c := range map[string]struct {
		hard         bool
		own, maximum int64
		want         int64
	}{
		"hard":                               {hard: true, own: 60, maximum: 5, want: 1},
		"soft, the maximum is less":          {own: 60, maximum: 5, want: 5},
		"soft, the pod's own is less":        {own: 3, maximum: 5, want: 3},
		"soft, the pod has none":             {own: -1, maximum: 5, want: 5},
		"soft, no maximum was set":           {own: 60, want: 0},
		"soft, a negative maximum is no end": {own: 60, maximum: -1, want: 60},
	} {
		t.Run(name, func(t *testing.T) {
			pod, events := shutdowntest.Pod("web", 0, c.own), record.NewFakeRecorder(1)
			var grace int64
			m := &managerImpl{maxPodGracePeriodSeconds: c.maximum, recorder: events, killPodFunc: func(_ *v1.Pod, isEvicted bool, override *int64, fn func(*v1.PodStatus)) error {
				require.True(t, isEvicted)
				grace = *override
				fn(&pod.Status)
				return errors.New("an eviction that failed has been tried")
			}}
			require.True(t, m.evictPod(t.Context(), pod, m.request(pod, c.hard, lowMemory), lowMemory, nil))
			require.Equal(t, c.want, grace)
			require.Equal(t, []string{"Warning Evicted " + lowMemory}, recordedEvents(events))
			require.Equal(t, []string{"Failed", "Evicted", lowMemory}, []string{string(pod.Status.Phase), pod.Status.Reason, pod.Status.Message})
			require.Equal(t, v1.DisruptionTarget, pod.Status.Conditions[0].Type)
		})
	}
}

// Static pods and those of a critical priority are not evicted.
func TestCriticalPodsAreNotEvicted(t *testing.T) {
	m := &managerImpl{killPodFunc: func(*v1.Pod, bool, *int64, func(*v1.PodStatus)) error { panic("it is killed") }}
	static := shutdowntest.Pod("static", 0, 5)
	static.Annotations = map[string]string{"kubernetes.io/config.source": "file"}
	for _, pod := range []*v1.Pod{static, shutdowntest.Pod("dns", 2_000_000_000, 5)} {
		require.False(t, m.evictPod(t.Context(), pod, podkiller.HardEviction(lowMemory), lowMemory, nil), pod.Name)
	}
}
