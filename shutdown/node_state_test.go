//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

// A new agent reverts the published node state even without a log, but only when no shutdown is pending.
func TestAnAgentRevertsTheNodeStateAtItsStart(t *testing.T) {
	for name, test := range map[string]struct {
		script func(*node)
		want   []bool // what was published: whether the node shuts down
	}{
		"nothing is pending":    {func(*node) {}, []bool{false}},
		"no host":               {func(n *node) { n.opts.Source = nil }, []bool{false}},
		"the host cannot tell":  {func(n *node) { n.host.PendingErr = errors.ErrUnsupported }, []bool{false}},
		"the host is not there": {func(n *node) { n.host.ConnectErr = errors.New("no bus") }, []bool{false}},
		"a shutdown is pending": {func(n *node) { n.host.SetPending(&source.Event{}) }, []bool{true}},
		"it was cancelled, and the session was lost": {func(n *node) {
			n.host.SetPending(&source.Event{})
			time.AfterFunc(time.Second, n.host.Cancel)
			time.AfterFunc(2*time.Second, n.host.Lose)
		}, []bool{true, false}},
	} {
		t.Run(name, func(t *testing.T) {
			inBubble(t, nil, func(t *testing.T, n *node) {
				reporter := &shutdowntest.Reporter{}
				n.opts.Reporter = reporter
				test.script(n)
				n.run()
				n.advance(time.Minute)
				var shuttingDown []bool
				for _, published := range reporter.Published() {
					shuttingDown = append(shuttingDown, published.State.ShuttingDown)
				}
				require.Equal(t, test.want, shuttingDown)
			})
		})
	}
}

// With a negative PublishTimeout no drain waits for PublishNode, but the call still has time to return.
func TestPublishingHasTimeEvenIfNoDrainWaitsForIt(t *testing.T) {
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

// PublishNode fails p.fails times. Later calls take p.takes, and are counted when they succeed.
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
