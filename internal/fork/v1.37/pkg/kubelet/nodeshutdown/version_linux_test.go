package nodeshutdown

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"

	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/vectors"
)

func syncs(f func()) func(context.Context) { return func(context.Context) { f() } }

// startManager starts a manager until ctx ends.
func startManager(ctx context.Context, m Manager) error {
	return m.Start(ctx)
}

func admit(m Manager, pod *v1.Pod) lifecycle.PodAdmitResult {
	if pod == nil {
		return m.Admit(context.Background(), nil)
	}
	return m.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: pod})
}

// The condition of a killed pod has the pod's generation where the gate is on, or where it has one
// already; static pods are no exception.
func TestGenerationOfTheCondition(t *testing.T) {
	for name, c := range map[string]struct {
		off  bool
		had  int64
		want int64
	}{
		"on":              {want: 7},
		"off":             {off: true},
		"off, it had one": {off: true, had: 3, want: 7},
	} {
		t.Run(name, func(t *testing.T) {
			vectors.SetGate(t, features.PodObservedGenerationTracking, !c.off)
			synctest.Test(t, func(t *testing.T) {
				pod := shutdowntest.Pod("etcd", 0, 5)
				pod.Generation, pod.Annotations = 7, map[string]string{"kubernetes.io/config.source": "file"}
				if c.had != 0 {
					pod.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionFalse, ObservedGeneration: c.had}}
				}
				k := newKubelet(pod)
				k.drained(t, k.thirtyTen())
				advance(time.Minute)
				require.Equal(t, c.want, k.pods[0].Status.Conditions[0].ObservedGeneration)
			})
		})
	}
}
