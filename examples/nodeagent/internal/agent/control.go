package agent

import (
	"context"
	"fmt"
	"net/http"
	"strconv"
	"time"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
)

// drainOrigin is the origin of a shutdown that nodeagent drain has triggered.
const drainOrigin = "nodeagent drain"

// handleDrain stops all pods, waits for the end and answers with the report. The drain
// goes on if the client disconnects.
func (a *Agent) handleDrain(w http.ResponseWriter, r *http.Request) {
	reports := make(chan api.Report, 1)
	if !a.callInLoop(r.Context(), func(l *loop) error { return l.drain(reports) }) {
		writeError(w, http.StatusServiceUnavailable, errLeaving.Error())
		return
	}
	select {
	case report := <-reports:
		writeAnswer(w, report)
	case <-a.loopEnded:
		select {
		case report := <-reports: // the pods were stopped before the agent left
			writeAnswer(w, report)
		default:
			writeError(w, http.StatusServiceUnavailable, "the agent has left before the pods were stopped")
		}
	case <-r.Context().Done():
	}
}

// callInLoop makes the loop call a function. It returns false if the loop has ended.
func (a *Agent) callInLoop(ctx context.Context, call func(*loop) error) bool {
	select {
	case a.loopCalls <- call:
		return true
	case <-a.loopEnded:
	case <-ctx.Done():
	}
	return false
}

// drain triggers a shutdown, unless one is under way or done, and sends its report when
// it has ended.
func (l *loop) drain(reports chan<- api.Report) error {
	report, ok := l.manager.LastReport()
	if l.drained && ok {
		reports <- api.ReportOf(report)
		return nil
	}
	l.drainReports = append(l.drainReports, reports)
	return l.trigger(drainOrigin)
}

// handleStop stops one pod, which is not started again, and answers with its state.
func (a *Agent) handleStop(w http.ResponseWriter, r *http.Request) {
	name := r.FormValue("pod")
	p, err := a.pods.named(name)
	if err != nil {
		writeError(w, http.StatusNotFound, err.Error())
		return
	}
	grace := p.graceSeconds()
	if text := r.FormValue("seconds"); text != "" {
		if grace, err = strconv.ParseInt(text, 10, 32); err != nil || grace < 0 {
			writeError(w, http.StatusBadRequest, fmt.Sprintf("%q is no number of seconds", text))
			return
		}
	}
	// A stop cannot be undone, so it goes on if the client disconnects.
	if err := a.stopOutsideShutdown(context.WithoutCancel(r.Context()), p, grace); err != nil {
		writeError(w, http.StatusInternalServerError, err.Error())
		return
	}
	writeAnswer(w, a.queries().pod(p, time.Now()))
}
