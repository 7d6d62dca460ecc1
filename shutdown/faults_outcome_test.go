//go:build linux

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

// outcome is how a shutdown has ended.
type outcome struct {
	limit       time.Duration // H
	held        bool          // the host, when it was announced
	signalled   bool          // the agent learned of it by SIGTERM
	interrupted bool          // by the end of Run's context
	begun       bool          // an agent has begun a drain
	agents      int           // that have run
	released    time.Duration // since the announcement; 0: the host was not held
	byItself    bool          // the host went on, because its limit was over
	over        time.Duration // when the last report ends
	stopped     []string      // pods whose container has ended
	killed      []string      // by SIGKILL
	told        int           // final statuses
	report      shutdown.Report
	said        []string // what went wrong, by the state of the lock, the pods' events and outcomes
	err         error    // Run's
}

// outcome looks at how the shutdown stands when the host's time is over.
func (m *machine) outcome(held, signalled bool, announced time.Time) *outcome {
	m.Helper()
	o := &outcome{limit: m.limit(), interrupted: m.cell.fault == agentEnds, held: held, signalled: signalled, agents: len(m.agents)}
	if released, ok := m.host.Released(); ok && held {
		o.released = released.Sub(announced)
	}
	for _, a := range m.agents {
		o.begun = o.begun || a.drained() > 0
	}
	for _, exit := range m.rt.Exits() {
		o.stopped = append(o.stopped, exit.ID)
		if exit.By == lifecycletest.ByKill {
			o.killed = append(o.killed, exit.ID)
		}
	}
	m.mu.Lock()
	o.told = len(m.told)
	m.mu.Unlock()
	last := m.agents[len(m.agents)-1]
	if err := last.m.Inhibitor().Err; err != nil {
		o.said = append(o.said, err.Error())
	}
	for _, event := range m.events.All() {
		if event.Type == v1.EventTypeWarning {
			o.said = append(o.said, event.Reason)
		}
	}
	o.report, _ = last.m.LastReport()
	for _, pod := range o.report.Pods {
		if pod.Outcome != string(lifecycle.Graceful) {
			o.said = append(o.said, pod.Outcome)
		}
	}
	o.over = o.report.Ended.Sub(announced)
	return o
}

// String is the cell of the table.
func (o *outcome) String() string {
	if !o.begun {
		return "the agent has ended before the shutdown, the host is not held"
	}
	var parts []string
	switch {
	case o.byItself:
		parts = append(parts, "the host goes on by itself at "+seconds(o.released))
	case o.held:
		parts = append(parts, fmt.Sprintf("released at %s of %d", seconds(o.released), int(o.limit.Seconds())))
	case o.over > 0:
		parts = append(parts, "no lock, over at "+seconds(o.over))
	default:
		parts = append(parts, "no lock")
	}
	stopped := fmt.Sprintf("%d of 3 stopped", len(o.stopped))
	if len(o.killed) > 0 {
		stopped += fmt.Sprintf(" (%d by force)", len(o.killed))
	}
	parts = append(parts, stopped)
	if o.told != len(o.stopped) {
		parts = append(parts, fmt.Sprintf("%d of their statuses told", o.told))
	}
	if o.signalled {
		parts = append(parts, "learned by SIGTERM")
	}
	if len(o.failures()) > 0 && !o.interrupted { // what a call says that is cancelled depends on chance
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

// failures are what the report says went wrong.
func (o *outcome) failures() []string {
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
