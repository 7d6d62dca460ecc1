package agent

import (
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// planDocument converts a plan to the document that kubegrace-node plan and the page of a report show. The limit in it is
// the shorter one of what the host grants and Options.Limit; 0 means that there is no limit.
func (a *Agent) planDocument(p plan.Plan) nodeplan.Document {
	inhibitor := a.manager.Inhibitor()
	limit := inhibitor.Granted
	switch {
	case limit == 0 && inhibitor.Requested > 0: // the host has answered that it does not wait
		limit = time.Nanosecond // not 0, which would mean no limit
	case limit == math.MaxInt64: // the host sets no limit
		limit = 0
	}
	if a.opts.Limit > 0 && (limit == 0 || a.opts.Limit < limit) {
		limit = a.opts.Limit
	}
	return nodeplan.OfAgent(a.opts.Config, limit, p)
}

// status returns an api.Status: what the agent does now, and what its pods would lose in a shutdown.
func (a *Agent) status(context.Context) (any, error) {
	planned := a.planDocument(a.manager.Plan())
	return api.Status{
		Meta: api.Meta{APIVersion: api.Version, Kind: "Status"},
		Held: a.manager.Inhibitor().Held, Drained: a.opts.Units.IsNodeDrained(), ShuttingDown: a.shuttingDown(),
		AskedSeconds: planned.NeededSeconds, Missing: a.missingParts.lines(), PodsUnknown: a.missingParts.has(missingRuntime),
		PodCount: planned.Summary.PodCount, CutShort: planned.Summary.CutShort, LostSeconds: planned.Summary.LostSeconds,
	}, nil
}

// report returns an api.Report. While pods are being stopped it is that of the shutdown under way, as far as the state folder
// has it. Otherwise it is that of the last shutdown.
func (a *Agent) report(context.Context) (any, error) {
	if len(a.killer.beingStopped()) > 0 {
		stored, found, err := shutdown.StoredReport(a.opts.StateDir)
		isUnfinished := err == nil && found && stored.Ended.IsZero()
		if isUnfinished {
			answer := api.ReportOf(stored)
			answer.UnderWay = true
			return answer, nil
		}
	}
	if report, ok := a.manager.LastReport(); ok {
		return api.ReportOf(report), nil
	}
	return nil, errors.New("there was no shutdown yet")
}

// trigger begins a shutdown, or cancels one, as the host's own announcement would.
func (a *Agent) trigger(event source.Event) error {
	if err := a.manager.Trigger(event); err != nil {
		return fmt.Errorf("failed to begin the shutdown, or to cancel it: %w", err)
	}
	return nil
}

// beginDrain marks the node as drained until undrain, and begins a shutdown for it. If the node is drained already, it does
// nothing.
func (a *Agent) beginDrain() error {
	a.changingDrain.Lock()
	defer a.changingDrain.Unlock()
	if a.opts.Units.IsNodeDrained() {
		return nil
	}
	if err := a.opts.Units.SetNodeDrained(true); err != nil { // the next agent will not know of the drain
		a.opts.View.Say("Warning: " + err.Error())
	}
	if err := a.trigger(source.Event{Origin: drainOrigin}); err != nil {
		return errors.Join(err, a.opts.Units.SetNodeDrained(false))
	}
	return nil
}

// continueDrain begins a shutdown if the node is drained, because a previous agent may have begun the drain.
func (a *Agent) continueDrain() error {
	a.changingDrain.Lock()
	defer a.changingDrain.Unlock()
	if !a.opts.Units.IsNodeDrained() {
		return nil
	}
	a.opts.View.Say("This node was drained by kubegrace-node drain, and stays so until kubegrace-node undrain.")
	return a.trigger(source.Event{Origin: drainOrigin})
}

// withdrawDrain removes the stored mark of beginDrain, so that no later agent drains again, and cancels the shutdown that
// beginDrain began. A shutdown that the host itself has announced continues.
func (a *Agent) withdrawDrain() error {
	a.changingDrain.Lock()
	defer a.changingDrain.Unlock()
	if !a.opts.Units.IsNodeDrained() {
		return errors.New("this node is not drained")
	}
	return errors.Join(a.opts.Units.SetNodeDrained(false), a.trigger(source.Event{Origin: drainOrigin, Cancelled: true}))
}

// drain begins a drain, waits until the pods have ended, and returns the report. If a drain, or a shutdown of the host, has
// stopped all pods already, it returns the report of that. The drain continues if the client disconnects.
func (a *Agent) drain(ctx context.Context) (any, error) {
	if err := a.beginDrain(); err != nil {
		return nil, err
	}
	reports := make(chan shutdown.Report, 1)
	select {
	case a.drainClients <- reports:
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
	select {
	case report := <-reports:
		answer := api.ReportOf(report)
		if !report.Cancelled { // after a cancelled drain the agent starts the stopped units again
			answer.UnitsError = a.unitsError(ctx)
		}
		return answer, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// unitsError says which units of --stop-unit still run after a drain, or why that is not known; "": none runs.
func (a *Agent) unitsError(ctx context.Context) string {
	ctx, cancel := context.WithTimeout(ctx, busTimeout)
	defer cancel()
	if err := a.opts.Units.CheckStopped(ctx); err != nil {
		return err.Error()
	}
	return ""
}

// sendReport sends a client the report of the last drain. If a drain is under way, it stores the client instead: handleReport
// sends it the report of that drain.
func (l *loop) sendReport(client chan<- shutdown.Report) {
	switch {
	case l.draining:
		l.clients = append(l.clients, client)
	case l.drained:
		report, _ := l.manager.LastReport()
		client <- report
	default: // undrain has withdrawn the client's drain already
		client <- shutdown.Report{Cancelled: true}
	}
}

// undrain withdraws a drain. It returns when startUnits, in the background, has started the stopped units again, or with
// the reason why it cannot.
func (a *Agent) undrain(ctx context.Context) (any, error) {
	if err := a.withdrawDrain(); err != nil {
		return nil, err
	}
	for a.opts.Units.Stopped() != nil {
		if why := a.missingParts.reason(stoppedUnits); why != "" {
			return nil, fmt.Errorf("the drain is withdrawn, but not all that it has stopped could be started, which is tried again: %s", why)
		}
		if err := times.Sleep(ctx, refreshInterval); err != nil {
			return nil, err
		}
	}
	return api.Meta{APIVersion: api.Version, Kind: "Undrain"}, nil
}
