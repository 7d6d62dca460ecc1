package agent

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/shutdown"
)

// refreshInterval is the interval between two calls of refresh.
const refreshInterval = 100 * time.Millisecond

// loop handles signals and watches the shutdown. Only the goroutine of run uses its
// fields.
type loop struct {
	*Agent
	created        time.Time           // a report of a shutdown that ended earlier is another agent's
	shownInhibitor shutdown.Inhibitor  // the inhibitor as it was shown last
	drainTimer     <-chan time.Time    // fires when ShutdownAfter has passed
	began          time.Time           // when the current shutdown began; zero: there is none
	interrupted    bool                // a signal arrived in the current shutdown
	drainReports   []chan<- api.Report // buffered; they receive the report of the current shutdown
	drained        bool                // the host still shuts down, and the pods are stopped
	lastEnded      time.Time           // when the last shutdown ended, as its report says
	lastStops      int                 // pods.shutdownStops when the last shutdown ended
}

func newLoop(a *Agent) *loop { return &loop{Agent: a, created: time.Now()} }

// run returns nil when the agent is to leave, and an error if pods were not stopped.
func (l *loop) run(ctx context.Context) error {
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	startsDone := l.startsDone
	for {
		var err error
		done := false
		select {
		case <-startsDone:
			startsDone = nil
			l.announceReady()
		case sig := <-l.opts.Signals:
			done, err = l.handleSignal(sig)
		case <-l.drainTimer:
			err = l.trigger("--shutdown-after")
		case call := <-l.loopCalls:
			err = call(l)
		case <-ticker.C:
			done, err = l.refresh()
		case <-ctx.Done():
			return nil
		}
		if done || err != nil {
			return err
		}
	}
}

// manual reports whether no host announces the shutdown: a signal or a timer triggers it.
func (l *loop) manual() bool { return l.opts.Source == nil }

// draining reports whether pods are being stopped.
func (l *loop) draining() bool { return !l.began.IsZero() }

// announceReady shows how many pods run and notifies the service manager.
func (l *loop) announceReady() {
	l.skipOldReport(l.manager.ShutdownStatus() != nil)
	l.opts.View.Say(l.welcomeText(l.snapshot(time.Now())))
	for _, warning := range l.manager.Plan().Warnings {
		l.opts.View.Say("Warning: " + warning)
	}
	if l.opts.ShutdownAfter > 0 {
		l.drainTimer = time.After(l.opts.ShutdownAfter)
	}
	l.notify("READY=1")
}

// trigger starts a shutdown that no host has announced, unless one is under way.
func (l *loop) trigger(origin string) error {
	l.drainTimer = nil
	if l.draining() {
		return nil
	}
	l.opts.View.Say(origin + ": shutting down.")
	l.beginShutdown()
	if err := l.manager.Trigger(shutdown.Event{Origin: origin}); err != nil {
		return fmt.Errorf("failed to begin the shutdown: %w", err)
	}
	return nil
}

// beginShutdown records the beginning of a shutdown, and asks the service manager to wait
// for its end.
func (l *loop) beginShutdown() {
	l.began, l.interrupted = l.pods.shutdownBegan(time.Now()), false
	l.notify(fmt.Sprintf("STATUS=Shutting down\nEXTEND_TIMEOUT_USEC=%d", (l.allowedTime() + closeTimeout).Microseconds()))
}

// refresh updates the view, and finds out whether a shutdown has begun or ended.
func (l *loop) refresh() (done bool, err error) {
	l.showInhibitor()
	shuttingDown := l.manager.ShutdownStatus() != nil
	l.skipOldReport(shuttingDown)
	report, ended := l.endedReport()
	if !l.draining() && (ended || shuttingDown && !l.drained) {
		l.beginShutdown()
	}
	l.drained = l.drained && shuttingDown
	snapshot := l.snapshot(time.Now())
	if ended {
		snapshot.Began, snapshot.Now, snapshot.Cancelled = report.Started, report.Ended, report.Cancelled
		l.addNotReported(&snapshot, report)
		return l.endShutdown(snapshot, report)
	}
	if !l.drained {
		l.opts.View.Show(snapshot)
	}
	return false, nil
}

// skipOldReport makes endedReport ignore a report that exists while no shutdown is under
// way, which is that of a former agent. If the clock was set back, it can be newer than
// this agent.
func (l *loop) skipOldReport(shuttingDown bool) {
	if report, ok := l.manager.LastReport(); ok && !shuttingDown && !l.draining() && l.pods.shutdownStops() == l.lastStops {
		l.lastEnded = report.Ended
	}
}

// endedReport returns the report of the current shutdown. It returns false before that
// shutdown has ended and all of its stops have.
func (l *loop) endedReport() (shutdown.Report, bool) {
	report, ok := l.manager.LastReport()
	if !ok || report.Ended.Before(l.created) || report.Ended.Equal(l.lastEnded) || l.pods.shutdownStopsUnderWay() > 0 {
		return report, false
	}
	// The manager learns of the end of a stop a moment after the stop.
	return report, !slices.ContainsFunc(report.Pods, func(p shutdown.PodReport) bool { return p.Ended.IsZero() && p.Error == "" })
}

// endShutdown shows the end of a shutdown. It returns done if the agent then leaves: if
// there is no host to wait for, or if a signal has asked the agent to leave meanwhile. A
// service manager may stop its units as soon as the inhibitor is released.
func (l *loop) endShutdown(s view.Snapshot, report shutdown.Report) (done bool, err error) {
	l.opts.View.Finish(s)
	l.logErrors(report)
	for _, reports := range l.drainReports {
		reports <- api.ReportOf(report)
	}
	l.drainReports = nil
	l.began, l.drained = time.Time{}, !report.Cancelled
	l.lastEnded, l.lastStops = report.Ended, l.pods.shutdownStops()
	err = reportError(report)
	if l.manual() || l.interrupted {
		return true, err
	}
	if err != nil {
		l.opts.View.Say("Warning: " + err.Error())
	}
	l.notify("STATUS=The pods have been stopped")
	return false, nil
}

// showAbandoned shows a shutdown that the agent leaves before its end.
func (l *loop) showAbandoned() {
	if !l.draining() {
		return
	}
	snapshot := l.snapshot(time.Now())
	snapshot.Abandoned = true
	if report, ok := l.manager.LastReport(); ok && report.Ended.IsZero() {
		l.addNotReported(&snapshot, report)
	}
	l.opts.View.Finish(snapshot)
}
