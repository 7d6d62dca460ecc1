package shutdown

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
)

// shell connects the core (package node), which decides what to do, to the host, the disk and the embedder's code.
// Whatever happens is an input to the core, one at a time under a mutex, and shell performs the effects that the core
// returns. Effects that may take time run in their own goroutines, and their results are further inputs. Nothing blocks
// while the mutex is held.
type shell struct {
	*settings

	log         *statelog.Log
	host        atomic.Pointer[host.Host]         // nil before Run, or if no host is watched
	ready       chan struct{}                     // the channel of Manager.Ready
	closeReady  func()                            // closes ready; may be called again
	openingOver chan struct{}                     // closed when announcements need not wait for the log any more
	logOpened   chan struct{}                     // closed when Run has read the log or has failed to
	admission   atomic.Pointer[admissionSnapshot] // replaced after each step
	madeAt      time.Time
	runLogged   sync.Once // logMissingRun has done its work
	logLines    call.Sequence
	events      call.Sequence // the calls of Options.Events
	calls       *call.Group

	mu     sync.Mutex // guards the fields below
	node   *node.Node
	ctx    context.Context            // of the calls to embedder code; it ends when both Run and TerminateAll have ended
	cancel context.CancelFunc         // of ctx
	users  int                        // the calls of Run and TerminateAll that are under way
	phase  phase                      // of Run
	aborts map[int]context.CancelFunc // cancels a call that is under way; by the number of the call
	// stepped is of size 1, and has a value if the core has taken a step that runTimer has not noticed. Each runTimer has
	// its own.
	stepped             chan struct{}
	isLockAttemptOver   bool         // the first attempt to get the inhibitor lock is over, or no host is watched
	isFolderAttemptOver bool         // the first attempt to lock the state folder is over
	isOpeningOver       bool         // the log has been read, or openTime has passed
	earlyInputs         []node.Input // they wait for the end of the opening
	hold                *host.Hold   // controls the lock in the shutdown under way; nil: no shutdown is under way

	isStoring   bool                   // there is a state folder, its log has been read, and Run has not closed it
	newestWrite *call.Future[struct{}] // the newest write to the log; nil: there was none
	logWait     *call.Future[struct{}] // the kills of the newest write wait for it (startLogWait); nil: no kill has waited
	shownTimes  [2]time.Time           // the start and end in the metrics

	storedReport *Report            // the report in the log; nil: none
	lastShutdown *node.Shutdown     // LastReport returns its report; nil: LastReport returns storedReport
	reportWaits  map[int]reportWait // by the number of the shutdown

	terminated        chan struct{} // closed when TerminateAll has drained the node or was stopped
	closeTerminated   func()        // closes terminated; may be called again
	terminateAllCalls int           // the calls of TerminateAll that wait for terminated

	// observe, if not nil, is called after each step, before its effects are performed. Tests record the
	// steps with it.
	observe func(at time.Time, in node.Input, effects []node.Effect)
}

// phase is the phase of Run.
type phase int

const (
	phaseIdle phase = iota
	phaseRunning
	phaseOver
)

// newShell returns the shell of a manager that does not run yet. log is zero except in tests, which replace the boot clock and the
// disk operations of the state log with it.
func newShell(s *settings, log statelog.Options) *shell {
	sh := &shell{
		settings: s, node: node.New(s.nodeConfig()), calls: &call.Group{}, aborts: map[int]context.CancelFunc{},
		reportWaits: map[int]reportWait{}, terminated: make(chan struct{}),
		ready: make(chan struct{}), openingOver: make(chan struct{}), logOpened: make(chan struct{}), madeAt: time.Now(),
	}
	sh.closeTerminated = sync.OnceFunc(func() { close(sh.terminated) })
	log.Dir, log.Times, log.Wrote = s.opts.StateDir, s.byPriority, sh.logWritten
	sh.log = statelog.New(log)
	sh.logLines = call.Sequence{Calls: sh.calls, Name: "the logger"}
	sh.events = call.Sequence{Calls: sh.calls, Name: "Options.Events"}
	sh.closeReady = sync.OnceFunc(func() { close(sh.ready) })
	sh.ctx = context.Background() //nolint:forbidigo // NewManager has no context
	sh.readBeforeRun()
	return sh
}

// readBeforeRun reads the log, so that LastReport returns the report of the previous agent's shutdown even before Run. A
// temporary node decides which pods are refused before Run: all pods while that shutdown may be under way, until its drain
// would stop waiting, and after that the shutdown's pods that may not have ended. Run locks the folder and then reads the
// log again, into the shell's own node.
func (s *shell) readBeforeRun() {
	ctx, cancel := context.WithTimeout(s.ctx, readTime)
	defer cancel()
	contents, _ := s.log.Read(ctx) // Run reports the error, unless the disk works by then
	temporary := node.New(s.nodeConfig())
	temporary.Step(s.now(), node.LogRead{Entries: contents.Entries, SameBoot: contents.SameBoot})
	snapshot := &admissionSnapshot{refuses: temporary.Refuses(), pods: refusedPods(temporary)}
	if previous := temporary.Shutdown(); previous != nil {
		snapshot.until = s.log.TimeOf(previous.WaitEnd())
	}
	s.admission.Store(snapshot)
	s.restoreLastReport(contents)
}

// phaseOfRun returns the phase of Run.
func (s *shell) phaseOfRun() phase {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase
}

// now returns the current time as the core and the state log count it: time.Unix(0, 0) is the boot, and steps of the
// wall clock do not change it.
func (s *shell) now() time.Time { return s.log.SinceBoot(s.opts.Clock.Now()) }

// context returns the context of the calls to embedder code.
func (s *shell) context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx
}

// step passes an input to the core and starts the resulting effects.
func (s *shell) step(in node.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepLocked(in)
}

// stepLocked passes an input to the core and starts the resulting effects. If neither Run nor TerminateAll is under way, it
// drops the effects: only the core's state changes. The mutex is held.
func (s *shell) stepLocked(in node.Input) {
	now := s.now()
	effects := s.node.Step(now, in)
	if s.observe != nil {
		s.observe(now, in, effects)
	}
	if s.users == 0 {
		return
	}
	for _, e := range effects {
		s.perform(e)
	}
	s.afterStep()
}

// afterStep updates all that depends on the state of the core: admission, the timer, the end of TerminateAll, the
// last report and the metrics. The mutex is held.
func (s *shell) afterStep() {
	s.updateAdmission()
	select {
	case s.stepped <- struct{}{}:
	default: // runTimer will notice this step together with an earlier one
	}
	if _, isOver := s.node.TerminateAllDrain(); isOver {
		s.closeTerminated()
	}
	if newest := s.node.Shutdown(); newest != nil && !newest.Ended.IsZero() {
		s.setLastShutdown(newest) // now, because OnReport waits for pods that outlive the shutdown
	}
	s.showTimes()
}

// runTimer passes a Tick to the core whenever the time of [node.Node.Wake] has come, until ctx ends.
func (s *shell) runTimer(ctx context.Context, stepped <-chan struct{}) {
	for {
		select {
		case <-s.untilWake():
			s.step(node.Tick{})
		case <-stepped: // the time of Wake may have changed
		case <-ctx.Done():
			return
		}
	}
}

// untilWake returns a channel that can be received from once the time of [node.Node.Wake] has come; nil: there is no such
// time.
func (s *shell) untilWake() <-chan time.Time {
	s.mu.Lock()
	wake := s.node.Wake()
	s.mu.Unlock()
	remaining := wake.Sub(s.now())
	switch {
	case wake.IsZero():
		return nil
	case remaining <= 0:
		return times.Passed() // it can be received from at once
	default:
		return s.opts.Clock.After(remaining)
	}
}
