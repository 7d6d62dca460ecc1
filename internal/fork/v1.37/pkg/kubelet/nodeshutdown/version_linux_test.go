package nodeshutdown

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"k8s.io/kubernetes/pkg/features"
	"k8s.io/kubernetes/pkg/kubelet/lifecycle"
	"k8s.io/kubernetes/pkg/vectors"
)

// syncFunc returns f with the type of SyncNodeStatusFunc.
func syncFunc(f func()) func(context.Context) { return func(context.Context) { f() } }

// startManager runs a manager until ctx ends.
func startManager(ctx context.Context, m Manager) error {
	return m.Start(ctx)
}

// admit asks a manager to admit a pod, or nil.
func admit(m Manager, pod *v1.Pod) lifecycle.PodAdmitResult {
	if pod == nil {
		return m.Admit(context.Background(), nil)
	}
	return m.Admit(context.Background(), &lifecycle.PodAdmitAttributes{Pod: pod})
}

// A static pod with the generation 7 is killed. Its condition gets this generation if the gate is on, or if the
// condition had a generation before.
func TestTheConditionHasThePodsGeneration(t *testing.T) {
	for name, c := range map[string]struct {
		gateOff bool
		before  int64 // the condition's generation; 0: there is no condition
		want    int64
	}{
		"gate on":                     {want: 7},
		"gate off":                    {gateOff: true},
		"gate off, with a generation": {gateOff: true, before: 3, want: 7},
	} {
		t.Run(name, func(t *testing.T) {
			vectors.SetGate(t, features.PodObservedGenerationTracking, !c.gateOff)
			synctest.Test(t, func(t *testing.T) {
				pod := shortPod("etcd", regular)
				pod.Generation, pod.Annotations = 7, map[string]string{"kubernetes.io/config.source": "file"}
				if c.before != 0 {
					pod.Status.Conditions = []v1.PodCondition{{Type: v1.DisruptionTarget, Status: v1.ConditionFalse, ObservedGeneration: c.before}}
				}
				k := newKubelet(pod)
				k.startAndAnnounce(t, k.defaultConfig())
				advance(time.Minute)
				require.Equal(t, c.want, k.pods[0].Status.Conditions[0].ObservedGeneration)
			})
		})
	}
}
