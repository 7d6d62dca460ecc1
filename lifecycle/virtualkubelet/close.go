package virtualkubelet

import (
	"context"
	"errors"
)

// Close ends the provider and leaves its pods running: an agent that is restarted
// adopts them ([Provider.Adopt]). Hooks and stops under way are cancelled, starts are,
// and nothing begins from now on. It waits until no goroutine works; ctx bounds that,
// and the error then names what is stuck: containers, as a
// [*lifecycle.StillRunningError], and pods whose start or notification does not return.
// It may be called again.
//
// To stop the pods with the agent, drain them first: shutdown.Manager.TerminateAll.
func (p *Provider) Close(ctx context.Context) error {
	p.agent.workers.close()
	return errors.Join(p.agent.terminator.Close(ctx), p.agent.workers.awaitIdle(ctx))
}
