//go:build linux && go1.25

package shutdown_test

import (
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/lifecycle/lifecycletest"
	"github.com/kubegrace/kubegrace/shutdown"
)

// outcome says how a shutdown has ended.
type outcome struct {
	limit        time.Duration // H
	held         bool          // a lock was held when the shutdown was announced
	triggered    bool          // the shutdown was triggered, as an agent does on SIGTERM
	interrupted  bool          // the context of Run has ended during the shutdown
	drainBegun   bool          // an agent has begun a drain
	agents       int           // the number of agents that have run
	released     time.Duration // when the host was released, since the announcement; 0: it was not held
	hostWentOn   bool          // the host went on because its limit was over
	reportEnd    time.Duration // the end of the last report, since the announcement
	stopped      []string      // pods whose container has ended
	killed       []string      // pods whose container was ended by SIGKILL
	acknowledged int           // the number of acknowledged final statuses
	report       shutdown.Report
	problems     []string // what the state of the lock, the pods' events and the pods' outcomes say went wrong
	err          error    // of Run
}

// outcome returns how the shutdown stands when the host's time is over.
func (m *machine) outcome(held, signalled bool, announced time.Time) *outcome {
	m.Helper()
	o := &outcome{limit: m.hostLimit(), interrupted: m.cell.fault == agentEnds, held: held, triggered: signalled, agents: len(m.agents)}
	if released, ok := m.host.Released(); ok && held {
		o.released = released.Sub(announced)
	}
	for _, a := range m.agents {
		o.drainBegun = o.drainBegun || a.drainsBegun() > 0
	}
	for _, exit := range m.rt.Exits() {
		o.stopped = append(o.stopped, exit.ID)
		if exit.By == lifecycletest.ByKill {
			o.killed = append(o.killed, exit.ID)
		}
	}
	m.mu.Lock()
	o.acknowledged = len(m.acknowledged)
	m.mu.Unlock()
	last := m.agents[len(m.agents)-1]
	if err := last.m.Inhibitor().Err; err != nil {
		o.problems = append(o.problems, err.Error())
	}
	for _, event := range m.events.All() {
		if event.Type == v1.EventTypeWarning {
			o.problems = append(o.problems, event.Reason)
		}
	}
	o.report, _ = last.m.LastReport()
	for _, pod := range o.report.Pods {
		if pod.Outcome != string(lifecycle.Graceful) {
			o.problems = append(o.problems, pod.Outcome)
		}
	}
	o.reportEnd = o.report.Ended.Sub(announced)
	return o
}

// String returns the cell's text in the table.
func (o *outcome) String() string {
	if !o.drainBegun {
		return "the agent has ended before the shutdown, the host is not held"
	}
	var parts []string
	switch {
	case o.hostWentOn:
		parts = append(parts, "the host goes on by itself at "+seconds(o.released))
	case o.held:
		parts = append(parts, fmt.Sprintf("released at %s of %d", seconds(o.released), int(o.limit.Seconds())))
	case o.reportEnd > 0:
		parts = append(parts, "no lock, over at "+seconds(o.reportEnd))
	default:
		parts = append(parts, "no lock")
	}
	stopped := fmt.Sprintf("%d of 3 stopped", len(o.stopped))
	if len(o.killed) > 0 {
		stopped += fmt.Sprintf(" (%d by force)", len(o.killed))
	}
	parts = append(parts, stopped)
	if o.acknowledged != len(o.stopped) {
		parts = append(parts, fmt.Sprintf("%d of their statuses told", o.acknowledged))
	}
	if o.triggered {
		parts = append(parts, "learned by SIGTERM")
	}
	if len(o.reportedErrors()) > 0 && !o.interrupted { // whether a cancelled call returns an error depends on chance
		parts = append(parts, "named in the report")
	}
	if o.err != nil {
		parts = append(parts, "named by Run")
	}
	if o.agents > 1 {
		parts = append(parts, fmt.Sprintf("%d agents", o.agents))
	}
	return strings.Join(parts, "; ")
}

// reportedErrors returns the errors in the report: those of the shutdown and those of its
// pods.
func (o *outcome) reportedErrors() []string {
	all := slices.Clone(o.report.Errors)
	for _, pod := range o.report.Pods {
		if pod.Error != "" {
			all = append(all, pod.Error)
		}
	}
	return all
}

func seconds(d time.Duration) string {
	return fmt.Sprint(d.Round(10*time.Millisecond).Seconds(), " s")
}
