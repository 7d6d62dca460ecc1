package shutdown

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// A bucket waits for the statuses of its pods that have ended. These include a pod that ends only
// while the bucket waits for the status of another one.
func TestAnyUnacknowledgedLooksAgainAtPodsThatRan(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		ends := map[string]chan struct{}{"slow": make(chan struct{}), "quick": make(chan struct{})}
		killing := &kills.Killing{
			Context: t.Context(),
			Calls:   &call.Group{},
			Halted:  func() bool { return false },
			Seconds: func(*v1.Pod) int64 { return 20 },
			Kill: func(_ context.Context, pod *v1.Pod, _ int64) (kills.Result, error) {
				<-ends[pod.Name]
				return kills.Result{}, nil
			},
			Earlier:   func(types.UID) *kills.Kill { return nil },
			Signalled: func(*kills.Kill) {},
			Ended:     func(*kills.Kill) {},
		}
		pods := []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "slow"}}, {ObjectMeta: metav1.ObjectMeta{Name: "quick"}}}
		picked := kills.NewRoster(time.Now()).Pick(pods, 0, func(*v1.Pod) (int32, bool) { return 0, true })
		slow, quick := picked[0], picked[1]
		killing.Start(picked)
		waits := anyUnacknowledged(picked)
		require.False(t, waits(), "nobody has ended")

		waits = anyUnacknowledged(picked)
		close(ends["quick"])
		synctest.Wait()
		require.True(t, waits())
		quick.Acknowledge()
		require.False(t, waits())
		close(ends["slow"])
		synctest.Wait()
		require.True(t, waits())
		slow.Acknowledge()
		require.False(t, waits())
	})
}
