package shutdown_test

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A pod ends while the record is being written, and the agent is killed before the next write. The
// next agent tells the API server of that end, or kills the pod again: it is not lost between the
// pods that may still run and the statuses that are owed.
func TestPodThatEndsWhileTheRecordIsWritten(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 60)), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.killer.Default = shutdowntest.Behaviour{Hangs: true}
		var armed, frozen atomic.Bool
		m, err := shutdown.NewManagerWith(n.opts, one.sinceBoot, func(path string, encode func(io.Writer) error) error {
			if frozen.Load() {
				return nil // what was written is what the next agent finds
			}
			if filepath.Base(path) == progressFile && armed.CompareAndSwap(true, false) {
				n.killer.Release()
				<-time.After(time.Millisecond) // web ends
				frozen.Store(true)
			}
			return atomicfile.Replace(path, encode)
		})
		require.NoError(t, err)
		n.start(m)
		<-m.Ready()
		n.announce()
		n.advance(5 * time.Second)
		armed.Store(true)
		n.host.Announce(shutdown.Event{Deadline: time.Now().Add(20 * time.Second)}) // has the record written
		n.advance(time.Second)
		require.True(t, frozen.Load())
		n.crash()
		c.setAway(false)
		n.runOnBoot(one)
		n.advance(time.Minute)
		require.Equal(t, []string{"web"}, c.flushedPods())
	})
}

// The final status of a pod that has ended under a former agent is acknowledged to the agent that
// takes up the shutdown. Its report says so, the stored one too.
func TestStatusOfAFormerAgentIsAcknowledgedInAResumedShutdown(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.killer.Pods = map[string]shutdowntest.Behaviour{"etcd": {Takes: time.Hour}}
		n.runOnBoot(one)
		n.announce()
		n.advance(5 * time.Second)
		pods := n.killer.Pods
		n.crash()
		n.killer.Pods = pods
		c.setAway(false)
		n.runOnBoot(one)
		n.advance(time.Minute)
		require.Equal(t, []string{"etcd", "web"}, c.flushedPods())
		require.Equal(t, []string{"web", "etcd"}, names(n.lastReport()))
		for _, pod := range n.lastReport().Pods {
			require.False(t, pod.Unflushed, pod.Name)
		}
		for _, pod := range n.reportOfNextBoot().Pods {
			require.False(t, pod.Unflushed, pod.Name)
		}
	})
}

// A disk that fails is in the report of a shutdown once, however many writes have failed.
func TestADiskThatFailsIsReportedOnce(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		var writes atomic.Int64 // The record and the times have a writer each.
		m, err := shutdown.NewManagerWith(n.opts, one.sinceBoot, func(string, func(io.Writer) error) error {
			writes.Add(1)
			return errors.New("no space left on device")
		})
		require.NoError(t, err)
		n.start(m)
		n.advance(time.Second)
		n.announce()
		n.advance(time.Minute)
		require.Greater(t, writes.Load(), int64(3))
		failures := 0
		for _, text := range n.lastReport().Errors {
			failures += strings.Count(text, "no space left")
		}
		require.Equal(t, 1, failures)
	})
}
