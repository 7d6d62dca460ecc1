package agent

import (
	"context"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/shutdown"
)

// tick is how often the view is updated, and how soon the end of a shutdown is noticed.
const tick = 100 * time.Millisecond

// loop handles signals and watches the shutdown. Its fields belong to its goroutine.
type loop struct {
	*Agent
	shown   shutdown.Inhibitor  // the inhibitor as it was shown last
	began   time.Time           // when the current shutdown began; zero: none
	since   time.Time           // when the loop began; a report from before is another agent's
	ended   time.Time           // when the last shutdown ended, as its report says
	told    int                 // how many pods the shutdowns so far have told to stop
	drained bool                // the host still shuts down, and the pods are stopped
	asked   bool                // a signal arrived while the pods were being stopped
	after   <-chan time.Time    // the shutdown of --shutdown-after
	drains  []chan<- api.Report // buffered channels that receive the report
}

func newLoop(a *Agent) *loop { return &loop{Agent: a, since: time.Now()} }

// run returns nil when the agent is to leave.
func (l *loop) run(ctx context.Context) error {
	ticker := time.NewTicker(tick)
	defer ticker.Stop()
	started := l.started
	for {
		var err error
		done := false
		select {
		case <-started:
			started = nil
			l.ready()
		case sig := <-l.opts.Signals:
			done, err = l.signal(sig)
		case <-l.after:
			err = l.trigger("--shutdown-after")
		case do := <-l.requests:
			err = do(l)
		case <-ticker.C:
			done, err = l.look()
		case <-ctx.Done():
			return nil
		}
		if done || err != nil {
			return err
		}
	}
}

// manual reports whether there is no host that announces the shutdown.
func (l *loop) manual() bool { return l.opts.Source == nil }

// draining reports whether pods are being stopped.
func (l *loop) draining() bool { return !l.began.IsZero() }

// ready shows that the pods run and notifies the service manager.
func (l *loop) ready() {
	l.passOver(l.manager.ShutdownStatus() != nil)
	l.opts.View.Say(l.welcome(l.snapshot(time.Now())))
	for _, warning := range l.manager.Plan().Warnings {
		l.opts.View.Say("Warning: " + warning)
	}
	if l.opts.ShutdownAfter > 0 {
		l.after = time.After(l.opts.ShutdownAfter)
	}
	l.notify("READY=1")
}

// trigger starts a shutdown that no host has announced.
func (l *loop) trigger(origin string) error {
	l.after = nil
	if l.draining() {
		return nil
	}
	l.opts.View.Say(origin + ": shutting down.")
	l.begin()
	if err := l.manager.Trigger(shutdown.Event{Origin: origin}); err != nil {
		return fmt.Errorf("failed to begin the shutdown: %w", err)
	}
	return nil
}

// begin records the beginning of a shutdown, and asks the service manager to wait for its
// end.
func (l *loop) begin() {
	l.began, l.asked = l.pods.firstTold(time.Now()), false
	l.notify(fmt.Sprintf("STATUS=Shutting down\nEXTEND_TIMEOUT_USEC=%d", (l.allowed() + closeTimeout).Microseconds()))
}

// look brings the view up to date, and notices the beginning and the end of a
// shutdown.
func (l *loop) look() (done bool, err error) {
	l.tellInhibitor()
	shuttingDown := l.manager.ShutdownStatus() != nil
	l.passOver(shuttingDown)
	report, over := l.over()
	if !l.draining() && (over || shuttingDown && !l.drained) {
		l.begin()
	}
	l.drained = l.drained && shuttingDown
	snapshot := l.snapshot(time.Now())
	if over {
		snapshot.Began, snapshot.Now, snapshot.Cancelled = report.Started, report.Ended, report.Cancelled
		l.addReported(&snapshot, report)
		return l.finish(snapshot, report)
	}
	if !l.drained {
		l.opts.View.Show(snapshot)
	}
	return false, nil
}

// passOver takes note of the report that is there while nothing happens: one of an
// earlier agent, by a clock that may have been set back since.
func (l *loop) passOver(shuttingDown bool) {
	if report, ok := l.manager.LastReport(); ok && !shuttingDown && !l.draining() && l.pods.told() == l.told {
		l.ended = report.Ended
	}
}

// over returns the report of the current shutdown when no pod is waited for any more.
func (l *loop) over() (shutdown.Report, bool) {
	report, ok := l.manager.LastReport()
	return report, ok && !report.Ended.Before(l.since) && !report.Ended.Equal(l.ended) && l.pods.ending() == 0
}

// finish shows the end of a shutdown. It returns done if the agent then leaves: if there
// is no host to wait for, or if the agent was asked to leave meanwhile, for example by a
// service manager that stops its units after the inhibitor was released.
func (l *loop) finish(s view.Snapshot, report shutdown.Report) (done bool, err error) {
	l.opts.View.Finish(s)
	l.logErrors(report)
	for _, ended := range l.drains {
		ended <- api.ReportOf(report)
	}
	l.drains = nil
	l.began, l.ended, l.told, l.drained = time.Time{}, report.Ended, l.pods.told(), !report.Cancelled
	if l.manual() || l.asked {
		return true, failures(report)
	}
	if err := failures(report); err != nil {
		l.opts.View.Say("Warning: " + err.Error())
	}
	l.notify("STATUS=The pods have been stopped")
	return false, nil
}

// abandoned shows the end of a shutdown that the agent no longer waits for.
func (l *loop) abandoned() {
	if !l.draining() {
		return
	}
	snapshot := l.snapshot(time.Now())
	snapshot.Abandoned = true
	if report, ok := l.manager.LastReport(); ok && report.Ended.IsZero() {
		l.addReported(&snapshot, report)
	}
	l.opts.View.Finish(snapshot)
}
