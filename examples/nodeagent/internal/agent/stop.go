package agent

import (
	"context"

	"github.com/kubegrace/kubegrace/shutdown"
)

// stopOutsideShutdown stops a pod because a client or a change of its manifest asks for
// it. A shutdown that begins meanwhile only shortens this stop, and this stop only
// shortens one of a shutdown.
func (a *Agent) stopOutsideShutdown(ctx context.Context, p *pod, graceSeconds int64) error {
	if p.isStopped() {
		return nil
	}
	request := shutdown.KillRequest{GracePeriodSeconds: &graceSeconds}
	if !p.beginStopOutsideShutdown() {
		return a.killer.shorten(ctx, p, request)
	}
	result, err := a.killer.KillPod(ctx, p.spec, request)
	if err != nil || a.opts.APIServer == nil || result.Status == nil {
		return err
	}
	final := p.spec.DeepCopy()
	final.Status = *result.Status
	ctx, cancel := context.WithTimeout(ctx, statusTimeout)
	defer cancel()
	if err := a.opts.APIServer.FlushPod(ctx, final); err != nil {
		a.opts.Logger.Error(err, "Failed to tell the API server that a pod was stopped", "pod", p.name())
	}
	return nil
}
