package shutdown_test

import (
	"fmt"
	"testing"
	"testing/synctest"
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

// Nobody tells of the end of a pod once its kill was given up. After the cancellation such a pod is the
// embedder's again: it is admitted, as a static pod is that is started anew under its UID, and the next
// shutdown kills it with all of its time.
func TestPodThatACancelledShutdownHasGivenUp(t *testing.T) {
	for name, test := range map[string]struct {
		how   shutdowntest.Behaviour
		after time.Duration // until the kill is given up
	}{
		"with an error that is final": {shutdowntest.Behaviour{Err: shutdown.ErrNoRetry}, 0},
	} {
		t.Run(name, func(t *testing.T) {
			static := staticPod()
			inBubble(t, list(static), func(t *testing.T, n *node) {
				n.killer.Default = test.how
				n.run()
				n.announce()
				n.advance(time.Second)
				n.host.Cancel()
				synctest.Wait()
				require.Equal(t, test.after == 0, n.m.Admit(static).Admit, "it is refused as long as it is being killed")
				n.advance(test.after)
				require.True(t, n.m.Admit(static).Admit)
				n.announce()
				n.advance(500 * time.Millisecond)
				require.Equal(t, map[string]int64{"static": 5}, n.grantedSeconds())
				n.advance(time.Minute)
				require.Len(t, n.lastReport().Pods, 1)
				require.False(t, n.lastReport().Pods[0].Joined)
			})
		})
	}
}
