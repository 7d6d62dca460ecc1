package agent

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"syscall"
	"time"

	"golang.org/x/sys/unix"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// refreshInterval is how often the loop looks for changes and shows them.
const refreshInterval = 100 * time.Millisecond

// drainOrigin marks a shutdown that the command kubegrace-node drain began. The host itself stays up.
const drainOrigin = "kubegrace-node drain"

// loop handles signals and the reports of shutdowns, and shows what happens. It has no lock: only the goroutine of run
// uses its fields.
type loop struct {
	*Agent
	shownHeld   bool                     // View has last shown that the lock is held
	shownGrant  time.Duration            // the delay that View has last shown
	shownStatus string                   // the status that the service manager has last been sent
	ready       <-chan struct{}          // closed when the manager is ready; nil once onManagerReady has been called
	drainTimer  <-chan time.Time         // fires after Options.DrainAfter
	draining    bool                     // a shutdown has begun, and its report is still to come
	interrupted bool                     // a signal arrived in the current drain
	drained     bool                     // the drain is complete, and the shutdown is still pending
	clients     []chan<- shutdown.Report // buffered; they receive the report of the current drain
}

// newLoop makes the loop of an agent. Its run starts it.
func newLoop(a *Agent) *loop { return &loop{Agent: a, ready: a.manager.Ready()} }

// run handles signals, requests and reports until the agent has to leave. Its error is that of [Agent.Run].
func (l *loop) run(ctx context.Context) error {
	ticker := time.NewTicker(refreshInterval)
	defer ticker.Stop()
	var drainClients <-chan chan<- shutdown.Report // nil until the manager is ready: only then a drain of a previous agent continues
	for {
		var err error
		done := false
		select {
		case <-l.ready:
			l.ready = nil
			l.onManagerReady(ctx)
			drainClients = l.drainClients
		case sig := <-l.opts.Signals:
			l.refresh(ctx) // a shutdown may have begun since the last tick
			done, err = l.handleSignal(sig)
		case <-l.drainTimer:
			l.drainTimer = nil
			l.opts.View.Say("--shutdown-after: shutting down.")
			err = l.trigger(source.Event{Origin: "--shutdown-after"})
		case client := <-drainClients:
			l.refresh(ctx) // the client's drain has begun since the last tick
			l.sendReport(client)
		case report := <-l.reports:
			done, err = l.handleReport(report)
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

// onManagerReady runs once, when the shutdown manager is ready. It shows whether the shutdown is delayed, tells the service
// manager that the agent has started, and continues a drain that a previous agent began.
func (l *loop) onManagerReady(ctx context.Context) {
	if l.opts.DrainAfter > 0 {
		l.drainTimer = time.After(l.opts.DrainAfter)
		l.opts.View.Say(fmt.Sprintf("In %v the pods are stopped in order; Ctrl-C leaves at once and stops none.", l.opts.DrainAfter))
		for _, warning := range l.manager.Plan().Warnings {
			l.opts.View.Say("Warning: " + warning)
		}
	}
	if !l.shuttingDown() {
		l.forgetHooks() // a shutdown of a previous agent is over
	}
	l.refresh(ctx)
	l.notify("READY=1")
	if err := l.continueDrain(); err != nil {
		l.opts.View.Say("Warning: " + err.Error())
	}
}

// refresh shows what has changed. It also detects the begin and the end of a shutdown, by asking the manager.
func (l *loop) refresh(ctx context.Context) {
	l.showInhibitor(ctx)
	shuttingDown := l.shuttingDown()
	if l.drained && (!shuttingDown || l.lastWasCancelled()) { // the host stays up; another shutdown may have begun already
		l.drained = false
		l.forgetHooks()
	}
	isKnown := l.draining || l.drained
	isManagerReady := l.ready == nil
	if isManagerReady && shuttingDown && !isKnown { // a shutdown has begun
		l.draining, l.interrupted = true, false
	}
	l.tellStatus(shuttingDown)
}

// lastWasCancelled reports whether the last shutdown that has ended was cancelled.
func (l *loop) lastWasCancelled() bool {
	report, _ := l.manager.LastReport()
	return report.Cancelled
}

// handleReport shows the report of a shutdown and sends it to waiting clients. done says that the agent then leaves: it
// was a demonstration, or a signal arrived during the drain. err then has what the report says went wrong.
func (l *loop) handleReport(report shutdown.Report) (done bool, err error) {
	l.opts.View.Finish(api.ReportOf(report))
	if report.Cancelled && l.shuttingDown() { // another shutdown has begun since, and its report is still to come
		return false, nil
	}
	for _, client := range l.clients {
		client <- report
	}
	l.clients = nil
	l.draining = false
	l.drained = l.shuttingDown()
	if report.Cancelled {
		l.forgetHooks()
	}
	if l.opts.DrainAfter > 0 || l.interrupted {
		return true, report.Err()
	}
	return false, nil
}

// The names under which /healthz and the status report what is missing.
const (
	missingRuntime = "container runtime"
	missingLock    = "inhibitor lock"
	missingTime    = "time for the pods"   // the host waits for so little that pods get less time
	missingAnswers = "answers of the host" // the agent has a lock, and may have lost it without knowing
)

// missingOfHost says what the agent lacks of the host: a lock (missingLock), enough time (missingTime), or answers
// (missingAnswers). The map always has these three keys. The value is the reason, or nil if nothing is lacking.
func missingOfHost(i shutdown.Inhibitor) map[string]error {
	reasons := map[string]error{missingLock: nil, missingTime: nil, missingAnswers: nil}
	switch {
	case errors.As(i.Err, new(*source.DelayCappedError)): // the lock is held, for less time than the pods need
		reasons[missingTime] = i.Err
	case i.Held: // an error says that the host has not answered since the lock was taken
		reasons[missingAnswers] = i.Err
	default: // there is no lock
		reasons[missingLock] = i.Err
	}
	return reasons
}

// showInhibitor prints a line if the inhibitor lock was taken or lost since the last call, or if the host now grants another
// time.
func (l *loop) showInhibitor(ctx context.Context) {
	now := l.checkInhibitor(ctx)
	switch {
	case now.Held && (!l.shownHeld || now.Granted != l.shownGrant):
		l.opts.View.Say(fmt.Sprintf("Holds the inhibitor lock: a shutdown of this machine waits for up to %v (asked for: %v).", now.Granted, now.Requested))
		l.shownGrant = now.Granted
	case l.shownHeld && !now.Held:
		l.opts.View.Say("Holds the inhibitor lock no longer: a shutdown of this machine does not wait for the pods.")
	}
	l.shownHeld = now.Held
}

// checkInhibitor returns the state of the inhibitor lock. It also stores in missingParts whether the lock, the time for the
// pods or the host's answers are missing.
func (a *Agent) checkInhibitor(ctx context.Context) shutdown.Inhibitor {
	now := a.manager.Inhibitor()
	for name, err := range missingOfHost(now) {
		a.missingParts.update(ctx, name, err)
	}
	return now
}

// tellStatus tells the service manager what the agent does and what is missing, if that has changed.
func (l *loop) tellStatus(shuttingDown bool) {
	status := "Holds no inhibitor lock"
	switch {
	case l.draining:
		status = "Stopping pods"
	case l.drained:
		status = "The pods have been stopped"
	case shuttingDown:
		status = "This node is shutting down"
	case l.shownHeld:
		status = fmt.Sprintf("Holds the inhibitor lock for up to %v", l.manager.Inhibitor().Granted)
	}
	status = strings.Join(append([]string{status}, l.missingParts.lines()...), "; ")
	if status != l.shownStatus {
		l.shownStatus = status
		l.notify("STATUS=" + status)
	}
}

// handleSignal handles SIGTERM and SIGINT. Outside a drain the agent leaves at once. In a drain a first signal
// makes it leave after the drain, and a second one at once, with an error. done says that it leaves now.
func (l *loop) handleSignal(sig os.Signal) (done bool, err error) {
	name := unix.SignalName(sig.(syscall.Signal))
	switch {
	case l.draining && l.interrupted:
		l.opts.View.Say(name + ": no longer waiting for the pods.")
		return true, fmt.Errorf("a second %s ended the waiting for %s", name, strings.Join(l.killer.beingStopped(), ", "))
	case l.draining:
		l.interrupted = true
		l.opts.View.Say(name + ": the pods are still being stopped. A second signal ends the waiting.")
		return false, nil
	}
	l.opts.View.Say(name + ": leaving. The agent stops no pod now.")
	return true, nil
}
