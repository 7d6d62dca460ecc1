package apiserver

import (
	"context"
	"errors"

	"github.com/kubegrace/kubegrace/shutdown"
)

// errNotAnswered is the result of PublishError until the API server has answered.
var errNotAnswered = errors.New("it has not answered")

// PublishNode publishes the state of the node as the embedded reporter does, and keeps
// the result for [Client.PublishError].
func (c *Client) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	if !state.ShuttingDown {
		c.setPublishError(nil)
		return c.Reporter.PublishNode(ctx, state)
	}
	if c.PublishError() == nil { // an older error says more
		c.setPublishError(errNotAnswered)
	}
	err := c.Reporter.PublishNode(ctx, state)
	c.setPublishError(err)
	return err
}

func (c *Client) setPublishError(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.publishErr = err
}

// PublishError returns why the API server does not know that the node is shutting down.
// It is nil if the server knows, and if there is no shutdown.
func (c *Client) PublishError() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.publishErr
}
