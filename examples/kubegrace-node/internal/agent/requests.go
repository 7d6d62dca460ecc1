package agent

import (
	"context"
	"errors"
	"net/http"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// document returns a plan for people and programs.
func (a *Agent) document(p plan.Plan) nodeplan.Document {
	limit := a.manager.Inhibitor().Granted
	if a.opts.Limit > 0 && (limit == 0 || a.opts.Limit < limit) {
		limit = a.opts.Limit
	}
	return nodeplan.OfAgent(a.opts.Config, limit, p)
}

// handleStatus answers with what the agent does.
func (a *Agent) handleStatus(w http.ResponseWriter, _ *http.Request) {
	planned := a.document(a.manager.Plan())
	writeJSON(w, http.StatusOK, api.Status{
		Meta: api.Meta{APIVersion: api.Version, Kind: "Status"},
		Held: a.manager.Inhibitor().Held, Drained: a.opts.Units.Drained(), ShuttingDown: a.shuttingDown(),
		AskedSeconds: planned.NeededSeconds, Missing: a.missing.lines(), PodsUnknown: a.missing.any(lackRuntime),
		PodCount: planned.Summary.PodCount, CutShort: planned.Summary.CutShort, LostSeconds: planned.Summary.LostSeconds,
	})
}

// handleReport answers with the report of the shutdown that is under way, as far as it is on record, or of the last one.
func (a *Agent) handleReport(w http.ResponseWriter, _ *http.Request) {
	if len(a.kills.underWay()) > 0 {
		if report, found, err := shutdown.StoredReport(a.opts.StateDir); err == nil && found && report.Ended.IsZero() {
			answer := api.ReportOf(report)
			answer.UnderWay = true
			writeJSON(w, http.StatusOK, answer)
			return
		}
	}
	if report, ok := a.manager.LastReport(); ok {
		writeJSON(w, http.StatusOK, api.ReportOf(report))
		return
	}
	writeError(w, http.StatusNotFound, "there was no shutdown yet")
}

// callLoop has the loop call a function. If it cannot any more, the client is told and it returns false.
func (a *Agent) callLoop(ctx context.Context, w http.ResponseWriter, call func(*loop)) bool {
	select {
	case a.requests <- call:
		return true
	case <-a.loopEnded:
	case <-ctx.Done():
	}
	writeError(w, http.StatusServiceUnavailable, errLeaving.Error())
	return false
}

// handleDrain stops all pods, waits for the end and answers with the report. The drain
// goes on if the client disconnects.
func (a *Agent) handleDrain(w http.ResponseWriter, r *http.Request) {
	outcomes := make(chan drainOutcome, 1)
	if !a.callLoop(r.Context(), w, func(l *loop) { l.drain(outcomes) }) {
		return
	}
	select {
	case outcome := <-outcomes:
		if outcome.err != nil {
			writeError(w, http.StatusInternalServerError, outcome.err.Error())
			return
		}
		writeJSON(w, http.StatusOK, outcome.report)
	case <-a.loopEnded:
		writeError(w, http.StatusServiceUnavailable, "the agent has left before the pods were stopped")
	case <-r.Context().Done():
	}
}

// drain begins a drain that lasts until undrain, unless there is one, and sends its report when the pods have ended. That
// they have ended may be the work of a shutdown which somebody else has announced.
func (l *loop) drain(outcomes chan<- drainOutcome) {
	if !l.opts.Units.Drained() {
		if err := l.opts.Units.SetDrained(true); err != nil { // the drain lasts as long as this agent
			l.opts.View.Say("Warning: " + err.Error())
		}
		if err := l.trigger(source.Event{Origin: drainOrigin}); err != nil {
			outcomes <- drainOutcome{err: errors.Join(err, l.opts.Units.SetDrained(false))}
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

func (l *loop) undrain() error {
	if !l.opts.Units.Drained() {
		return errors.New("this node is not drained")
	}
	return errors.Join(l.opts.Units.SetDrained(false), l.trigger(source.Event{Origin: drainOrigin, Cancelled: true}))
}

// handleUndrain takes a drain back: the node is ready again, and the units run again when it answers.
func (a *Agent) handleUndrain(w http.ResponseWriter, r *http.Request) {
	result := make(chan error, 1)
	if !a.callLoop(r.Context(), w, func(l *loop) { result <- l.undrain() }) {
		return
	}
	if err := <-result; err != nil {
		writeError(w, http.StatusConflict, err.Error())
		return
	}
	for a.opts.Units.Stopped() != nil && pause(r.Context(), refreshInterval) {
		select {
		case <-a.loopEnded:
			writeError(w, http.StatusServiceUnavailable, errLeaving.Error())
			return
		default:
		}
	}
	writeJSON(w, http.StatusOK, api.Meta{APIVersion: api.Version, Kind: "Undrain"})
}
