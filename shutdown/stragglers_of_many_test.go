package shutdown_test

import (
	"fmt"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// Of very many pods nothing is stored as each one ends. The end of a pod that has outlived the
// shutdown is stored all the same.
func TestStragglerOfVeryManyPodsIsStored(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("stuck", 0, 60)}
	for i := range 1000 {
		pods = append(pods, shutdowntest.Pod(fmt.Sprintf("web-%d", i), 0, 60))
	}
	inBubble(t, pods, func(t *testing.T, n *node) {
		dir := t.TempDir()
		n.opts.StateDir = dir
		n.killer.Pods = map[string]shutdowntest.Behaviour{"stuck": {Hangs: true, Deaf: true}}
		n.run()
		n.announce()
		n.advance(time.Minute)
		stored, found, err := shutdown.StoredReport(dir)
		require.NoError(t, err)
		require.True(t, found)
		require.Len(t, stored.Pods, len(pods))
		require.False(t, stored.Ended.IsZero(), "the host was let go")
		require.Zero(t, stored.Pods[0].Ended, "it may still run")

		n.killer.Release()
		synctest.Wait()
		n.advance(time.Second)
		stored, _, err = shutdown.StoredReport(dir)
		require.NoError(t, err)
		require.Len(t, stored.Pods, len(pods))
		require.True(t, n.lastReport().Pods[0].Ended.Equal(stored.Pods[0].Ended), "it has ended since, which is stored")
	})
}
