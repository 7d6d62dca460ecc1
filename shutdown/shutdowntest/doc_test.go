//go:build go1.25

package shutdowntest_test

import (
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// The test in the package documentation: a pod takes a minute to end, and has a grace period of 20 s. The kill ends after
// 20 s, and the lock is released at once.
func TestSlowPodIsKilledAtTheEndOfItsGracePeriod(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		host := &shutdowntest.Host{}
		killer := &shutdowntest.Killer{
			Pods: map[string]shutdowntest.Behaviour{"slow": {Takes: time.Minute}},
		}
		manager, err := shutdown.NewManager(shutdown.Options{
			Config:   plan.Config{ShutdownGracePeriod: metav1.Duration{Duration: 30 * time.Second}},
			Source:   host,
			ListPods: shutdown.ListPodsFunc(func() []*v1.Pod { return []*v1.Pod{shutdowntest.Pod("slow", 0, 20)} }, nil),
			Killer:   killer,
		})
		require.NoError(t, err)
		go manager.Run(t.Context()) //nolint:errcheck // the package documentation has this program
		<-manager.Ready()

		start := time.Now()
		host.Announce(source.Event{Kind: source.KindReboot})
		<-time.After(time.Minute)

		kill, found := killer.Kill("slow")
		require.True(t, found)
		require.Equal(t, 20*time.Second, kill.Ended.Sub(start))
		released, ok := host.Released()
		require.True(t, ok)
		require.Equal(t, kill.Ended, released)
		require.NoError(t, host.Err())
	})
}
