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

// Release has no effect on a pod that is terminating and does not hang. The pod needs 30 s to end. A second call shortens its
// grace period to 10 s, and both calls return after 10 s.
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
