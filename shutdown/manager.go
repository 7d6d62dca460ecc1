package shutdown

import (
	"context"
	"errors"
	"fmt"
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

var (
	errNotRunning = errors.New("shutdown manager is not running")
	// errNoRun and errRunOver are the errors of Inhibitor before Run and after its end.
	errNoRun   = errors.New("no inhibitor lock is held: Manager.Run has not been called")
	errRunOver = errors.New("no inhibitor lock is held: Manager.Run has ended")
	// ErrInterrupted is wrapped by the error of [Manager.Run] if its context ended during a drain. With
	// [Options.StateDir] the next agent resumes the shutdown.
	ErrInterrupted = errors.New("the end of Run interrupted a shutdown")
	// errNotMade is returned by the methods of a Manager that is nil or zero.
	errNotMade = errors.New("the shutdown manager was not made with NewManager")
	// errAlreadyRun is returned by a second [Manager.Run].
	errAlreadyRun = errors.New("shutdown manager has been run already")
)

// Manager drains the pods of one node when its host shuts down. [NewManager] returns one. All methods
// may be called concurrently. Only Run and TerminateAll wait for pods or for the host.
type Manager struct {
	shell *shell // connects the core (package node), which decides, to the host, the disk and the embedder's code
}

// NewManager validates the options and returns a manager. Its error names all invalid options. Before
// Run, [Manager.Admit] refuses every pod if [Options.StateDir] has a shutdown of this boot that may still
// be under way. Otherwise it refuses only pods of the last shutdown: those that may still run, and those
// whose final statuses are pending.
func NewManager(opts Options) (*Manager, error) { return newManager(opts, statelog.Options{}) }

// newManager returns a manager. Tests set two fields of log: Boot is a clock that counts from the boot, and Before is called
// before each disk operation of the state log. newShell sets the others.
func newManager(opts Options, log statelog.Options) (*Manager, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("invalid shutdown options: %w", err)
	}
	return &Manager{shell: newShell(newSettings(opts), log)}, nil
}

// isMade reports whether NewManager has made the manager.
func (m *Manager) isMade() bool { return m != nil && m.shell != nil }

// Ready returns a channel that is closed after the first attempt to take the inhibitor lock, or when
// Run ends. Start Run before you wait for the channel: nothing else closes it. [Manager.Inhibitor]
// shows whether the attempt succeeded. Run repeats a failed attempt. The attempt counts as failed if the
// host does not answer within 2 s (5 s for RequestDelay). Without a host, and during a shutdown, there is
// no attempt to wait for. If another agent uses the state folder, the channel stays open until that agent
// ends, for at most 10 s; the inhibitor lock is held during this time.
func (m *Manager) Ready() <-chan struct{} {
	if !m.isMade() {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return m.shell.ready
}

// Run watches the host, holds the inhibitor lock, and drains the pods when the host shuts down. It
// runs until ctx ends. It returns the errors of releasing the lock and closing the session, and an error
// if a part of the state is not stored when it ends; nil if there are none. Other failures to read or store
// the state are logged, and are in [Report.Errors]. A manager runs once: a second call returns an error.
//
// If ctx ends during a drain, the drain stops: Run signals no further pod, calls OnReport, and cancels
// its calls to your code that are in progress, such as kills. It returns an error that wraps
// [ErrInterrupted] and names the pods that are not known to have ended.
//
// When Run returns, the lock is released and all its goroutines have ended, except calls to your code
// that ignore their contexts. Run waits up to 10 s for these calls, counted from the end of ctx or, if
// that is later, from the time at which an interrupted drain would have stopped waiting for pods. Its
// error then names them.
func (m *Manager) Run(ctx context.Context) error {
	if !m.isMade() {
		return errNotMade
	}
	return m.shell.run(ctx)
}

// Trigger announces a shutdown that the host did not announce. With event.Cancelled it withdraws the
// announcement that Trigger made for event.Origin, or all that Trigger made if Origin is "". Only the
// host can withdraw its own announcement. When Trigger returns, [Manager.Admit] already reflects the
// event. Outside Run it returns an error.
func (m *Manager) Trigger(event source.Event) error {
	if !m.isMade() {
		return errNotMade
	}
	isValid := event.Cancelled || event.Kind == source.KindUnknown || slices.Contains(source.Kinds(), event.Kind)
	if !isValid {
		return fmt.Errorf("the kind of the event is %q, it must be one of %q or empty", event.Kind, source.Kinds())
	}
	if isRunning := m.shell.phaseOfRun() == phaseRunning; !isRunning {
		return errNotRunning
	}
	<-m.shell.openingOver // the event may be about the shutdown in the state log
	m.shell.step(node.Event{Event: m.shell.withDeadlineSinceBoot(event), WallTime: m.shell.opts.Clock.Now()})
	return nil
}

// Inhibitor returns the state of the inhibitor lock and the delay that the host grants. A limit that is
// changed while the manager runs shows up within 10 s.
func (m *Manager) Inhibitor() Inhibitor {
	if !m.isMade() {
		return Inhibitor{Off: errNotMade.Error(), Err: errNotMade}
	}
	shown := m.shell.inhibitor(m.shell.host.Load())
	if m.shell.watches() && !shown.Held {
		switch m.shell.phaseOfRun() {
		case phaseIdle:
			shown.Err = errNoRun
		case phaseOver:
			shown.Err = errRunOver
		case phaseRunning: // Err is that of the host
		}
	}
	return shown
}

// Plan returns what a shutdown would do if it began now, for the current pods and the delay that the
// host granted last. Without a configured schedule it returns what Trigger and TerminateAll would do.
// It waits at most 1 s for Options.ListPods, and at most 1 s for PriorityOf of Options.Plan. A warning in
// the plan says if one of them has not returned, or the list is incomplete.
func (m *Manager) Plan() plan.Plan {
	if !m.isMade() {
		return plan.Plan{Warnings: []string{errNotMade.Error()}}
	}
	limit := noLimit
	if h := m.shell.host.Load(); h != nil {
		if delay, known := h.Granted(); known {
			limit = delay
		}
	}
	return m.shell.plan(limit)
}

// Admit decides whether a pod may start. Call it after the pod is in the list of [Options.ListPods] and
// before the pod is started. It never blocks.
//
// Admit refuses every pod from the announcement of a shutdown until its cancellation. It also does so while it
// is unknown whether a previous agent's shutdown is still under way, and for good after TerminateAll. A nil pod
// stands for any pod: it is refused only in these cases.
//
// Outside a shutdown Admit refuses a pod, by its UID, if an earlier shutdown has signalled it and it has not
// ended yet. It also refuses a pod whose final status the API server has not acknowledged. A pod whose kill
// was given up may never be known to have ended: it is refused until a later shutdown finds it missing from
// [Options.ListPods].
//
// A static pod restarts under the same UID, and may be the API server itself. Outside a shutdown, the
// first Admit refuses it, but drops its pending final status, and takes its previous run for ended even
// if its kill was given up. A later Admit admits the pod. Only Run can store that, so before Run has read the
// state every Admit refuses the pod: do not wait for a static pod before you start Run.
func (m *Manager) Admit(pod *v1.Pod) Admission {
	if !m.isMade() {
		return Admission{Reason: notAdmittedReason, Message: errNotMade.Error()}
	}
	if m.shell.admits(pod) {
		return Admission{Admit: true}
	}
	m.shell.opts.Metrics.PodsRefused(1)
	return Admission{Reason: notAdmittedReason, Message: notAdmittedMessage}
}

// ShutdownStatus returns [ErrNodeShuttingDown] while [Manager.Admit] refuses every pod, else nil. It
// never blocks. It corresponds to the kubelet's ShutdownStatus.
func (m *Manager) ShutdownStatus() error {
	if !m.isMade() {
		return errNotMade
	}
	if m.shell.admission.Load().refusesAll() {
		return ErrNodeShuttingDown
	}
	return nil
}

// LastReport returns the report of the last shutdown that ended or was interrupted by the end of Run;
// false if there is none. Before this agent's first shutdown it returns the report that a previous
// agent stored in [Options.StateDir]. A pod that outlives the shutdown gets its Ended time in later
// calls.
func (m *Manager) LastReport() (Report, bool) {
	if !m.isMade() {
		return Report{}, false
	}
	return m.shell.lastReport()
}

// TerminateAll drains the node without a shutdown, for an agent that stops its pods when it stops
// itself. It uses the same buckets and times, and the pod policy of [source.KindUnknown]. From its first
// call on, no pod is admitted. It neither takes nor releases the inhibitor lock, stores no shutdown, and
// does not publish the node state. It may be called before, during and after Run. A later call returns
// the report of the first one.
//
// TerminateAll returns the report after Options.OnReport has returned. Its error joins that of
// [Report.Err], which names the pods that are not known to have ended.
//
// If a shutdown is draining, TerminateAll waits for that drain instead. While it is unknown whether a
// previous agent's shutdown is still under way, it waits for at most 5 s. A shutdown that begins later
// takes over the pods, and TerminateAll waits for it. If that shutdown is cancelled or ends with Run,
// TerminateAll drains the remaining pods.
//
// When ctx ends, TerminateAll stops waiting; the report shows which pods have not ended. After the last
// waiting call has stopped, no further pod is signalled. Unless Run is under way, TerminateAll also
// cancels the calls to your code that have not returned, waits up to 10 s for them, and then returns an
// error that names them.
//
// If the context of the first call has already ended, nothing is drained, and the error says so. The next call
// then drains the node.
func (m *Manager) TerminateAll(ctx context.Context) (Report, error) {
	if !m.isMade() {
		return Report{}, errNotMade
	}
	return m.shell.terminateAll(ctx)
}
