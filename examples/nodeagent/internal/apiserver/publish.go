package apiserver

import (
	"context"
	"errors"

	"github.com/kubegrace/kubegrace/shutdown"
)

// errUnanswered is why the API server does not know of a shutdown at first.
var errUnanswered = errors.New("it has not answered")

// PublishNode is that of the library's reporter, and remembers what came of it.
func (c *Client) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	if !state.ShuttingDown {
		c.hear(nil)
		return c.Reporter.PublishNode(ctx, state)
	}
	if c.Unheard() == nil { // what was in the way before is still the best that is known
		c.hear(errUnanswered)
	}
	err := c.Reporter.PublishNode(ctx, state)
	c.hear(err)
	return err
}

// hear notes why the API server does not know of the shutdown.
func (c *Client) hear(why error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unheard = why
}

// Unheard is why the API server does not know that the node shuts down; nil: it
// knows, or the node does not.
func (c *Client) Unheard() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unheard
}
