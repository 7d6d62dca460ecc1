package eviction

import (
	"testing"

	"github.com/stretchr/testify/require"

	"k8s.io/kubernetes/pkg/kubelet/kubegrace"
	"k8s.io/kubernetes/pkg/vectors"

	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// At a hard threshold, the grace period of an eviction is 1 s. At a soft threshold, it is the shorter of the configured
// maximum and the pod's own grace period. Without a configured maximum, which is then 0, it is 0 s. With the gate on, a
// negative maximum means the pod's own grace period; with the gate off, the result is the negative maximum.
func TestEvictionGracePeriods(t *testing.T) {
	for name, c := range map[string]struct {
		hard, gateOff      bool
		own, maximum, want int64 // in seconds; own is the pod's, and -1 if it has none
	}{
		"hard threshold":                      {hard: true, own: 60, maximum: 5, want: 1},
		"soft, lower maximum":                 {own: 60, maximum: 5, want: 5},
		"soft, lower grace period of the pod": {own: 3, maximum: 5, want: 3},
		"soft, no grace period of the pod":    {own: -1, maximum: 5, want: 5},
		"soft, no maximum":                    {own: 60, want: 0},
		"soft, negative maximum":              {own: 60, maximum: -1, want: 60},
		"soft, negative maximum, gate off":    {gateOff: true, own: 60, maximum: -1, want: -1},
	} {
		t.Run(name, func(t *testing.T) {
			vectors.SetGate(t, kubegrace.Termination, !c.gateOff)
			m := &managerImpl{config: Config{MaxPodGracePeriodSeconds: c.maximum}}
			const priority = 0
			require.Equal(t, c.want, m.gracePeriodOf(shutdowntest.Pod("web", priority, c.own), c.hard))
		})
	}
}
