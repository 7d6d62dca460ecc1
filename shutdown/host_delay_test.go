package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// grantingHost is a host that grants the same delay whatever it is asked for.
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

// While a host that grants less delay than requested is asked again, the lock that is held stays.
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

// A host that grants less delay than requested is asked until it grants all of it, and no more then.
// One event says that the delay is capped.
func TestCappedDelayIsAskedForAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.host.Limit = 10 * time.Second
		n.run()
		n.advance(time.Minute)
		require.Equal(t, 10*time.Second, n.m.Inhibitor().Granted)
		require.Len(t, n.events.all(), 1, "one event")
		n.host.Script(func(h *shutdowntest.Host) { h.Limit = 0 })
		n.advance(time.Minute)
		require.Equal(t, 32500*time.Millisecond, n.m.Inhibitor().Granted)
		require.NoError(t, n.m.Inhibitor().Err)
		require.Equal(t, 1, n.host.Held())
		asked := len(n.host.Wishes())
		n.advance(10 * time.Minute)
		require.Len(t, n.host.Wishes(), asked, "asked no more")
	})
}

// The status has the reasons that the host gives for a capped delay.
func TestCappedDelayKeepsItsReasons(t *testing.T) {
	readOnly := errors.New("/etc is read-only")
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.host.Limit, n.host.CapReason = 10*time.Second, readOnly
		n.run()
		require.True(t, n.m.Inhibitor().Held)
		require.ErrorIs(t, n.m.Inhibitor().Err, readOnly)
		require.ErrorContains(t, n.m.Inhibitor().Err, "10s at most, 32.5s was asked for")
	})
}

// A host that caps the delay is asked again, less and less often. After it has granted all of the
// delay, it is asked again within a second of the next cap, as it was after the first one.
func TestCappedAgain(t *testing.T) {
	inBubble(t, nil, func(t *testing.T, n *node) {
		n.host.Limit = 5 * time.Second
		n.run()
		n.advance(5 * time.Minute)
		n.host.Script(func(h *shutdowntest.Host) { h.Limit = 0 })
		n.advance(time.Minute)
		n.host.Script(func(h *shutdowntest.Host) { h.Limit = 5 * time.Second })
		n.announce()
		n.host.Cancel()
		synctest.Wait()
		before := len(n.host.Wishes())
		n.advance(1100 * time.Millisecond)
		require.Greater(t, len(n.host.Wishes()), before)
	})
}

// Ready waits up to five seconds for a host that is slow to grant the delay, as a logind that is
// being reloaded is.
func TestSlowDelay(t *testing.T) {
	for takes, want := range map[time.Duration]time.Duration{3 * time.Second: 3 * time.Second, time.Hour: 5 * time.Second} {
		inBubble(t, nil, func(t *testing.T, n *node) {
			n.host.DelayTakes = takes
			began := time.Now()
			n.run()
			require.Equal(t, want, time.Since(began))
			require.Equal(t, takes == want, n.m.Inhibitor().Held)
		})
	}
}
