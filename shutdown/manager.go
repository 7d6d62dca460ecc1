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
	// ErrNotRunning is the error of [Manager.Trigger] before Run and after it.
	ErrNotRunning = errors.New("shutdown manager is not running")
	// ErrAlreadyRun is the error of a second [Manager.Run].
	ErrAlreadyRun = errors.New("shutdown manager has been run already")
)

// Manager drains the pods of one node when its host shuts down. Make one with [NewManager]. All
// methods may be called concurrently. Only Run and TerminateAll wait for pods or for the host.
type Manager struct {
	opts       Options
	schedule   plan.Schedule // nil: the feature is off
	byPriority bool          // GracefulNodeShutdownBasedOnPodPriority

	inbox             inbox
	ready             chan struct{} // what Ready returns
	closeReady        func()        // closes ready, once
	admission         admissionState
	newestShown       atomic.Uint64 // the highest number of a shutdown whose times the metrics show
	local             localDrain
	lock              hostLock
	host              hostTime
	last              lastReport
	state             stateFolder
	refusedFromRecord []finalStatus // pods that refuseFromRecord refuses until Run has read the state files
}

// NewManager checks the options and returns a manager. Its error joins all problems of the
// options. Until Run the manager only decides on admission. If the state folder has a shutdown of
// this boot that may still go on, it refuses every pod; otherwise it refuses the pods whose final
// status is still in the folder.
func NewManager(opts Options) (*Manager, error) { return newManager(opts, systemBoot) }

// newManager is NewManager with another source of the boot ID and the time since the boot.
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
		lock:       hostLock{metrics: opts.Metrics, epoch: 1},
	}
	if features.Enabled(opts.Gates, GracefulNodeShutdown) {
		m.schedule = opts.Config.Schedule(byPriority)
	}
	m.host = hostTime{schedule: m.schedule, options: m.opts.Plan}
	m.closeReady = sync.OnceFunc(func() { close(m.ready) })
	if m.lock.info.Off = m.whyOff(); !m.watches() {
		m.closeReady()
	}
	m.state = stateFolder{
		dir:             m.opts.StateDir,
		keepsTimes:      byPriority && features.Enabled(opts.Gates, GracefulNodeShutdown),
		byPriority:      byPriority,
		boot:            boot,
		refused:         m.admission.refused.Load,
		longestShutdown: func(s plan.Schedule) time.Duration { return plan.NewBudget(s, m.opts.Plan).Total() },
	}
	m.refuseFromRecord()
	return m, nil
}

// whyOff returns why no host is watched; "" if one is.
func (m *Manager) whyOff() string {
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

// watches reports whether a host is watched.
func (m *Manager) watches() bool { return m.lock.info.Off == "" }

// showTimes sets the metrics of the start and the end of a shutdown. A lower number than the
// newest one shown is ignored, as an overtaken drain may end last. Without the priority gate
// nothing is shown, as in the kubelet.
func (m *Manager) showTimes(number uint64, started, ended time.Time) {
	newest := m.newestShown.Load()
	for number > newest && !m.newestShown.CompareAndSwap(newest, number) {
		newest = m.newestShown.Load()
	}
	if number >= newest && m.byPriority {
		m.opts.Metrics.Times(started, ended)
	}
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
func (m *Manager) Ready() <-chan struct{} { return m.ready }

// Run watches the host, holds the inhibitor lock, and drains the pods when the host shuts down.
// It returns when ctx ends, with nil or with the errors of releasing the lock, closing the
// session and storing the state. If a drain is under way, the end of ctx stops its kills and its
// waits. When Run returns, the lock is released and every goroutine has ended, except calls of
// the embedder's code that ignore their context: Run waits for them until ten seconds after the
// end of ctx and of the host's time, and then its error names them. A manager runs once; a second
// call returns [ErrAlreadyRun].
func (m *Manager) Run(ctx context.Context) error {
	if !m.inbox.phase.CompareAndSwap(phaseIdle, phaseRunning) {
		return ErrAlreadyRun
	}
	return m.runLoop(ctx)
}

// Trigger begins a shutdown without a signal of the host, or cancels one if event.Cancelled is
// set. The source need not know of it. When Trigger returns, admission is refused, or open again
// after a cancellation. Outside Run the error is [ErrNotRunning].
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

// Inhibitor returns the state of the inhibitor lock and how long the host waits.
func (m *Manager) Inhibitor() Inhibitor { return m.lock.status() }

// Plan returns what a shutdown would do if it began now, with the current pods and the limit that
// the host granted last. Without a configured schedule it returns what Trigger and TerminateAll
// would do. It calls Options.Pods and Options.Plan.PriorityOf in the caller's goroutine.
func (m *Manager) Plan() plan.Plan {
	opts := m.opts.Plan
	if delay, known := m.lock.grantedDelay(); known && delay < math.MaxInt64 && (opts.Limit == 0 || delay < opts.Limit) {
		opts.Limit = cmp.Or(max(delay, 0), -1) // 0 would mean no limit
	}
	pods := m.opts.Pods()
	if len(m.schedule) == 0 {
		return plan.New(scheduleFromPods(pods), pods, opts)
	}
	return plan.New(m.schedule, pods, opts)
}
