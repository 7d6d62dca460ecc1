package shutdown_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A kill of a cancelled shutdown was given up with ErrNoRetry, and the pod runs on. Three weeks later
// there is a power cut. Nothing was known to have ended, so the agent of the next boot writes nothing.
func TestNothingIsWrittenOfAPodThatACancelledShutdownHasGivenUp(t *testing.T) {
	pods := list(shutdowntest.Pod("stays", 0, 20), shutdowntest.Pod("ends", 0, 20))
	inBubbleWithState(t, pods, func(t *testing.T, n *node, one *boot) {
		c := &cluster{}
		n.opts.Reporter = c
		n.killer.Pods = map[string]shutdowntest.Behaviour{"stays": {Err: fmt.Errorf("it cannot be stopped: %w", shutdown.ErrNoRetry)}}
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(3 * 7 * 24 * time.Hour)
		require.Equal(t, []string{"ends"}, c.flushedPods())
		n.crash()

		n.runOnBoot(&boot{id: "two", began: time.Now()})
		n.advance(time.Minute)
		require.Equal(t, []string{"ends"}, c.flushedPods())
		require.Len(t, n.lastReport().Pods, 2)
	})
}

// A pod whose kill was given up in a cancelled shutdown may run on: it is refused, and the next shutdown
// gives it only what is left of its grace period. A static pod is started again under its UID, so
// it is admitted, and killed with all of its time. What is not listed any more is forgotten.
func TestPodThatACancelledShutdownHasGivenUp(t *testing.T) {
	static, plain, gone := staticPod(), shutdowntest.Pod("plain", 0, 5), shutdowntest.Pod("gone", 0, 5)
	inBubble(t, list(static, plain, gone), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Err: shutdown.ErrNoRetry}
		n.run()
		n.announce()
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(time.Second)
		require.True(t, n.m.Admit(static).Admit)
		require.False(t, n.m.Admit(plain).Admit)
		n.advance(time.Hour)
		require.False(t, n.m.Admit(plain).Admit)

		n.setPods(static, plain)
		n.announce()
		n.advance(500 * time.Millisecond)
		require.Equal(t, map[string]int64{"static": 5, "plain": 0, "gone": 5}, n.grantedSeconds())
		n.advance(time.Second)
		report := n.lastReport()
		require.Len(t, report.Pods, 2)
		require.Equal(t, map[string]bool{"static": false, "plain": true}, map[string]bool{report.Pods[0].Name: report.Pods[0].Joined, report.Pods[1].Name: report.Pods[1].Joined})
		n.host.Cancel()
		n.advance(time.Second)
		require.True(t, n.m.Admit(gone).Admit)
	})
}
