//go:build go1.25

package shutdown_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// An event is on its way for a moment. Where the host grants exactly the seconds of the schedule, as
// to a kubelet, that costs no pod a second.
func TestLimitOfExactlyTheScheduleOnItsWay(t *testing.T) {
	pods := []*v1.Pod{shutdowntest.Pod("web", 0, 60), shutdowntest.Pod("etcd", topPriority, 60)}
	inBubble(t, pods, func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		n.host.Announce(shutdown.Event{Kind: shutdown.KindPoweroff, Deadline: time.Now().Add(30*time.Second - 5*time.Millisecond)})
		n.advance(time.Minute)
		require.Equal(t, map[string]int64{"web": 20, "etcd": 10}, n.grantedSeconds())
	})
}
