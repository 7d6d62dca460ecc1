package shutdown

import (
	"context"
	"errors"
	"fmt"
	"sync"
)

// errSuperseded ends a PublishNode whose state is no longer true.
var errSuperseded = errors.New("a newer node state has to be published")

// publish tries until the state is accepted or superseded. The first attempt
// settles the announcement. It ends when nobody waits for it any longer, so that they
// hear what was in its way; those that follow have all the time there is.
func (a *announcer) publish(ctx context.Context, said *announcement) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	settle := sync.OnceFunc(func() { close(said.settled) })
	defer settle()
	if !a.begin(cancel) {
		said.err = errSuperseded
		return
	}
	defer a.end()
	said.err = a.publishFirst(ctx, said)
	settle()
	var pause backoff
	for err := said.err; err != nil && pause.wait(ctx, nil); {
		err = a.publishOnce(ctx, *said.state)
	}
}

// publishFirst is the attempt that drains wait for.
func (a *announcer) publishFirst(ctx context.Context, said *announcement) error {
	ctx, cut := context.WithCancelCause(ctx)
	var watch sync.WaitGroup
	watch.Go(func() {
		select {
		case <-said.hurried:
			cut(errTimeSpent)
		case <-ctx.Done():
		}
	})
	defer watch.Wait()
	defer cut(nil)
	return a.publishOnce(ctx, *said.state)
}

// publishOnce is one call of the reporter.
func (a *announcer) publishOnce(ctx context.Context, state NodeState) error {
	if err := a.reporter.PublishNode(ctx, state); err != nil {
		return fmt.Errorf("failed to publish the node state: %w", err)
	}
	return nil
}

// begin lets say supersede the publishing; false: it has been superseded already.
func (a *announcer) begin(supersede context.CancelCauseFunc) bool {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, later := range a.queue {
		if later.state != nil {
			return false
		}
	}
	a.supersede = supersede
	return true
}

// end takes the means to supersede back.
func (a *announcer) end() {
	a.mu.Lock()
	defer a.mu.Unlock()
	a.supersede = nil
}
