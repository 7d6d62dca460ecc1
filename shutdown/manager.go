package shutdown

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"math"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubegrace/kubegrace/internal/features"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/drain"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/outbox"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
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
	off        string        // why no host is watched; "": one is

	inbox     inbox
	ready     readiness
	host      atomic.Pointer[host.Host] // of Run; nil: none yet
	numbers   atomic.Uint64             // of shutdowns and of drains
	shown     atomic.Uint64             // the highest number of a shutdown whose times the metrics show
	admission admissionState
	unended   unended
	local     localDrain
	last      lastReport
	outbox    *outbox.Outbox
	store     *store.Store
	recorder  recorder
	past      *nodeShutdown // of a former agent of this boot, until Run has read the record
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
	m := &Manager{
		opts:       opts.withDefaults(),
		byPriority: features.Enabled(opts.Gates, GracefulNodeShutdownBasedOnPodPriority),
		inbox:      inbox{messages: make(chan message), stopped: make(chan struct{})},
	}
	gate := features.Enabled(opts.Gates, GracefulNodeShutdown)
	if gate {
		m.schedule = opts.Config.Schedule(m.byPriority)
	}
	m.ready.init()
	if m.off = whyOff(opts.Source != nil, gate, m.schedule); m.off != "" {
		m.ready.close()
	}
	dir := m.opts.StateDir
	if !gate {
		dir = "" // the feature is off: the record of another version's shutdown is left alone
	}
	m.store = store.New(store.Options{Dir: dir, Times: m.byPriority && gate, Boot: boot, Write: write})
	m.outbox = outbox.New(m.outboxOptions())
	_, flushes := m.opts.Reporter.(StatusFlusher)
	m.recorder = recorder{store: m.store, outbox: m.outbox, flushes: flushes, refused: m.admission.refused.Load}
	if m.past = m.loadRecord(m.store.Read(context.Background(), &call.Group{}, time.Now().Add(readTime))); m.past != nil && m.past.live() && !m.past.dismissed {
		m.admission.become(unsettled)
	}
	return m, nil
}

// whyOff returns why no host is watched; "" if one is.
func whyOff(source, gate bool, schedule plan.Schedule) string {
	switch {
	case !source:
		return "there is no source"
	case !gate:
		return "the feature gate GracefulNodeShutdown is off"
	case len(schedule) == 0:
		return "the configuration gives no time to any pod"
	default:
		return ""
	}
}

// watches reports whether a host is watched.
func (m *Manager) watches() bool { return m.off == "" }

// nextNumber returns a number that is higher than all before.
func (m *Manager) nextNumber() uint64 { return m.numbers.Add(1) }

// showTimes sets the metrics of the start and the end of a shutdown. A lower number than the
// newest one shown is ignored, as a cancelled shutdown may end last. Without the priority gate
// nothing is shown, as in the kubelet.
func (m *Manager) showTimes(number uint64, started, ended time.Time) {
	newest := m.shown.Load()
	for number > newest && !m.shown.CompareAndSwap(newest, number) {
		newest = m.shown.Load()
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
func (m *Manager) Ready() <-chan struct{} { return m.ready.closed }

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

// Trigger announces a shutdown without a signal of the host. With event.Cancelled it takes back
// the announcement of event.Origin, or with the Origin "" all of them, that of the host too: then
// the pods stay, and the lock is kept until the host says that it stays or its time is over. When
// Trigger returns, admission is refused, or open again after a cancellation. Outside Run the error
// is [ErrNotRunning].
func (m *Manager) Trigger(event Event) error {
	received := time.Now()
	if !m.inbox.post(func(l *loop) { l.triggered(event, received) }) {
		return ErrNotRunning
	}
	return nil
}

// Plan returns what a shutdown would do if it began now, with the current pods and the limit that
// the host granted last. Without a configured schedule it returns what Trigger and TerminateAll
// would do. It calls Options.Pods and Options.Plan.PriorityOf in the caller's goroutine. If the
// list of pods is not complete, a warning of the plan says so.
func (m *Manager) Plan() plan.Plan {
	opts := m.opts.Plan
	if delay, known := m.granted(); known && delay < math.MaxInt64 && (opts.Limit == 0 || delay < opts.Limit) {
		opts.Limit = cmp.Or(max(delay, 0), -1) // 0 would mean no limit
	}
	pods, err := m.opts.Pods(context.Background())
	schedule := m.schedule
	if len(schedule) == 0 {
		schedule = drain.ScheduleOf(pods)
	}
	planned := plan.New(schedule, pods, opts)
	if err != nil {
		planned.Warnings = append(planned.Warnings, fmt.Sprintf("the list of pods is not complete: %v", err))
	}
	return planned
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
