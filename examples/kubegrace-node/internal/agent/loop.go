package agent

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/view"
	"github.com/kubegrace/kubegrace/shutdown"
)

// refreshInterval is the interval between two calls of refresh.
const refreshInterval = 100 * time.Millisecond

// reportTimeout is how long after its end a drain has a report, if it has one.
const reportTimeout = 2 * time.Second

// drainOrigin is the origin of a shutdown that kubegrace-node drain has begun.
const drainOrigin = "kubegrace-node drain"

// loop handles signals and requests, and shows what happens. Only the goroutine of run uses its
// fields.
type loop struct {
	*Agent
	held        bool            // as it was shown last
	granted     time.Duration   // as it was shown last
	shownStatus string          // what the service manager was told last
	ready       <-chan struct{} // nil: it was closed
	drainTimer  <-chan time.Time
	created     time.Time             // a shutdown that began before was begun under a previous agent
	began       time.Time             // when the current drain began; zero: there is none
	allowed     time.Duration         // how long it may take
	over        time.Time             // when it was seen to be over, without a report so far; zero: it is not
	interrupted bool                  // a signal arrived in the current drain
	drained     bool                  // the host was let go, and the pods are stopped
	waiting     []chan<- drainOutcome // buffered; they receive the report of the current drain
}

// drainOutcome answers a request for a drain.
type drainOutcome struct {
	report api.Report
	err    error
}

func newLoop(a *Agent) *loop { return &loop{Agent: a, created: time.Now(), ready: a.manager.Ready()} }

// run returns nil when the agent is to leave.
func (l *loop) run(ctx context.Context) error {
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	for {
		var err error
		done := false
		select {
		case <-l.ready:
			l.ready = nil
			l.begin(ctx)
		case sig := <-l.opts.Signals:
			done, err = l.handleSignal(sig)
		case <-l.drainTimer:
			l.drainTimer = nil
			l.opts.View.Say("--shutdown-after: shutting down.")
			err = l.trigger(source.Event{Origin: "--shutdown-after"})
		case call := <-l.requests:
			call(l)
		case report := <-l.reports:
			done, err = l.end(report)
		case <-ticker.C:
			l.refresh(ctx)
		case <-ctx.Done():
			return nil
		}
		if done || err != nil {
			return err
		}
	}
}

// begin says that the agent holds the host, or why not, and goes on with a drain of a previous agent.
func (l *loop) begin(ctx context.Context) {
	if l.opts.DrainAfter > 0 {
		l.drainTimer = time.After(l.opts.DrainAfter)
		pods, _ := l.kills.all()
		l.opts.View.Say(fmt.Sprintf("%d pods run. They are stopped in order in %v; Ctrl-C leaves at once and stops none.", len(pods), l.opts.DrainAfter))
		for _, warning := range l.manager.Plan().Warnings {
			l.opts.View.Say("Warning: " + warning)
		}
	}
	if !l.shuttingDown() {
		l.forgetEnded() // of a shutdown before this agent
	}
	l.refresh(ctx)
	l.notify("READY=1")
	if l.opts.Units.Drained() {
		l.opts.View.Say("This node was drained by kubegrace-node drain, and stays so until kubegrace-node undrain.")
		if err := l.trigger(source.Event{Origin: drainOrigin}); err != nil {
			l.opts.View.Say("Warning: " + err.Error())
		}
	}
}

func (l *loop) trigger(event source.Event) error {
	if err := l.manager.Trigger(event); err != nil {
		return fmt.Errorf("failed to begin the shutdown, or to take it back: %w", err)
	}
	return nil
}

// draining reports whether pods are being stopped.
func (l *loop) draining() bool { return !l.began.IsZero() }

// refresh shows what has changed, and finds out whether a shutdown has begun or is over.
func (l *loop) refresh(ctx context.Context) {
	l.showInhibitor(ctx)
	shuttingDown := l.shuttingDown()
	if !shuttingDown && l.drained {
		l.drained = false
		l.forgetEnded()
	}
	switch names := l.kills.underWay(); {
	case !l.draining() && shuttingDown && !l.drained && l.ready == nil:
		l.beginDrain()
	case shuttingDown || len(names) > 0:
		l.over = time.Time{}
	case l.draining() && l.over.IsZero():
		l.over = time.Now()
	case l.draining() && time.Since(l.over) > reportTimeout: // that of a previous agent, which does not go on
		l.began, l.over = time.Time{}, time.Time{}
	}
	if !l.drained {
		l.opts.View.Show(l.snapshot(time.Now()))
	}
	l.tellStatus(shuttingDown)
}

// beginDrain records the beginning of a drain, and asks the service manager to wait for its end.
func (l *loop) beginDrain() {
	l.began, l.allowed, l.interrupted = time.Now(), l.manager.Plan().Release, false
	l.notify(fmt.Sprintf("EXTEND_TIMEOUT_USEC=%d", (l.allowed + closeTimeout).Microseconds()))
}

// end shows the end of a drain. The agent then leaves if that was all that it was made for, or
// if a signal has asked it to leave meanwhile.
func (l *loop) end(report shutdown.Report) (done bool, err error) {
	if !l.draining() && report.Started.Before(l.created) {
		l.opts.View.Say("A shutdown before this agent is closed now: kubegrace-node report shows it.")
		return false, nil
	}
	s := l.snapshot(time.Now())
	s.Began, s.Now = report.Started, report.Ended
	l.opts.View.Finish(s, api.ReportOf(report))
	for _, waiting := range l.waiting {
		waiting <- drainOutcome{report: api.ReportOf(report)}
	}
	l.waiting = nil
	l.began, l.drained = time.Time{}, !report.Cancelled && l.shuttingDown()
	if report.Cancelled {
		l.forgetEnded()
	}
	err = reportError(report)
	if l.opts.DrainAfter > 0 || l.interrupted {
		return true, err
	}
	if err != nil {
		l.opts.View.Say("Warning: " + err.Error())
	}
	return false, nil
}

// reportError returns the pods that a shutdown has not stopped, and the first other error of the
// shutdown.
func reportError(report shutdown.Report) error {
	errs := []error{api.ReportOf(report).PodErrors()}
	if len(report.Errors) > 0 {
		errs = append(errs, errors.New(report.Errors[0]))
	}
	if more := len(report.Errors) - 1; more > 0 {
		errs = append(errs, fmt.Errorf("and %d more errors, which kubegrace-node report shows", more))
	}
	return errors.Join(errs...)
}

// snapshot returns the current state of all pods for the view.
func (l *loop) snapshot(now time.Time) view.Snapshot {
	return view.Snapshot{Now: now, Began: l.began, Allowed: l.allowed, Pods: l.kills.views(now, l.terminator)}
}

// What may be missing, as /healthz and the status name it.
const (
	lackRuntime = "container runtime"
	lackHold    = "hold on the shutdown"
	lackTime    = "time for the pods"
	lackAnswers = "answers of the host" // the lock is held, and may be lost
)

// hostLacks returns an error for each thing that the host may lack. It is nil for what the host does not lack.
func hostLacks(i shutdown.Inhibitor) map[string]error {
	lacks := map[string]error{lackHold: nil, lackTime: nil, lackAnswers: nil}
	switch {
	case errors.As(i.Err, new(*source.DelayCappedError)):
		lacks[lackTime] = i.Err
	case i.Held:
		lacks[lackAnswers] = i.Err
	default:
		lacks[lackHold] = i.Err
	}
	return lacks
}

// showInhibitor shows changes of the inhibitor.
func (l *loop) showInhibitor(ctx context.Context) {
	now := l.manager.Inhibitor()
	for name, err := range hostLacks(now) {
		l.missing.set(ctx, name, err)
	}
	switch {
	case now.Held && (!l.held || now.Granted != l.granted):
		l.opts.View.Say(fmt.Sprintf("This machine's shutdown is held back for up to %v (asked for: %v).", now.Granted, now.Requested))
		l.granted = now.Granted
	case l.held && !now.Held:
		l.opts.View.Say("This machine's shutdown is no longer held back.")
	}
	l.held = now.Held
}

// tellStatus tells the service manager what the agent does and what it lacks, if that has changed.
func (l *loop) tellStatus(shuttingDown bool) {
	status := "Does not hold this machine's shutdown"
	switch {
	case l.draining():
		status = "Stopping pods"
	case l.drained:
		status = "The pods have been stopped"
	case shuttingDown:
		status = "This node is shutting down"
	case l.held:
		status = fmt.Sprintf("Holding this machine's shutdown for up to %v", l.manager.Inhibitor().Granted)
	}
	status = strings.Join(append([]string{status}, l.missing.lines()...), "; ")
	if status != l.shownStatus {
		l.shownStatus = status
		l.notify("STATUS=" + status)
	}
}
