package virtualkubelet

import (
	"context"
	"errors"
)

// Close ends the provider and leaves its pods running: a restarted agent adopts them with
// [Provider.Adopt]. It cancels the hooks, stops and starts that are under way, and no new
// ones begin.
//
// Close waits until all goroutines have ended. ctx bounds that; the error then names the
// containers whose stop hangs, in a [*lifecycle.StillRunningError], and the pods whose
// start or notification hangs. It may be called again.
//
// To stop the pods together with the agent, drain them first with
// shutdown.Manager.TerminateAll.
func (p *Provider) Close(ctx context.Context) error {
	p.agent.workers.close()
	return errors.Join(p.agent.terminator.Close(ctx), p.agent.workers.awaitIdle(ctx))
}
