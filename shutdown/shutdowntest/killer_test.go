//go:build go1.25

package shutdowntest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	"k8s.io/utils/ptr"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A pod needs 30 s to end. Release does not end its kill, because the pod does not hang. A second call shortens the grace
// period to 10 s, and both calls return after 10 s.
func TestReleaseLeavesAPodThatDoesNotHang(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		killer := &shutdowntest.Killer{Default: shutdowntest.Behaviour{Takes: 30 * time.Second}}
		began, pod := time.Now(), shutdowntest.Pod("web", 0, 30)
		first := make(chan error)
		go func() {
			_, err := killer.KillPod(t.Context(), pod, shutdown.KillRequest{})
			first <- err
		}()
		synctest.Wait()
		killer.Release()
		_, err := killer.KillPod(t.Context(), pod, shutdown.KillRequest{GracePeriodSeconds: ptr.To[int64](10)})
		require.NoError(t, err)
		require.NoError(t, <-first)
		require.Equal(t, 10*time.Second, time.Since(began))
	})
}
