//go:build unix

package shutdown_test

import (
	"context"
	"errors"
	"io"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The report of a triggered shutdown does not say that the host did not wait, not even if the
// host had announced a shutdown before that was cancelled.
func TestTriggeredAfterTheHostsShutdown(t *testing.T) {
	for name, cancel := range map[string]func(n *node){
		"the host cancelled":     func(n *node) { n.host.Cancel() },
		"the embedder cancelled": func(n *node) { require.NoError(n.t, n.m.Trigger(shutdown.Event{Cancelled: true})) },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, twoPods(), func(t *testing.T, n *node) {
				n.host.InhibitErr = errors.New("refused")
				n.killer.Default = shutdowntest.Behaviour{Takes: time.Second}
				n.run()
				n.announce()
				n.advance(500 * time.Millisecond)
				cancel(n)
				n.advance(time.Minute)
				require.NoError(t, n.m.Trigger(shutdown.Event{}))
				n.advance(time.Minute)
				require.NotZero(t, n.lastReport().Ended)
				require.Empty(t, n.lastReport().Errors)
			})
		})
	}
}

// A stored shutdown that the embedder cancels with Trigger, while the host cannot be asked, is
// over.
func TestRecordIsTakenBackByTheEmbedder(t *testing.T) {
	inBubbleAfterCrash(t, func(t *testing.T, n *node, boot *boot) {
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		m, err := shutdown.NewManagerOn(n.opts, boot.sinceBoot)
		require.NoError(t, err)
		n.start(m)
		synctest.Wait()
		require.False(t, m.Admit(nil).Admit)
		require.NoError(t, m.Trigger(shutdown.Event{Cancelled: true}))
		synctest.Wait()
		require.True(t, m.Admit(nil).Admit)
		require.True(t, n.lastReport().Cancelled)
		require.NotZero(t, n.lastReport().Ended)
		events := n.events.all()
		require.Contains(t, events[len(events)-1], "Shutdown manager detected shutdown cancellation")
	})
}

// The node state that a cancellation has reverted is not reverted again in the next session.
func TestTakenBackOnce(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		reporter := &shutdowntest.Reporter{}
		n.opts.Reporter = reporter
		n.host.SetPending(&shutdown.Event{})
		n.run()
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(time.Second)
		published := len(reporter.Published())
		require.False(t, reporter.Published()[published-1].State.ShuttingDown)
		n.host.Lose()
		n.advance(time.Minute)
		require.Len(t, reporter.Published(), published)
	})
}

// A shutdown that was cancelled, and whose pods end after the end of Run, is reported as over.
func TestRunEndsWithinACancelledShutdown(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		n.run()
		n.announce()
		n.advance(time.Second)
		n.host.Cancel()
		n.advance(time.Second)
		n.end()
		require.True(t, n.lastReport().Cancelled)
		require.NotZero(t, n.lastReport().Ended)
	})
}

// The report of a shutdown that the end of Run interrupts is there before its pods have ended.
func TestReportOfAnInterruptedShutdown(t *testing.T) {
	inBubble(t, twoPods(), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Hangs: true, Deaf: true}
		n.run()
		n.announce()
		n.advance(time.Second)
		n.stop()
		n.advance(time.Second)
		require.Len(t, n.lastReport().Pods, 1)
		require.Zero(t, n.lastReport().Ended)
	})
}

// A lock that is granted after the end of Run is closed.
func TestInhibitAfterRun(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.host.InhibitTakes = 3 * time.Second
		m, err := shutdown.NewManager(n.opts)
		require.NoError(t, err)
		n.start(m)
		synctest.Wait()
		n.end()
		require.Contains(t, n.host.Calls(), "release")
	})
}

// grantingHost is a host that grants another delay than it is asked for.
type grantingHost struct {
	*shutdowntest.Host

	delay time.Duration
}

func (g grantingHost) Connect(ctx context.Context) (shutdown.Session, error) {
	session, err := g.Host.Connect(ctx)
	return grantingSession{session, g.delay}, err
}

type grantingSession struct {
	shutdown.Session

	delay time.Duration
}

func (g grantingSession) RequestDelay(context.Context, time.Duration) (time.Duration, error) {
	return g.delay, nil
}

// A host that does not wait at all leaves the pods no time.
func TestPlanOfAHostThatDoesNotWait(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		usePodsThatUseAllTheirGrace(n)
		n.opts.Source = grantingHost{Host: n.host}
		n.run()
		limited := granted(n.m.Plan())
		n.end()
		n.opts.Source, n.opts.Plan.Limit = nil, -1
		n.run()
		require.Equal(t, granted(n.m.Plan()), limited)
		require.Equal(t, map[string]int64{"web": 0, "etcd": 0}, limited)
	})
}

// A host that waits for less than it was asked is asked again, but the lock that is held stays.
func TestCappedHostIsHeldByOneLock(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.host.Limit = 10 * time.Second
		n.run()
		n.advance(10 * time.Minute)
		require.Greater(t, len(n.host.Wishes()), 2)
		inhibits := 0
		for _, call := range n.host.Calls() {
			if call == "inhibit" {
				inhibits++
			}
		}
		require.Equal(t, 1, inhibits)
	})
}

// A final status of a former agent that is acknowledged after a shutdown of this one is not
// told again by the next one.
func TestCarriedStatusAfterAShutdownIsToldOnce(t *testing.T) {
	inBubbleWithState(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node, one *boot) {
		c := &cluster{away: true}
		n.opts.Reporter = c
		n.runOnBoot(one)
		n.announce()
		n.advance(time.Minute)
		n.end()

		n.setPods()
		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "two", began: time.Now()})
		n.announce()
		n.advance(time.Minute)
		require.Empty(t, c.flushedPods())
		c.setAway(false)
		n.advance(time.Minute)
		require.Equal(t, []string{"web"}, c.flushedPods())
		n.end()

		clear(c.final)
		n.host.SetPending(nil)
		n.runOnBoot(&boot{id: "three", began: time.Now()})
		n.advance(time.Minute)
		require.Empty(t, c.flushedPods())
	})
}

// What cannot be stored at the end of Run is an error of Run.
func TestLastWriteFails(t *testing.T) {
	errFull := errors.New("no space left on device")
	dir := t.TempDir()
	synctest.Test(t, func(t *testing.T) {
		n := newNode(t, twoPods())
		n.opts.StateDir = dir
		m, err := shutdown.NewManagerOn(n.opts, (&boot{id: "one", began: time.Now()}).sinceBoot)
		require.NoError(t, err)
		var full atomic.Bool
		m.StoreWith(func(_ string, encode func(io.Writer) error) error {
			if full.Load() {
				return errFull
			}
			return encode(io.Discard)
		})
		n.start(m)
		<-m.Ready()
		n.announce()
		n.advance(time.Minute)
		require.False(t, m.Admit(nil).Admit)
		full.Store(true)
		n.stop()
		require.ErrorIs(t, <-n.ended, errFull)
	})
}
