package shutdown

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

var (
	// ErrNotRunning is the error of [Manager.Trigger] before Run and after it.
	ErrNotRunning = errors.New("shutdown manager is not running")
	// errAlreadyRun is the error of a second [Manager.Run].
	errAlreadyRun = errors.New("shutdown manager has been run already")
)

// Manager drains the pods of one node when its host shuts down. Make one with [NewManager]. All
// methods may be called concurrently. Only Run and TerminateAll wait for pods or for the host.
type Manager struct {
	ledger    *ledger
	inbox     inbox
	ready     readiness
	host      atomic.Pointer[host.Host] // of Run; nil: none yet
	admission admissionState
	local     terminations
	past      *nodeShutdown // of a former agent of this boot, as NewManager has found it; nil: none
}

// NewManager checks the options and returns a manager. Its error joins all problems of the
// options. Until Run the manager only decides on admission. If the state folder has a shutdown of
// this boot that may still go on, it refuses every pod; otherwise it refuses the pods whose final
// status is still in the folder.
func NewManager(opts Options) (*Manager, error) { return newManager(opts, nil, nil) }

// newManager is NewManager with another source of the boot ID and the time since the boot, and
// another disk; nil: those of this machine.
func newManager(opts Options, boot func() (id string, since time.Duration, err error), write func(string, func(io.Writer) error) error) (*Manager, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("invalid shutdown options: %w", err)
	}
	m := &Manager{inbox: inbox{messages: make(chan message), stopped: make(chan struct{})}}
	m.ledger = newLedger(newSettings(opts), m.admission.refusals, boot, write)
	m.local = terminations{ledger: m.ledger, inbox: &m.inbox, state: m.admission.state}
	m.ready.init()
	if !m.ledger.watches() {
		m.ready.close()
	}
	ctx := context.Background() //nolint:forbidigo // NewManager has no context; the reading is bounded
	m.past = m.ledger.load(m.ledger.store.Read(ctx, &call.Group{}, time.Now().Add(readTime)))
	if m.past != nil && m.past.live() && !m.past.awaitsTrigger(nil) && !m.past.wasDismissed() {
		m.admission.become(unsettled)
	}
	return m, nil
}

// Ready returns a channel that is closed when the first attempt to hold the host is over: a lock
// is held, perhaps with less delay than asked for, or a shutdown is under way, or no host is
// watched. A failed attempt closes it too, since attempts go on for ever and an agent must not
// wait that long; [Manager.Inhibitor] shows which it was. A host that does not answer within two
// seconds (five for RequestDelay) counts as failed. If another agent uses the state folder, Ready
// also waits for that agent, for ten seconds at most; the host is held meanwhile. The end of Run
// closes the channel in any case.
//
// The package documentation shows a Start function that is made of Run and Ready.
func (m *Manager) Ready() <-chan struct{} { return m.ready.closed }

// Run watches the host, holds the inhibitor lock, and drains the pods when the host shuts down.
// It returns when ctx ends, with nil or with the errors of releasing the lock, closing the
// session and storing the state. If a drain is under way, the end of ctx stops its kills and its
// waits. When Run returns, the lock is released and every goroutine has ended, except calls of
// the embedder's code that ignore their context: Run waits for them until ten seconds after the
// end of ctx and of the host's time, and then its error names them. A manager runs once; a second
// call is an error.
func (m *Manager) Run(ctx context.Context) error {
	if !m.inbox.begin() {
		return errAlreadyRun
	}
	return m.runLoop(ctx)
}

// Trigger announces a shutdown without a signal of the host. With event.Cancelled it takes back
// the announcement of event.Origin, or with the Origin "" all of them, that of the host too: then
// the pods stay, and the lock is kept until the host says that it stays or its time is over. When
// Trigger returns, admission is refused, or open again after a cancellation. Outside Run the error
// is [ErrNotRunning].
func (m *Manager) Trigger(event Event) error {
	received := time.Now()
	if !m.inbox.post(func(s *states) { s.triggered(event, received) }) {
		return ErrNotRunning
	}
	return nil
}

// Inhibitor returns the state of the inhibitor lock and how long the host waits.
func (m *Manager) Inhibitor() Inhibitor { return m.ledger.inhibitor(m.host.Load()) }

// Plan returns what a shutdown would do if it began now, with the current pods and the limit that
// the host granted last. Without a configured schedule it returns what Trigger and TerminateAll
// would do. It calls Options.Pods and Options.Plan.PriorityOf in the caller's goroutine. If the
// list of pods is not complete, a warning of the plan says so.
func (m *Manager) Plan() plan.Plan {
	limit := time.Duration(math.MaxInt64)
	if h := m.host.Load(); h != nil {
		if delay, known := h.Granted(); known {
			limit = delay
		}
	}
	return m.ledger.plan(limit)
}

// Admit decides whether a pod may start. It refuses every pod while a shutdown is known or not yet
// settled: from its event until its cancellation, and for good once TerminateAll was called.
// Outside a shutdown it refuses a pod, by its UID, that an earlier shutdown has signalled, until it
// has ended, and one whose final status the API server has not acknowledged. A pod whose kill was
// given up may never be known to have ended. It is refused until a later shutdown finds that
// [Options.Pods] lacks it. A nil pod stands for any pod and is refused only during a shutdown. Call
// Admit when the pod is in the list of [Options.Pods] and has not been started.
//
// A static pod is started again under its UID, and may be the API server itself. Outside a
// shutdown, Admit withdraws its final status and admits the pod once the withdrawal is stored, so
// the caller has to ask again until then. One whose kill was given up is admitted.
//
// Admit never blocks and may be called from any goroutine. The number of refusals is stored with
// the shutdown, so that the counter goes on after a restart.
func (m *Manager) Admit(pod *v1.Pod) Admission {
	if m.ShutdownStatus() == nil && !m.ledger.unended.has(pod) && !m.ledger.owes(pod) {
		return Admission{Admit: true}
	}
	m.admission.refuse(1)
	m.ledger.opts.Metrics.PodsRefused(1)
	return Admission{Reason: notAdmittedReason, Message: notAdmittedMessage}
}

// ShutdownStatus returns [ErrNodeShuttingDown] while a shutdown is known: from its event until
// its cancellation, and for good once TerminateAll was called. Otherwise it returns nil. A
// shutdown that a former agent left unfinished is known from [NewManager] on.
func (m *Manager) ShutdownStatus() error {
	state := m.admission.state()
	if m.inbox.in(phaseIdle) && m.past != nil && !m.past.live() {
		state = none // its time is over, and no loop runs that says so
	}
	if state.refuses() || m.admission.ends() {
		return ErrNodeShuttingDown
	}
	return nil
}

// LastReport returns the report of the last shutdown that has ended or was interrupted by the end
// of Run; false if there is none. Before the first shutdown of this agent it is the report that a
// former agent stored in [Options.StateDir]. A pod that outlives the shutdown gets its end in
// later calls.
func (m *Manager) LastReport() (Report, bool) {
	report := m.ledger.last.get()
	if report == nil {
		return Report{}, false
	}
	return report(), true
}

// TerminateAll drains the node without a shutdown, for an agent that stops its pods when it is
// stopped itself. It uses the same buckets, the same times and the pod policy of [KindUnknown].
// It returns the report, after Options.OnReport has returned; the error has that of
// [Report.Err], with the pods that are not known to have ended. From its call on no pod is admitted
// any more.
//
// It may be called before, during and after Run. It neither holds nor releases the host, stores
// no shutdown, and does not publish the node state. If a shutdown is draining, TerminateAll waits
// for it instead, and for a killer that hangs until ten seconds after its end; while it is not settled
// whether that of a former agent goes on, it waits for five seconds at most. If a shutdown begins
// meanwhile, it takes over the pods, and TerminateAll waits for it. If that shutdown is cancelled or
// ends with Run, TerminateAll drains the rest, and its report is of this part.
//
// The end of ctx stops the kills and the waits. Calls that ignore their context are waited for
// ten seconds more; then the error names them. If ctx ends while TerminateAll waits for a
// shutdown, the report is empty. A second call waits for the first and returns the same.
func (m *Manager) TerminateAll(ctx context.Context) (Report, error) {
	m.admission.end()
	return m.local.run(ctx)
}

// readiness is what Ready returns. It is closed when the host and the state folder were tried.
type readiness struct {
	closed chan struct{}
	close  func()
	host   sync.Once
	folder sync.Once
	left   atomic.Int32
}

func (r *readiness) init() {
	r.closed = make(chan struct{})
	r.close = sync.OnceFunc(func() { close(r.closed) })
	r.left.Store(2)
}

func (r *readiness) hostTried()   { r.host.Do(r.one) }
func (r *readiness) folderTried() { r.folder.Do(r.one) }

func (r *readiness) one() {
	if r.left.Add(-1) == 0 {
		r.close()
	}
}
