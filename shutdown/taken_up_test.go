//go:build linux

package shutdown_test

import (
	"path/filepath"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/kubegrace/kubegrace/internal/podcondition"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// An agent may die before a mark that it has sent is on record. The next one restores it when the
// shutdown is cancelled, whoever cancels it, unless it has killed the pod.
func TestAMarkThatIsNotOnRecordIsRestored(t *testing.T) {
	dismiss := func(n *node) { require.NoError(n.t, n.m.Trigger(shutdown.Event{Cancelled: true})) }
	for name, cancel := range map[string]struct{ before, after func(*node) }{
		"by the host":                    {after: func(n *node) { n.host.Cancel() }},
		"by Trigger":                     {after: dismiss},
		"by Trigger in the former agent": {before: dismiss},
		"while no agent runs":            {before: func(n *node) { n.host.SetPending(nil) }},
	} {
		t.Run(name, func(t *testing.T) {
			inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
				reporter := &shutdowntest.Reporter{}
				n.opts.Reporter = reporter
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
				n.runOnBoot(one)
				n.announce()
				n.advance(5 * time.Second)
				if cancel.before != nil {
					cancel.before(n)
					n.advance(time.Second)
				}
				n.crash()
				marked := n.pods[1].DeepCopy()
				podcondition.Set(&marked.Status, v1.PodCondition{Type: v1.PodReady, Status: v1.ConditionFalse, Reason: v1.PodReasonTerminationByKubelet}, metav1.Now())
				pods := list(n.pods[0], marked)
				n.setPods() // the list is early
				n.runOnBoot(one)
				n.advance(5 * time.Second)
				n.setPods(pods...)
				n.advance(2 * time.Second)
				if cancel.after != nil {
					cancel.after(n)
					n.advance(time.Second)
				}
				var restored []string
				for _, mark := range reporter.Marked() {
					if mark.Ready {
						restored = append(restored, mark.Pod)
					}
				}
				require.Equal(t, []string{"etcd"}, restored)
			})
		})
	}
}

// An agent may die before the node state is published. The next one publishes it, also if the time of
// the shutdown is over by then.
func TestAReleasedShutdownIsPublished(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		reporter := &shutdowntest.Reporter{PublishErr: func(int) error { return errNoBus }}
		n.opts.Reporter = reporter
		n.runOnBoot(one)
		n.host.Announce(shutdown.Event{Kind: shutdown.KindReboot, Deadline: time.Now().Add(12 * time.Second)})
		n.advance(5 * time.Second)
		n.crash()
		reporter.PublishErr = nil
		n.advance(10 * time.Second)
		n.runOnBoot(one)
		synctest.Wait()
		published := reporter.Published()
		last := published[len(published)-1]
		require.NoError(t, last.Err)
		require.True(t, last.State.ShuttingDown)
	})
}

// A pod of a former agent is not said to be unflushed once the API server has its final status.
func TestADebtThatIsPaidIsFlushedOnRecord(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		server := &cluster{away: true}
		n.opts.Reporter = server
		n.killer.Pods = map[string]shutdowntest.Behaviour{"etcd": {Takes: time.Hour}}
		n.runOnBoot(one)
		n.announce()
		n.advance(5 * time.Second)
		require.NoError(t, n.m.Trigger(shutdown.Event{Cancelled: true}))
		n.advance(time.Second)
		n.crash()
		server.setAway(false)
		n.runOnBoot(one)
		n.advance(time.Minute)
		require.Equal(t, []string{"web"}, server.flushedPods()[:1])
		stored, found, err := shutdown.StoredReport(n.opts.StateDir)
		require.NoError(t, err)
		require.True(t, found)
		require.False(t, stored.Pods[0].Unflushed)
	})
}

// A shutdown that was released drains again, late. Its agent dies before a pod is signalled that has
// come since, so the next boot writes nothing of that pod.
func TestNothingIsWrittenOfAPodThatADrainAfterTheReleaseHasNotSignalled(t *testing.T) {
	inBubbleWithState(t, twoPods(), func(t *testing.T, n *node, one *boot) {
		c := &cluster{}
		n.opts.Reporter = c
		n.opts.LateStart = func(e shutdown.Event) bool { return !e.Deadline.IsZero() }
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Second)
		require.NotZero(t, n.lastReport().Ended)
		n.setPods(shutdowntest.Pod("late", 0, 60))
		require.NoError(t, n.m.Trigger(shutdown.Event{Origin: "notice", Deadline: time.Now().Add(10 * time.Minute)}))
		n.advance(5 * time.Second)
		require.NotContains(t, n.grantedSeconds(), "late")
		require.True(t, fileContains(filepath.Join(n.opts.StateDir, progressFile), "uid-late"))
		n.crash()

		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		n.advance(time.Minute)
		require.NotContains(t, c.flushedPods(), "late")
	})
}
