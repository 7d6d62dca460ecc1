//go:build go1.25

package shutdown_test

import (
	"context"
	"testing"
	"testing/synctest"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// siteFile is a drop-in with which an administrator lowers the limit.
const siteFile = "/etc/systemd/logind.conf.d/zzz-site.conf"

// setLimit changes the limit of the host, as if siteFile had set it; 0: no limit.
func (n *node) setLimit(limit time.Duration) {
	n.host.Script(func(h *shutdowntest.Host) { h.Limit, h.SetBy = limit, siteFile })
}

// The host's limit is lowered to 15 s while the manager runs. Within ten seconds Inhibitor names the limit and the file that sets
// it, an event warns, and the plan has less time. When the limit is removed, Inhibitor and Plan are as before.
func TestALimitIsSeenWithinTenSeconds(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		setPodsThatUseAllTheirTime(n)
		n.run()
		before, planBefore := n.m.Inhibitor(), granted(n.m.Plan())
		n.advance(time.Minute)

		n.setLimit(15 * time.Second)
		n.advance(10 * time.Second)
		lowered := n.m.Inhibitor()
		require.True(t, lowered.Held)
		require.Equal(t, before.Requested, lowered.Requested)
		require.Equal(t, 15*time.Second, lowered.Granted)
		var capped *source.DelayCappedError
		require.ErrorAs(t, lowered.Err, &capped)
		require.Equal(t, siteFile, capped.SetBy)
		require.Equal(t, []string{"Warning Shutdown " + capped.Error()}, n.events.all())
		require.NotEqual(t, planBefore, granted(n.m.Plan()))

		n.setLimit(0)
		n.advance(10 * time.Second)
		require.Equal(t, before, n.m.Inhibitor())
		require.Equal(t, planBefore, granted(n.m.Plan()))
	})
}

// The host's limit is lowered to 15 s. A shutdown that begins 10 s later has the new limit, as planned.
func TestAShutdownHasTheChangedLimit(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		setPodsThatUseAllTheirTime(n)
		n.run()
		n.setLimit(15 * time.Second)
		n.advance(10 * time.Second)
		planned, began := granted(n.m.Plan()), time.Now()
		n.announce()
		n.advance(5 * time.Minute)
		require.Equal(t, planned, n.grantedSeconds())
		require.LessOrEqual(t, n.releasedAfter(began), 15*time.Second)
	})
}

// generousHost is a host whose own limit is an hour, and which grants that hour whatever is requested, as logind does.
type generousHost struct{ *shutdowntest.Host }

// Connect returns a session that grants an hour.
func (h generousHost) Connect(ctx context.Context) (source.Session, error) {
	session, err := h.Host.Connect(ctx)
	return generousSession{session}, err
}

// generousSession is a session with a generousHost.
type generousSession struct{ source.Session }

// RequestDelay grants an hour.
func (s generousSession) RequestDelay(ctx context.Context, requested time.Duration) (time.Duration, error) {
	_, err := s.Session.RequestDelay(ctx, requested)
	return time.Hour, err
}

// Options.Plan.Limit is 20 s, and the host grants an hour. The budget that Inhibitor returns is 20 s, both before and after the
// host has answered.
func TestTheBudgetIsNoLongerThanTheLimitOfTheOptions(t *testing.T) {
	inBubble(t, noPods(), func(t *testing.T, n *node) {
		n.opts.Plan.Limit = 20 * time.Second
		n.opts.Source = generousHost{n.host}
		n.newManager()
		require.Equal(t, 20*time.Second, n.m.Inhibitor().Budget.End)
		n.run()
		require.Equal(t, time.Hour, n.m.Inhibitor().Granted)
		require.Equal(t, 20*time.Second, n.m.Inhibitor().Budget.End)
	})
}

// At the default verbosity, the first log line of a drain says how long the drain may take ("time") and what decides that
// ("setBy"). The name of each case is what the line must have as setBy.
func TestADrainLogsItsTimeAndWhatSetsIt(t *testing.T) {
	for setBy, c := range map[string]struct {
		change      func(n *node)
		deadline    time.Duration // of the event; 0: none
		least, most time.Duration // of the logged time, which may lack margins; 0: the line has no time
	}{
		"the configured grace periods":  {least: 30 * time.Second, most: 33 * time.Second},
		"the grace periods of the pods": {change: func(n *node) { n.opts.Config = plan.Config{} }},
		"Options.Plan.Limit":            {change: func(n *node) { n.opts.Source, n.opts.Plan.Limit = nil, 20*time.Second }, least: 18 * time.Second, most: 20 * time.Second},
		siteFile:                        {change: func(n *node) { n.setLimit(15 * time.Second) }, least: 13 * time.Second, most: 15 * time.Second},
		"the announcement":              {change: func(n *node) { n.setLimit(20 * time.Second) }, deadline: 8 * time.Second, least: 7 * time.Second, most: 8 * time.Second},
	} {
		subtestInBubble(t, setBy, list(shutdowntest.Pod("web", regularPriority, 5)), func(t *testing.T, n *node) {
			if c.change != nil {
				c.change(n)
			}
			n.run()
			event := source.Event{Kind: source.KindReboot}
			if c.deadline != 0 {
				event.Deadline = time.Now().Add(c.deadline)
			}
			if hostIsWatched := n.m.Inhibitor().Off == ""; !hostIsWatched {
				require.NoError(t, n.m.Trigger(event))
			} else {
				n.host.Announce(event)
			}
			synctest.Wait()
			first := n.log.valuesWith("setBy")
			require.Equal(t, setBy, first["setBy"])
			require.Equal(t, source.KindReboot, first["kind"])
			if c.most == 0 {
				require.NotContains(t, first, "time", "it is not known before the list of the pods")
			} else {
				require.GreaterOrEqual(t, first["time"], c.least)
				require.LessOrEqual(t, first["time"], c.most)
			}
		})
	}
}
