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

// That pods could not be marked is reported once, with the reason.
func TestMarksThatFailAreReportedOnce(t *testing.T) {
	bubble(t, list(shutdowntest.Pod("spared", 0, 5), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
		n.opts.Reporter = slowMarks{&cluster{}}
		n.run()
		n.announce()
		n.pass(time.Minute)
		require.Equal(t, []string{"failed to mark 1 pods not ready: the time for it was spent"}, n.report().Errors)
	})
}

// An agent that tells nobody of statuses survives those that a former one has left.
func TestCarriedStatusesWithoutAReporter(t *testing.T) {
	dir := t.TempDir()
	web := shutdowntest.Pod("web", 0, 5)
	bubble(t, list(web), func(t *testing.T, n *node) {
		n.opts.StateDir, n.opts.Reporter = dir, &cluster{away: true}
		n.runOn(&boot{id: "one", began: time.Now()})
		n.announce()
		n.pass(time.Minute)
		n.crash()
		n.host.SetPending(nil)
		n.opts.Reporter = nil
		n.runOn(&boot{id: "two", began: time.Now()})
		n.pass(time.Second)
		require.True(t, n.m.Admit(web).Admit)
	})
}

// A shutdown that is resumed where the host cannot tell is the host's: that it did not wait
// is reported.
func TestResumedWithoutALock(t *testing.T) {
	stale(t, func(t *testing.T, n *node, boot *boot) {
		n.host.Script(func(h *shutdowntest.Host) { h.PendingErr = errors.ErrUnsupported })
		n.runOn(boot)
		n.pass(time.Minute)
		require.Contains(t, n.report().Errors, "the host did not wait: no lock was held")
	})
}

// A second TerminateAll gives the failures of the first one, too.
func TestTerminateAllTwiceGivesTheFailures(t *testing.T) {
	bubble(t, twoPods(), func(t *testing.T, n *node) {
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

// Where no time is kept for publishing, a call of the reporter may take its time all the same.
func TestPublishingThatNobodyWaitsFor(t *testing.T) {
	bubble(t, nil, func(t *testing.T, n *node) {
		n.opts.Plan.PublishTimeout = -1
		server := &publishing{takes: time.Second}
		n.opts.Reporter = server
		n.run()
		n.pass(2 * time.Second)
		require.Equal(t, 1, server.done)
	})
}

// publishing is a reporter of the node's state that fails at first, and then takes some time.
type publishing struct {
	takes       time.Duration
	fails, done int
}

func (p *publishing) PublishNode(ctx context.Context, _ shutdown.NodeState) error {
	if p.fails > 0 {
		p.fails--
		return errors.New("boom")
	}
	err := after(ctx, p.takes)
	if err == nil {
		p.done++
	}
	return err
}

// logged runs a node through a shutdown and gives how many errors it has logged.
func logged(t *testing.T, change func(n *node)) (count int64) {
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
		n.pass(time.Second) // the state of before the shutdown is published by then
		n.announce()
		n.pass(time.Minute)
		stop()
		require.NoError(t, <-ended)
		count = log.errors.Load()
	})
	return count
}

// A shutdown in which all goes well logs no error, and what fails is logged as one, once.
func TestErrorsThatAreLogged(t *testing.T) {
	require.Zero(t, logged(t, func(*node) {}))
	require.EqualValues(t, 1, logged(t, func(n *node) {
		n.killer.Default = shutdowntest.Behaviour{Err: shutdown.ErrNoRetry}
	}), "the killer gives up")
	require.EqualValues(t, 1, logged(t, func(n *node) { n.opts.Reporter = &publishing{fails: 3} }), "publishing fails three times")
}
