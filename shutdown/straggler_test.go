package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Of very many pods, too, the end of one that has outlived the shutdown is stored.
func TestTheEndOfAStragglerAmongManyPodsIsStored(t *testing.T) {
	dir := t.TempDir()
	pods := append(manyPods(1001, 5), shutdowntest.Pod("stuck", 0, 5))
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.opts.StateDir = dir
		n.killer.Pods = map[string]shutdowntest.Behaviour{"stuck": {Hangs: true, Deaf: true}}
		n.runOnBoot(&boot{id: "one", began: time.Now()})
		n.announce()
		n.advance(time.Minute)
		stuck := func() time.Time {
			stored, _, err := shutdown.StoredReport(dir)
			require.NoError(t, err)
			require.Len(t, stored.Pods, len(pods))
			require.NotZero(t, stored.Pods[0].Ended)
			return stored.Pods[len(pods)-1].Ended
		}
		require.Zero(t, stuck())
		n.killer.Release()
		n.advance(time.Second)
		require.NotZero(t, stuck())
	})
}
