package eviction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	"k8s.io/kubernetes/pkg/vectors"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The grace periods of the eviction manager: 1 s at a hard threshold, the lesser of the maximum
// and the pod's own at a soft one. A negative maximum is the pod's own with the gate on.
func TestEvictionGracePeriods(t *testing.T) {
	for name, c := range map[string]struct {
		hard, off            bool
		own, maximum, result int64
	}{
		"hard":                                  {hard: true, own: 60, maximum: 5, result: 1},
		"soft, the maximum is less":             {own: 60, maximum: 5, result: 5},
		"soft, the pod's own is less":           {own: 3, maximum: 5, result: 3},
		"soft, the pod has none":                {own: -1, maximum: 5, result: 5},
		"soft, no maximum was set":              {own: 60, result: 0},
		"soft, a negative maximum is none":      {own: 60, maximum: -1, result: 60},
		"soft, a negative maximum, as upstream": {off: true, own: 60, maximum: -1, result: -1},
	} {
		t.Run(name, func(t *testing.T) {
			vectors.SetGate(t, kubegrace.Termination, !c.off)
			m := &managerImpl{config: Config{MaxPodGracePeriodSeconds: c.maximum}}
			require.Equal(t, c.result, m.gracePeriodOf(shutdowntest.Pod("web", 0, c.own), c.hard))
		})
	}
}
