//go:build go1.25

package shutdown_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/shutdown"
)

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
