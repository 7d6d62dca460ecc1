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
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// shell connects the core (package node), which decides, to the world. Whatever happens is an input to the core,
// one at a time under a mutex, and shell performs the effects that the core returns. Effects that may take
// time run in their own goroutines, and their results are further inputs. Nothing blocks while the mutex is
// held.
type shell struct {
	*settings

	log       *statelog.Log
	host      atomic.Pointer[host.Host] // nil before Run, or if no host is watched
	ready     readySignal
	opening   opening
	opened    chan struct{}                     // closed when Run has read the log or has failed to
	admission atomic.Pointer[admissionSnapshot] // replaced after each step
	lines     call.LogLines
	calls     *call.Group

	mu         sync.Mutex // guards the fields below
	node       *node.Node
	ctx        context.Context            // of the calls to embedder code; it ends when both Run and TerminateAll have ended
	cancel     context.CancelFunc         // of ctx
	users      int                        // the calls of Run and TerminateAll that are under way
	phase      phase                      // of Run
	aborts     map[int]context.CancelFunc // by the number of the call, of calls under way
	events     nodeEvents
	policyErrs map[source.Kind]error // what is wrong with the policy for a kind of shutdown
	hold       *host.Hold            // controls the lock in the shutdown under way; nil: none

	stopTimer func()    // nil: there is no timer
	wake      time.Time // when the timer fires; zero: there is none

	isStoring  bool                   // there is a state folder, its log has been read, and Run has not closed it
	written    *call.Future[struct{}] // the newest write to the log; nil: all writes have succeeded
	shownTimes [2]time.Time           // the start and end in the metrics

	stored   *Report            // the report in the log; nil: none
	last     *node.Shutdown     // its report is the result of LastReport; nil: that is stored
	ended    *node.Shutdown     // the newest shutdown that this agent has ended; nil: none
	reported map[int]*reporting // by the number of the shutdown

	terminated    chan struct{} // closed when TerminateAll has drained the node
	setTerminated func()        // closes terminated; may be called again
	waiting       int           // the calls of TerminateAll that wait for terminated

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

// newShell returns the shell of a manager that does not run yet. It reads the log into a temporary node, so that even
// before Run LastReport has the shutdown of the log, and pods are refused: all of them while that shutdown may be under
// way, until its drain would stop waiting, and after that its pods that may not have ended. Run locks the folder and then
// reads the log again, into the shell's own node.
func newShell(s *settings, disk statelog.Options) *shell {
	disk.Dir, disk.Times = s.opts.StateDir, s.byPriority
	sh := &shell{
		settings: s, node: node.New(s.nodeConfig()), calls: &call.Group{}, aborts: map[int]context.CancelFunc{},
		reported: map[int]*reporting{}, terminated: make(chan struct{}),
		log: statelog.New(disk), ready: newReadySignal(), opened: make(chan struct{}),
	}
	sh.setTerminated = sync.OnceFunc(func() { close(sh.terminated) })
	sh.lines.Calls = sh.calls
	sh.opening.over = make(chan struct{})
	sh.ctx = context.Background() //nolint:forbidigo // NewManager has no context
	ctx, cancel := context.WithTimeout(sh.ctx, readTime)
	defer cancel()
	contents, _ := sh.log.Read(ctx)       // Run reports the error, unless the disk works by then
	temporary := node.New(s.nodeConfig()) // for admission until Run reads the log again
	temporary.Step(sh.now(), node.Read{Entries: contents.Entries, SameBoot: contents.SameBoot})
	snapshot := snapshotOf(temporary)
	if previous := temporary.Shutdown(); snapshot.refuses && previous != nil {
		snapshot.until, snapshot.pods = sh.log.TimeOf(previous.WaitEnd()), refusedPods(temporary)
	}
	sh.admission.Store(snapshot)
	sh.showStoredShutdown(contents)
	return sh
}

// now returns the time since the boot.
func (s *shell) now() time.Time { return s.log.Since(s.opts.Clock.Now()) }

// context returns the context of the calls to embedder code.
func (s *shell) context() context.Context {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.ctx
}

// isRunning reports whether Run is under way.
func (s *shell) isRunning() bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.phase == phaseRunning
}

// step passes an input to the core and starts the resulting effects.
func (s *shell) step(in node.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepLocked(in)
}

// stepLocked does what step does, and reports what is wrong with the pod policy of a drain that begins. The mutex is held.
func (s *shell) stepLocked(in node.Input) {
	for _, e := range s.stepOnce(in) {
		if e.Do != node.Begins {
			continue
		}
		if err := s.policyErrs[e.Shutdown.Kind]; err != nil {
			s.stepOnce(node.Failed{Text: err.Error()})
		}
	}
	if s.users > 0 {
		s.afterStep()
	}
}

// stepOnce passes one input to the core and starts the resulting effects, which it returns. Before Run and TerminateAll,
// and after them, it drops the effects: only the core's state changes. The mutex is held.
func (s *shell) stepOnce(in node.Input) []node.Effect {
	now := s.now()
	effects := s.node.Step(now, in)
	if s.observe != nil {
		s.observe(now, in, effects)
	}
	if s.users == 0 {
		return nil
	}
	var kills []node.Effect
	for _, e := range effects {
		if e.Do == node.Kill {
			kills = append(kills, e)
		} else {
			s.perform(e)
		}
	}
	s.killAll(kills)
	return effects
}

// afterStep updates all that depends on the state of the core: admission, timer, the end of TerminateAll, the
// last report and the metrics. The mutex is held.
func (s *shell) afterStep() {
	s.updateAdmission()
	s.setTimer(s.node.Wake())
	if _, isOver := s.node.Terminated(); isOver {
		s.setTerminated()
	}
	if newest := s.node.Shutdown(); newest != nil && newest != s.ended && !newest.Ended.IsZero() {
		s.ended, s.last = newest, newest // before OnReport, which waits for pods that outlive the shutdown
	}
	s.showTimes()
}

// setTimer schedules the next Tick for wake, in place of the one that was scheduled before. A Tick that is scheduled for
// that time already stays. A zero wake schedules none. The mutex is held.
func (s *shell) setTimer(wake time.Time) {
	if wake.Equal(s.wake) && s.now().Before(wake) {
		return
	}
	if s.wake = wake; s.stopTimer != nil {
		s.stopTimer()
		s.stopTimer = nil
	}
	if wake.IsZero() {
		return
	}
	ctx, cancel := context.WithCancel(s.ctx)
	s.stopTimer = cancel
	passed := times.Passed()
	if left := wake.Sub(s.now()); left > 0 {
		passed = s.opts.Clock.After(left)
	}
	s.calls.Go(func() string { return "the timer of the drain" }, func() {
		select {
		case <-passed:
			s.step(node.Tick{})
		case <-ctx.Done():
		}
	})
}
