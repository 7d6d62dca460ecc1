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

// The reports of the pods are made once when they cannot change any more, which is when the last
// pod has ended and its final status is acknowledged. They are made again when another pod is
// killed.
func TestReportsThatWillNotChangeAreMadeOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		r := &record{roster: kills.NewRoster(time.Now()), flushes: true}
		killing := &kills.Killing{
			Context: t.Context(),
			Calls:   &call.Group{},
			Halted:  func() bool { return false },
			Seconds: func(*v1.Pod) int64 { return 20 },
			Kill: func(context.Context, *v1.Pod, int64) (kills.Result, error) {
				<-time.After(5 * time.Second)
				return kills.Result{Outcome: "Graceful"}, nil
			},
			Earlier:   func(types.UID) *kills.Kill { return nil },
			Signalled: func(*kills.Kill) {},
			Ended:     func(*kills.Kill) {},
		}
		pods := []*v1.Pod{{ObjectMeta: metav1.ObjectMeta{Name: "web"}}, {ObjectMeta: metav1.ObjectMeta{Name: "db"}}}
		for i, pod := range pods {
			picked := r.roster.Pick(pods, 0, func(p *v1.Pod) (int32, bool) { return 0, p == pod })
			killing.Start(picked)
			synctest.Wait()
			require.Len(t, r.pods(nil), i+1)
			require.Zero(t, r.pods(nil)[i].Ended)
			<-time.After(5 * time.Second)
			synctest.Wait()
			require.NotZero(t, r.pods(nil)[i].Ended)
			require.True(t, r.pods(nil)[i].Unflushed)
			require.NotSame(t, &r.pods(nil)[0], &r.pods(nil)[0])
			picked[0].Acknowledge()
			require.False(t, r.pods(nil)[i].Unflushed)
			require.Same(t, &r.pods(nil)[0], &r.pods(nil)[0])
		}
	})
}
