package agent

import (
	"context"
	"errors"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// document returns a plan as the command plan and the page of a report show it. Its limit is the shorter one
// of what the host grants and Options.Limit; 0 means that there is no limit.
func (a *Agent) document(p plan.Plan) nodeplan.Document {
	limit := a.manager.Inhibitor().Granted
	if a.opts.Limit > 0 && (limit == 0 || a.opts.Limit < limit) {
		limit = a.opts.Limit
	}
	return nodeplan.OfAgent(a.opts.Config, limit, p)
}

// status returns an api.Status: what the agent does now, and what its pods would lose in a shutdown.
func (a *Agent) status(context.Context) (any, error) {
	planned := a.document(a.manager.Plan())
	return api.Status{
		Meta: api.Meta{APIVersion: api.Version, Kind: "Status"},
		Held: a.manager.Inhibitor().Held, Drained: a.opts.Units.IsNodeDrained(), ShuttingDown: a.shuttingDown(),
		AskedSeconds: planned.NeededSeconds, Missing: a.missing.lines(), PodsUnknown: a.missing.hasAny(missingRuntime),
		PodCount: planned.Summary.PodCount, CutShort: planned.Summary.CutShort, LostSeconds: planned.Summary.LostSeconds,
	}, nil
}

// report returns the report of the shutdown that is under way, as far as it is stored, or else of the last one.
// A stored report without an end is that of the shutdown under way.
func (a *Agent) report(context.Context) (any, error) {
	if len(a.killer.underWay()) > 0 {
		if report, found, err := shutdown.StoredReport(a.opts.StateDir); err == nil && found && report.Ended.IsZero() {
			answer := api.ReportOf(report)
			answer.UnderWay = true
			return answer, nil
		}
	}
	if report, ok := a.manager.LastReport(); ok {
		return api.ReportOf(report), nil
	}
	return nil, errors.New("there was no shutdown yet")
}

// callLoop passes a function to the loop, which calls it. It returns errLeaving if the loop or ctx ends before the
// loop has accepted the function.
func (a *Agent) callLoop(ctx context.Context, call func(*loop)) error {
	select {
	case a.requests <- call:
		return nil
	case <-a.loopEnded:
	case <-ctx.Done():
	}
	return errLeaving
}

// drain stops all pods, waits until they have ended, and returns the report. The drain continues if the client
// disconnects.
func (a *Agent) drain(ctx context.Context) (any, error) {
	outcomes := make(chan drainOutcome, 1)
	if err := a.callLoop(ctx, func(l *loop) { l.drain(outcomes) }); err != nil {
		return nil, err
	}
	select {
	case outcome := <-outcomes:
		return outcome.report, outcome.err
	case <-a.loopEnded:
	case <-ctx.Done():
	}
	return nil, errLeaving
}

// drain marks the node as drained until undrain, begins a shutdown for it, and has the report sent to outcomes
// when the pods have ended. If all pods have been stopped already, be it by the host's shutdown, it sends the report
// of that shutdown at once.
func (l *loop) drain(outcomes chan<- drainOutcome) {
	if !l.opts.Units.IsNodeDrained() {
		if err := l.opts.Units.SetNodeDrained(true); err != nil { // the next agent will not know of the drain
			l.opts.View.Say("Warning: " + err.Error())
		}
		if err := l.trigger(source.Event{Origin: drainOrigin}); err != nil {
			outcomes <- drainOutcome{err: errors.Join(err, l.opts.Units.SetNodeDrained(false))}
			return
		}
	}
	if !l.drained {
		l.waiting = append(l.waiting, outcomes)
		return
	}
	report, _ := l.manager.LastReport()
	outcomes <- drainOutcome{report: api.ReportOf(report)}
}

// undrain withdraws the drain of kubegrace-node drain: it removes the stored mark, so that no later agent drains again,
// and cancels the shutdown that the drain began. A shutdown that the host itself has announced continues.
func (l *loop) undrain() error {
	if !l.opts.Units.IsNodeDrained() {
		return errors.New("this node is not drained")
	}
	return errors.Join(l.opts.Units.SetNodeDrained(false), l.trigger(source.Event{Origin: drainOrigin, Cancelled: true}))
}

// undrain withdraws a drain. It returns when startUnits, in the background, has started the stopped units again.
func (a *Agent) undrain(ctx context.Context) (any, error) {
	result := make(chan error, 1)
	if err := a.callLoop(ctx, func(l *loop) { result <- l.undrain() }); err != nil {
		return nil, err
	}
	if err := <-result; err != nil {
		return nil, err
	}
	for a.opts.Units.Stopped() != nil && pause(ctx, refreshInterval) {
		select {
		case <-a.loopEnded:
			return nil, errLeaving
		default:
		}
	}
	return api.Meta{APIVersion: api.Version, Kind: "Undrain"}, nil
}
