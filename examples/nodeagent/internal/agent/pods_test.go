package agent

import (
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

func specOf(name string, priority int32) *v1.Pod {
	return &v1.Pod{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name)}, Spec: v1.PodSpec{Priority: &priority}}
}

func TestPodsAreInTheOrderOfTheirStop(t *testing.T) {
	schedule := plan.Schedule{{Priority: 0, Seconds: 1}, {Priority: 1000, Seconds: 1}}
	list := newPods([]*v1.Pod{specOf("high", 1000), specOf("negative", -5), specOf("low", 7), specOf("also", 7)}, schedule)
	var names []string
	for _, p := range list.all {
		names = append(names, p.spec.Name)
	}
	require.Equal(t, []string{"negative", "low", "also", "high"}, names)
	require.EqualValues(t, 1000, list.find("high").bucket)
	require.EqualValues(t, 0, list.find("negative").bucket)
	require.Nil(t, list.find("unknown"))
	require.EqualValues(t, 0, newPods([]*v1.Pod{specOf("a", 5)}, nil).all[0].bucket, "no schedule is one bucket")
}

// A shutdown stops the active pods. A pod whose start has not begun is not one of them: the
// shutdown refuses its start.
func TestActivePods(t *testing.T) {
	list := newPods([]*v1.Pod{specOf("waits", 0), specOf("starts", 0), specOf("runs", 0), specOf("failed", 0), specOf("gone", 0)}, nil)
	for _, p := range list.all[1:] {
		p.beginStart(func(error) {})
	}
	list.find("runs").endStart([]lifecycle.Container{{Name: "app"}}, nil, nil)
	list.find("failed").endStart(nil, nil, shutdown.ErrNodeShuttingDown)
	list.find("gone").endStart(nil, nil, nil)
	list.find("gone").beginStop(5)
	list.find("gone").endStop(nil)

	var active []string
	for _, pod := range list.active() {
		active = append(active, pod.Name)
	}
	require.Equal(t, []string{"starts", "runs"}, active)
	require.Zero(t, list.shutdownStopsUnderWay())
	list.find("runs").beginStop(5)
	require.Equal(t, 1, list.shutdownStopsUnderWay())
	require.Len(t, list.active(), 2, "a pod that is being stopped still counts")
}
