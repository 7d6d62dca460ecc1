//go:build go1.25

package shutdown_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The end of a pod that outlives its shutdown is added to the stored report, whether the pod
// ends before or after the end of the host's time.
func TestStragglerIsStored(t *testing.T) {
	for _, after := range []time.Duration{25 * time.Second, time.Minute} {
		t.Run(fmt.Sprint("after ", after), func(t *testing.T) {
			inBubbleWithState(t, list(shutdowntest.Pod("stuck", 0, 20)), func(t *testing.T, n *node, one *boot) {
				n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
				n.runOnBoot(one)
				n.announce()
				n.advance(after)
				stored, _, err := shutdown.StoredReport(n.opts.StateDir)
				require.NoError(t, err)
				require.Zero(t, stored.Pods[0].Ended)
				n.killer.Release()
				n.advance(time.Second)
				require.NotZero(t, n.reportOfNextBoot().Pods[0].Ended)
			})
		})
	}
}

// With more than 1,000 pods the state file is not written for each pod that ends, but it is for a
// pod that outlives the shutdown.
func TestStragglerAmongManyPodsIsStored(t *testing.T) {
	for _, position := range []int{0, 1001} {
		t.Run(fmt.Sprint("at ", position), func(t *testing.T) {
			pods := slices.Insert(manyPods(1001, 5), position, shutdowntest.Pod("stuck", 0, 5))
			inBubbleWithState(t, pods, func(t *testing.T, n *node, one *boot) {
				n.killer.Pods = map[string]shutdowntest.Behaviour{"stuck": {Hangs: true, Deaf: true}}
				n.runOnBoot(one)
				n.announce()
				n.advance(time.Minute)
				stored, _, err := shutdown.StoredReport(n.opts.StateDir)
				require.NoError(t, err)
				require.Len(t, stored.Pods, len(pods))
				require.NotZero(t, stored.Ended, "the host was released")
				for i, pod := range stored.Pods {
					require.Equal(t, i == position, pod.Ended.IsZero(), pod.Name)
				}

				n.killer.Release()
				n.advance(time.Second)
				stored, _, err = shutdown.StoredReport(n.opts.StateDir)
				require.NoError(t, err)
				require.Len(t, stored.Pods, len(pods))
				require.True(t, n.lastReport().Pods[position].Ended.Equal(stored.Pods[position].Ended))
				require.NotZero(t, stored.Pods[position].Ended)
			})
		})
	}
}
