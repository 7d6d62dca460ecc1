package shutdown

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/podkey"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

var (
	// ErrNotRunning is the error of [Manager.Trigger] before Run and after it.
	ErrNotRunning = errors.New("shutdown manager is not running")
	// ErrInterrupted is wrapped by the error of [Manager.Run] whose context has ended in a drain. The
	// next agent goes on with the shutdown.
	ErrInterrupted = errors.New("the end of Run has interrupted a shutdown")
	// errNotMade is the error of a Manager that is nil or zero.
	errNotMade = errors.New("the shutdown manager was not made with NewManager")
	// errAlreadyRun is the error of a second [Manager.Run].
	errAlreadyRun = errors.New("shutdown manager has been run already")
)

// Manager drains the pods of one node when its host shuts down. Make one with [NewManager]. All
// methods may be called concurrently. Only Run and TerminateAll wait for pods or for the host.
type Manager struct {
	*settings

	shell *shell
}

// NewManager checks the options and returns a manager. Its error joins all problems of the
// options. Until Run the manager only decides on admission. If the state folder has a shutdown of
// this boot that may still go on, it refuses every pod; otherwise it refuses the pods whose final
// status is still in the folder.
func NewManager(opts Options) (*Manager, error) { return newManager(opts, statelog.Options{}) }

// newManager is NewManager with another disk and another clock since the boot.
func newManager(opts Options, disk statelog.Options) (*Manager, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("invalid shutdown options: %w", err)
	}
	s := newSettings(opts)
	return &Manager{settings: s, shell: newShell(s, disk)}, nil
}

// isMade reports whether NewManager has made the manager.
func (m *Manager) isMade() bool { return m != nil && m.shell != nil }

// Ready returns a channel that is closed when the first attempt to take the inhibitor lock is over: a lock
// is held, perhaps with less delay than asked for, or a shutdown is under way, or no host is
// watched. A failed attempt closes it too, since attempts go on for ever and an agent must not
// wait that long; [Manager.Inhibitor] shows which it was. A host that does not answer within two
// seconds (five for RequestDelay) counts as failed. If another agent uses the state folder, Ready
// also waits for that agent, for ten seconds at most; the inhibitor lock is held meanwhile. The end of Run
// closes the channel in any case. Nothing but Run closes it: start Run before waiting for it.
//
// The package documentation shows a Start function that is made of Run and Ready.
func (m *Manager) Ready() <-chan struct{} {
	if !m.isMade() {
		closed := make(chan struct{})
		close(closed)
		return closed
	}
	return m.shell.ready.closed
}

// Run watches the host, holds the inhibitor lock, and drains the pods when the host shuts down.
// It returns when ctx ends, with nil or with the errors of releasing the lock, closing the
// session and storing the state. If a drain is under way, the end of ctx stops its kills and its
// waits, OnReport is called with what has happened so far, and the error names the pods that are not
// known to have ended. When Run returns, the lock is released and every goroutine has ended, except
// calls of the embedder's code that ignore their context: Run waits for them until ten seconds after
// the end of ctx and of the host's time, and then its error names them. A manager runs once; a second
// call is an error.
func (m *Manager) Run(ctx context.Context) error {
	if !m.isMade() {
		return errNotMade
	}
	return m.shell.run(ctx)
}

// Trigger announces a shutdown without a signal of the host. With event.Cancelled it takes back the
// announcement of event.Origin, or with the Origin "" all that Trigger has announced; what the host
// has announced only the host takes back. When Trigger returns, admission is refused, or open again
// after a cancellation. Outside Run the error is [ErrNotRunning].
func (m *Manager) Trigger(event source.Event) error {
	if !m.isMade() {
		return errNotMade
	}
	if !event.Cancelled && event.Kind != source.KindUnknown && !slices.Contains(source.Kinds(), event.Kind) {
		return fmt.Errorf("the kind of the event is %q, it must be one of %q or empty", event.Kind, source.Kinds())
	}
	if !m.shell.isRunning() {
		return ErrNotRunning
	}
	<-m.shell.opening.over
	m.shell.step(m.shell.event(event, false))
	return nil
}

// Inhibitor returns the state of the inhibitor lock and how long the host waits. A limit that somebody
// changes under a running manager is shown within 10 s.
func (m *Manager) Inhibitor() Inhibitor {
	if !m.isMade() {
		return Inhibitor{State: InhibitorOff, Off: errNotMade.Error(), Err: errNotMade}
	}
	return m.inhibitor(m.shell.host.Load())
}

// Plan returns what a shutdown would do if it began now, with the current pods and the limit that
// the host granted last. Without a configured schedule it returns what Trigger and TerminateAll
// would do. It waits for Options.ListPods for at most a second. If the list of pods is not complete, a
// warning of the plan says so.
func (m *Manager) Plan() plan.Plan {
	if !m.isMade() {
		return plan.Plan{Warnings: []string{errNotMade.Error()}}
	}
	limit := time.Duration(math.MaxInt64)
	if h := m.shell.host.Load(); h != nil {
		if delay, known := h.Granted(); known {
			limit = delay
		}
	}
	return m.plan(m.shell.context(), &call.Group{}, limit)
}

// Admit decides whether a pod may start. It refuses every pod while a shutdown is known or not yet
// settled: from its event until its cancellation, and for good once TerminateAll was called.
// Outside a shutdown it refuses a pod, by its UID, that an earlier shutdown has signalled, until it
// has ended, and one whose final status the API server has not acknowledged. A pod whose kill was
// given up may never be known to have ended. It is refused until [Options.ListPods] lacks it in a later
// shutdown. A nil pod stands for any pod and is refused only during a shutdown. Call
// Admit when the pod is in the list of [Options.ListPods] and has not been started.
//
// A static pod is started again under its UID, and may be the API server itself. Outside a
// shutdown, Admit withdraws its final status, and admits the pod when it is asked again.
//
// Admit never blocks and may be called from any goroutine.
func (m *Manager) Admit(pod *v1.Pod) Admission {
	if !m.isMade() {
		return Admission{Reason: notAdmittedReason, Message: errNotMade.Error()}
	}
	now := m.shell.admission.now.Load()
	if !now.refusesAll() {
		if pod == nil {
			return Admission{Admit: true}
		}
		static, refused := now.pods[podkey.Of(pod)]
		if !refused {
			return Admission{Admit: true}
		}
		if static {
			m.shell.step(node.Start{Key: podkey.Of(pod)})
		}
	}
	m.shell.admission.refused.Add(1)
	m.opts.Metrics.PodsRefused(1)
	return Admission{Reason: notAdmittedReason, Message: notAdmittedMessage}
}

// ShutdownStatus returns [ErrNodeShuttingDown] while a shutdown is known or not yet settled, and once
// TerminateAll was called; else nil. It is the kubelet's ShutdownStatus. It never blocks.
func (m *Manager) ShutdownStatus() error {
	if !m.isMade() {
		return errNotMade
	}
	if m.shell.admission.now.Load().refusesAll() {
		return ErrNodeShuttingDown
	}
	return nil
}

// LastReport returns the report of the last shutdown that has ended or was interrupted by the end
// of Run; false if there is none. Before the first shutdown of this agent it is the report that a
// previous agent stored in [Options.StateDir]. A pod that outlives the shutdown gets its end in
// later calls.
func (m *Manager) LastReport() (Report, bool) {
	if !m.isMade() {
		return Report{}, false
	}
	return m.shell.lastReport()
}

// TerminateAll drains the node without a shutdown, for an agent that stops its pods when it is
// stopped itself. It uses the same buckets, the same times and the pod policy of [source.KindUnknown].
// It returns the report, after Options.OnReport has returned; the error has that of
// [Report.Err], with the pods that are not known to have ended. From its call on no pod is admitted
// any more.
//
// It may be called before, during and after Run. It neither holds nor releases the host, stores
// no shutdown, and does not publish the node state. If a shutdown is draining, TerminateAll waits
// for it instead; while it is not settled whether that of a previous agent goes on, it waits for five
// seconds at most. If a shutdown begins meanwhile, it takes over the pods, and TerminateAll waits for
// it. If that shutdown is cancelled or ends with Run, TerminateAll drains the rest.
//
// The end of ctx ends the wait, and the report has who is left. When no call of TerminateAll waits any
// more, no further pod is signalled. Unless Run is under way, calls that have not returned are cancelled
// and waited for ten seconds more; then the error names them. A later call returns the report of the first one.
//
// If ctx has ended already, nothing is drained, and the error says so: a later call drains the node.
func (m *Manager) TerminateAll(ctx context.Context) (Report, error) {
	if !m.isMade() {
		return Report{}, errNotMade
	}
	if err := context.Cause(ctx); err != nil {
		return Report{}, fmt.Errorf("no pod was signalled, because the context had ended before the drain: %w", err)
	}
	return m.shell.terminateAll(ctx)
}
