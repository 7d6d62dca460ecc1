package shutdown_test

import (
	"errors"
	"slices"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// The keeper subscribes, reads the pending shutdown, requests the delay, and then takes the lock:
// no event is missed.
func TestWatchBeforeHolding(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.run()
		require.Equal(t, []string{"connect", "pending", "delay", "inhibit"}, n.host.Calls())
		require.Equal(t, []time.Duration{32500 * time.Millisecond}, n.host.Wishes(), "the total, the containers' floor and the margin")
		require.Equal(t, shutdown.Inhibitor{State: shutdown.InhibitorHeld, Held: true, Requested: 32500 * time.Millisecond, Granted: 32500 * time.Millisecond}, n.m.Inhibitor())
		n.end()
		require.ElementsMatch(t, []string{"release", "close"}, n.host.Calls()[4:])
	})
}

// An agent that starts during a shutdown drains. The host grants no lock then, and the report
// says that it did not wait.
func TestPendingAtStart(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.host.SetPending(&shutdown.Event{Kind: shutdown.KindReboot, Origin: "logind"})
		n.run()
		require.ErrorIs(t, n.m.ShutdownStatus(), shutdown.ErrNodeShuttingDown)
		require.Equal(t, []string{"connect", "pending", "inhibit"}, n.host.Calls())
		require.ErrorIs(t, n.m.Inhibitor().Err, shutdowntest.ErrInProgress)
		n.advance(time.Minute)
		report := n.lastReport()
		require.Equal(t, shutdown.KindReboot, report.Kind)
		require.Equal(t, map[string]string{"web": "Graceful"}, outcomes(report))
		require.Equal(t, []string{"the host did not wait: no lock was held"}, report.Errors)
	})
}

// A lock that the host has kept for a previous agent is adopted, and released at the end of the
// drain.
func TestLockIsAdopted(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.host.SetPending(&shutdown.Event{})
		n.host.Kept = true
		n.run()
		began := time.Now()
		require.True(t, n.m.Inhibitor().Held)
		n.advance(time.Minute)
		require.Equal(t, 5*time.Second, n.releasedAfter(began))
		require.Empty(t, n.lastReport().Errors)
	})
}

// A drain that has nothing to do waits until the lock that the host has kept is adopted, before
// it says whether the host has waited.
func TestLockIsAdoptedBeforeTheDrainEnds(t *testing.T) {
	for name, expected := range map[string]struct {
		takes time.Duration
		errs  []string
		ended time.Duration
	}{
		"at once":                {ended: 0},
		"after a second":         {takes: time.Second, ended: time.Second},
		"not before the release": {takes: 2 * time.Minute, errs: []string{"the host did not wait: no lock was held"}, ended: 32500 * time.Millisecond},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				n.host.SetPending(&shutdown.Event{Deadline: time.Now().Add(35 * time.Second)})
				n.host.Kept = true
				n.host.InhibitTakes = expected.takes
				began := time.Now()
				n.run()
				n.advance(time.Minute)
				report := n.lastReport()
				require.Equal(t, expected.errs, report.Errors)
				require.Equal(t, expected.ended, report.Ended.Sub(began))
				n.advance(time.Hour)
				require.Zero(t, n.host.Held())
			})
		})
	}
}

// Each refusal of the host, even the first, is followed by another attempt, for ever. In the end
// there is one lock.
func TestRefusals(t *testing.T) {
	errRefused := errors.New("refused")
	for name, set := range map[string]func(h *shutdowntest.Host, err error){
		"connect": func(h *shutdowntest.Host, err error) { h.ConnectErr = err },
		"pending": func(h *shutdowntest.Host, err error) { h.PendingErr = err },
		"delay":   func(h *shutdowntest.Host, err error) { h.DelayErr = err },
		"inhibit": func(h *shutdowntest.Host, err error) { h.InhibitErr = err },
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				set(n.host, errRefused)
				n.run() // ready all the same
				require.ErrorIs(t, n.m.Inhibitor().Err, errRefused)
				n.advance(10 * time.Minute)
				require.ErrorIs(t, n.m.Inhibitor().Err, errRefused)
				attempts := slices.DeleteFunc(n.host.Calls(), func(call string) bool { return call != name })
				require.InDelta(t, 600, len(attempts), 5, "one each second")

				n.host.Script(func(h *shutdowntest.Host) { set(h, nil) })
				n.advance(time.Second)
				require.Equal(t, 1, n.host.Held())
				require.NoError(t, n.m.Inhibitor().Err)
			})
		})
	}
}

// After the loss of a session there is one new lock, and the old one is closed after it was
// taken.
func TestLostSession(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.run()
		for range 1000 {
			n.host.Lose()
			n.advance(time.Minute)
			require.Equal(t, 1, n.host.Held())
		}
		calls := n.host.Calls()
		require.Equal(t, []string{"close", "connect", "pending", "delay", "inhibit", "release"}, calls[len(calls)-6:])
		require.NoError(t, n.m.Inhibitor().Err)
	})
}

// A host that was away for long is held again within a second.
func TestHostThatWasAway(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.run()
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = errors.New("no bus") })
		n.host.Lose()
		n.advance(2*time.Minute + 300*time.Millisecond)
		require.ErrorContains(t, n.m.Inhibitor().Err, "no bus")
		n.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = nil })
		n.advance(time.Second)
		require.NoError(t, n.m.Inhibitor().Err)
		require.Equal(t, 1, n.host.Held())
	})
}

// A session that is lost during a drain costs neither the lock nor the drain.
func TestLostSessionWhileDraining(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20), shutdowntest.Pod("etcd", topPriority, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 15 * time.Second}
		n.run()
		began := time.Now()
		n.announce()
		n.host.Lose()
		n.advance(10 * time.Second)
		require.Equal(t, 1, n.host.Held())
		n.advance(time.Minute)
		require.Equal(t, 20*time.Second, n.releasedAfter(began))
		require.Len(t, n.killer.Kills(), 2)
	})
}

// A shutdown that was cancelled while the session was lost is over.
func TestCancelledBehindALostSession(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 20)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: time.Hour}
		n.run()
		n.announce()
		n.host.Lose()
		n.host.SetPending(nil)
		n.advance(2 * time.Second)
		require.NoError(t, n.m.ShutdownStatus())
		require.Equal(t, 1, n.host.Held())
	})
}

// An event is newer than the answer of Pending in the same session.
func TestEventOvertakesPending(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.host.PendingTakes = 3 * time.Second
		m, err := shutdown.NewManager(n.opts)
		require.NoError(t, err)
		n.start(m)
		n.advance(time.Second)
		n.announce()
		n.advance(3 * time.Second)
		require.Error(t, m.ShutdownStatus(), "the answer that none is pending is too old")
		n.advance(time.Minute)
		require.False(t, n.lastReport().Cancelled)
	})
}

// A lock that is granted in the middle of a drain delays the host until its end.
func TestLateInhibit(t *testing.T) {
	inBubble(t, list(shutdowntest.Pod("web", 0, 5)), func(t *testing.T, n *node) {
		n.killer.Default = shutdowntest.Behaviour{Takes: 5 * time.Second}
		n.host.InhibitTakes = 3 * time.Second
		m, err := shutdown.NewManager(n.opts)
		require.NoError(t, err)
		n.start(m)
		synctest.Wait()
		began := time.Now()
		n.announce()
		n.advance(3 * time.Second)
		require.True(t, m.Inhibitor().Held, "granted in the middle of the drain: the host waits")
		n.advance(time.Minute)
		require.Equal(t, 5*time.Second, n.releasedAfter(began))
	})
}

// A lock that is granted when the drain is over is closed at once.
func TestInhibitAfterTheDrain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.host.InhibitTakes = 3 * time.Second
		m, err := shutdown.NewManager(n.opts)
		require.NoError(t, err)
		n.start(m)
		synctest.Wait()
		n.announce()
		n.advance(3 * time.Second)
		require.Zero(t, n.host.Held())
		require.Contains(t, n.host.Calls(), "release")
	})
}

// A host that does not answer does not delay the agent's start, and is held once it answers.
func TestSilentHost(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.host.InhibitTakes = time.Minute
		began := time.Now()
		n.run()
		require.Equal(t, 2*time.Second, time.Since(began))
		require.False(t, n.m.Inhibitor().Held)
		require.ErrorContains(t, n.m.Inhibitor().Err, "the host does not answer")
		n.advance(time.Minute)
		require.True(t, n.m.Inhibitor().Held)
		require.NoError(t, n.m.Inhibitor().Err)
	})
}

// Nothing is watched and nothing held without a schedule, without a source or with the
// gate off, and the manager says which it is.
func TestNothingToWatch(t *testing.T) {
	for off, change := range map[string]func(*shutdown.Options){
		"the configuration gives no time to any pod":   func(o *shutdown.Options) { o.Config = plan.Config{} },
		"there is no source":                           func(o *shutdown.Options) { o.Source = nil },
		"the feature gate GracefulNodeShutdown is off": func(o *shutdown.Options) { o.Config = plan.Config{}; o.Gates = gates{} },
	} {
		inBubble(t, nil, func(t *testing.T, n *node) {
			change(&n.opts)
			n.run()
			require.Empty(t, n.host.Calls())
			require.Equal(t, shutdown.Inhibitor{State: shutdown.InhibitorOff, Off: off}, n.m.Inhibitor())
		})
	}
}
