package apiserver

import (
	"context"
	"errors"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown"
)

var (
	errUnanswered = errors.New("it has not answered")
	errNewerState = errors.New("the shutdown manager publishes the node's state")
)

// withdrawal is the undoing of what an earlier life of the agent has said.
type withdrawal struct {
	end  context.CancelCauseFunc
	done chan struct{} // closed once it is over
}

// PublishNode is that of the library's reporter. It comes after [Client.Withdraw],
// which it ends.
func (c *Client) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	if w := c.speak(state); w != nil {
		w.end(errNewerState)
		<-w.done
	}
	err := c.Reporter.PublishNode(ctx, state)
	if state.ShuttingDown {
		c.hear(err)
	}
	return err
}

// speak notes that the manager publishes a state, and gives what stands in its way.
func (c *Client) speak(state shutdown.NodeState) *withdrawal {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.spoken, c.unheard = true, nil
	if state.ShuttingDown {
		c.unheard = errUnanswered
	}
	return c.withdraw
}

// hear notes what came of it.
func (c *Client) hear(err error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.unheard = err
}

// Unheard is why the API server does not know that the node shuts down; nil: it
// knows, or the node does not.
func (c *Client) Unheard() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.unheard
}

// Withdraw takes back what an earlier life of the agent may have said of the node's
// shutdown, also one that has kept no state of it. It tries until it succeeds, ctx
// ends or the shutdown manager has something to say. Call it once, when no shutdown
// is under way.
func (c *Client) Withdraw(ctx context.Context) {
	ctx, end := context.WithCancelCause(ctx)
	defer end(nil)
	w := &withdrawal{end: end, done: make(chan struct{})}
	defer close(w.done)
	if !c.mayWithdraw(w) {
		return
	}
	err := retries().DelayFunc().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		err := c.Reporter.PublishNode(ctx, shutdown.NodeState{})
		if err != nil && ctx.Err() == nil {
			klog.FromContext(ctx).Error(err, "Failed to undo what was said of the node's last shutdown, trying again")
		}
		return err == nil, nil
	})
	if err != nil {
		klog.FromContext(ctx).V(1).Info("Gave up undoing what was said of the node's last shutdown", "reason", context.Cause(ctx))
	}
}

// mayWithdraw makes a withdrawal known, unless it comes too late.
func (c *Client) mayWithdraw(w *withdrawal) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.spoken {
		return false
	}
	c.withdraw = w
	return true
}
