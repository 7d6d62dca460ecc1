package shutdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

var (
	// ErrNotRunning is what [Manager.Trigger] gives before Run and after it.
	ErrNotRunning = errors.New("shutdown manager is not running")
	// ErrAlreadyRun is what a second [Manager.Run] gives.
	ErrAlreadyRun = errors.New("shutdown manager has been run already")
)

// Manager drains the pods of one node when its host shuts down. Make one with
// [NewManager]. All methods may be called concurrently, and none but Run and
// TerminateAll waits for pods or for the host.
type Manager struct {
	opts       Options
	schedule   plan.Schedule // nil: the feature is off
	byPriority bool          // GracefulNodeShutdownBasedOnPodPriority

	inbox     inbox
	ready     chan struct{} // closed once, see Ready
	settle    func()        // closes ready
	admission admissionState
	shown     atomic.Uint64 // the number of the shutdown whose times are shown
	local     localDrain
	lock      inhibitor
	host      hostTime
	last      lastReport
	state     stateFolder
	first     []finalStatus // whose pods are refused until Run has read the files
}

// NewManager checks the options and gives a manager. Until Run it only decides on the
// admission of pods: it refuses all if the state folder has a shutdown of this boot on
// record that may still go on, and else those whose final status is on record. All that is
// wrong with the options is in the error, joined.
func NewManager(opts Options) (*Manager, error) { return newManager(opts, systemBoot) }

// newManager is NewManager on another boot.
func newManager(opts Options, boot func() (id string, since time.Duration, err error)) (*Manager, error) {
	if err := opts.validate(); err != nil {
		return nil, fmt.Errorf("invalid shutdown options: %w", err)
	}
	byPriority := features.Enabled(opts.Gates, GracefulNodeShutdownBasedOnPodPriority)
	m := &Manager{
		opts:       opts.withDefaults(),
		byPriority: byPriority,
		inbox:      inbox{messages: make(chan message), stopped: make(chan struct{})},
		ready:      make(chan struct{}),
		lock:       inhibitor{metrics: opts.Metrics, epoch: 1},
	}
	if features.Enabled(opts.Gates, GracefulNodeShutdown) {
		m.schedule = opts.Config.Schedule(byPriority)
	}
	m.host = hostTime{schedule: m.schedule, options: m.opts.Plan}
	m.settle = sync.OnceFunc(func() { close(m.ready) })
	if m.lock.shown.Off = m.off(); !m.watches() {
		m.settle()
	}
	m.state = stateFolder{
		dir:        m.opts.StateDir,
		keepsTimes: byPriority && features.Enabled(opts.Gates, GracefulNodeShutdown),
		byPriority: byPriority,
		boot:       boot,
		refused:    m.admission.refused.Load,
		longest:    func(s plan.Schedule) time.Duration { return plan.NewBudget(s, m.opts.Plan).Total() },
	}
	m.refuseFirst()
	return m, nil
}

// off is why no host is watched; "": one is.
func (m *Manager) off() string {
	switch {
	case m.opts.Source == nil:
		return "there is no source"
	case !features.Enabled(m.opts.Gates, GracefulNodeShutdown):
		return "the feature gate GracefulNodeShutdown is off"
	case len(m.schedule) == 0:
		return "the configuration gives no time to any pod"
	default:
		return ""
	}
}

// watches tells whether there is a host to watch, and a reason to.
func (m *Manager) watches() bool { return m.lock.shown.Off == "" }

// showTimes shows when the last shutdown began and ended, by its number: an earlier one that
// ends later shows nothing. The kubelet does so with the priority gate only.
func (m *Manager) showTimes(number uint64, began, ended time.Time) {
	newest := m.shown.Load()
	for number > newest && !m.shown.CompareAndSwap(newest, number) {
		newest = m.shown.Load()
	}
	if number >= newest && m.byPriority {
		m.opts.Metrics.Times(began, ended)
	}
}

// Ready is closed once the manager is watching its host and the attempt to hold
// it has been settled: the lock is held, or it is held for less than was asked
// for, or a shutdown is already under way, or there is nothing to watch. A host
// that refuses, cannot be reached or does not answer within two seconds (five where it is
// asked for the delay) settles it too, as the attempts go on for ever and an agent must not
// be stuck behind them: [Manager.Inhibitor] says which it was. The end of Run settles it
// as well. Another agent that has the state folder is waited for too, for ten seconds, in
// which the host is held already.
//
// With it, a start that does not block is made of Run: see the package's documentation.
func (m *Manager) Ready() <-chan struct{} { return m.ready }

// Run watches the host, holds it, and drains the pods when it shuts down, until
// ctx ends; then it gives nil, or what could not be undone or stored. During a drain the
// end of ctx stops the kills and the waiting. The lock is released and every
// goroutine has ended when Run returns. Calls of the options that ignore their context are
// waited for until ten seconds after the end of ctx and of the host's time; then the error
// names those that still have not returned. A manager is run once.
func (m *Manager) Run(ctx context.Context) error {
	if !m.inbox.phase.CompareAndSwap(phaseIdle, phaseRunning) {
		return ErrAlreadyRun
	}
	return m.runLoop(ctx)
}

// Trigger begins a shutdown without a signal of the host, or cancels one; the
// source need not know of it. When it returns, admission is refused, and open
// again after a cancellation. It gives [ErrNotRunning] outside Run.
func (m *Manager) Trigger(event Event) error {
	if m.inbox.phase.Load() != phaseRunning {
		return ErrNotRunning
	}
	heard := make(chan struct{})
	if !m.inbox.post(func(l *loop) { defer close(heard); l.trigger(event) }) {
		return ErrNotRunning
	}
	<-heard
	return nil
}

// Inhibitor says whether the host is being held, and for how long it waits.
func (m *Manager) Inhibitor() Inhibitor { return m.lock.status() }

// Plan is what a shutdown would do if it began now: the pods of now, and the
// host's limit as it was found last. Where no schedule is configured it is what Trigger and
// TerminateAll would do. It calls Options.Pods, and Options.Plan.PriorityOf, itself.
func (m *Manager) Plan() plan.Plan {
	opts := m.opts.Plan
	if delay, asked := m.lock.limit(); asked && delay < math.MaxInt64 && (opts.Limit == 0 || delay < opts.Limit) {
		opts.Limit = cmp.Or(max(delay, 0), -1) // 0 would be no limit
	}
	pods := m.opts.Pods()
	if len(m.schedule) == 0 {
		return plan.New(ownGrace(pods), pods, opts)
	}
	return plan.New(m.schedule, pods, opts)
}
