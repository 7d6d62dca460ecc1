//go:build unix

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The report says once, with the reason, that pods could not be marked not ready.
func TestMarksThatFailAreReportedOnce(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("spared", 0, 5), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
		n.opts.Reporter = hangingMarker{&cluster{}}
		n.run()
		n.announce()
		n.advance(time.Minute)
		require.Equal(t, []string{"failed to mark 1 pods not ready: the time for it was spent"}, n.lastReport().Errors)
	})
}

// An agent without a reporter drops the final statuses that an earlier agent has stored.
func TestCarriedStatusesWithoutAReporter(t *testing.T) {
	dir := t.TempDir()
	web := shutdowntest.Pod("web", 0, 5)
	inBubble(t, list(web), func(t *testing.T, n *node) {
		n.opts.StateDir, n.opts.Reporter = dir, &cluster{away: true}
		n.runOnBoot(&boot{id: "one", began: time.Now()})
		n.announce()
		n.advance(time.Minute)
		n.crash()
		n.host.SetPending(nil)
		n.opts.Reporter = nil
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		n.advance(time.Second)
		require.True(t, n.m.Admit(web).Admit)
	})
}

// If the host cannot tell what is pending, a resumed shutdown counts as the host's: the report
// says that the host did not wait.
func TestResumedWithoutALock(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.ErrUnsupported })
		n.runOnBoot(boot)
		n.advance(time.Minute)
		require.Contains(t, n.lastReport().Errors, "the host did not wait: no lock was held")
	})
}

// A second TerminateAll returns the errors of the drain that the first one has begun.
func TestTerminateAllTwiceGivesTheFailures(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.opts.Volumes = volumes(func(context.Context, []*v1.Pod) error { return errors.New("boom") })
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
		n.run()
		first := make(chan error, 1)
		go func() {
			_, err := n.m.TerminateAll(t.Context())
			first <- err
		}()
		synctest.Wait()
		_, err := n.m.TerminateAll(t.Context())
		require.ErrorContains(t, err, "unmount: boom")
		require.EqualError(t, <-first, err.Error())
	})
}

// A call of PublishNode has time to return even if PublishTimeout is negative, so that no drain
// waits for it.
func TestPublishingThatNobodyWaitsFor(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.opts.Plan.PublishTimeout = -1
		server := &flakyPublisher{takes: time.Second}
		n.opts.Reporter = server
		n.run()
		n.advance(2 * time.Second)
		require.Equal(t, 1, server.done)
	})
}

// flakyPublisher is a reporter whose first calls fail, and whose later calls take some time.
type flakyPublisher struct {
	takes       time.Duration
	fails, done int
}

func (p *flakyPublisher) PublishNode(ctx context.Context, _ shutdown.NodeState) error {
	if p.fails > 0 {
		p.fails--
		return errors.New("boom")
	}
	err := waitOrCancelled(ctx, p.takes)
	if err == nil {
		p.done++
	}
	return err
}

// loggedErrors runs a shutdown and returns how many errors the manager has logged.
func loggedErrors(t *testing.T, change func(n *node)) (count int64) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, list(shutdowntest.Pod("web", 0, 5)))
		change(n)
		m, err := shutdown.NewManager(n.opts)
		require.NoError(t, err)
		var log errorCount
		ctx, stop := context.WithCancel(klog.NewContext(t.Context(), log.logger()))
		ended := make(chan error, 1)
		go func() { ended <- m.Run(ctx) }()
		<-m.Ready()
		n.advance(time.Second) // until the manager has published that the node does not shut down
		n.announce()
		n.advance(time.Minute)
		stop()
		require.NoError(t, <-ended)
		count = log.errors.Load()
	})
	return count
}

// A shutdown without failures logs no error. A failure is logged once, as an error.
func TestErrorsThatAreLogged(t *testing.T) {
	require.Zero(t, loggedErrors(t, func(*node) {}))
	require.EqualValues(t, 1, loggedErrors(t, func(n *node) {
		n.killer.Default = shutdowntest.Behaviour{Err: shutdown.ErrNoRetry}
	}), "the killer gives up")
	require.EqualValues(t, 1, loggedErrors(t, func(n *node) { n.opts.Reporter = &flakyPublisher{fails: 3} }), "publishing fails three times")
}
