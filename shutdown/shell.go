package shutdown

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// folderTime is how long Run waits to lock the state folder: the previous agent may still be ending.
	folderTime = 10 * time.Second
	// readTime is the timeout for reading the state files.
	readTime = 5 * time.Second
	// openTime is how long reading the log may take before pods are refused, because the log may have a
	// shutdown.
	openTime = 100 * time.Millisecond
	// onReportTime is how long TerminateAll waits for OnReport.
	onReportTime = 10 * time.Second
	// hangTime is how long Run and TerminateAll wait for calls that ignore their contexts.
	hangTime = 10 * time.Second
)

// shell connects the core (package node), which decides, to the world. Whatever happens is an input to the core,
// one at a time under a mutex, and shell performs the effects that the core returns. Effects that may take
// time run in their own goroutines, and their results are further inputs. Nothing blocks while the mutex is
// held.
type shell struct {
	*settings

	log       *statelog.Log
	ready     readySignal
	opening   opening
	opened    chan struct{}             // closed when Run has read the log or has failed to
	host      atomic.Pointer[host.Host] // nil before Run, or if no host is watched
	admission admission

	mu         sync.Mutex // guards the fields below
	node       *node.Node
	ctx        context.Context    // of the calls to embedder code; it ends when both Run and TerminateAll have ended
	cancel     context.CancelFunc // of ctx
	users      int                // the calls of Run and TerminateAll that are under way
	phase      phase              // of Run
	calls      *call.Group
	aborts     map[int]context.CancelFunc // by the number of the call, of calls under way
	hold       *host.Hold                 // controls the lock in the shutdown under way; nil: none
	stopTimer  func()                     // nil: there is no timer
	wake       time.Time                  // when the timer fires; zero: there is none
	events     nodeEvents
	written    *call.Future[struct{}] // the newest write to the log; nil: none yet
	isWatching bool                   // the goroutine of watchWrites runs
	isStoring  bool                   // there is a state folder, and its log has been read
	last       func() Report          // the result of LastReport; nil: none
	ended      *node.Shutdown         // the newest shutdown that this agent has ended; nil: none
	reported   map[int]*reporting     // by the number of the shutdown
	terminated chan struct{}          // closed when TerminateAll has drained the node
	waiting    int                    // the calls of TerminateAll that wait for terminated
	shownTimes [2]time.Time           // the start and end in the metrics
	policyErrs map[source.Kind]error  // what is wrong with the policy for a kind of shutdown
	toReport   []string               // failures found while effects are performed; the next inputs
	logWrites  []func()               // each writes a line to the log; writeLog calls the first and then the others
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
		log: statelog.New(disk), opened: make(chan struct{}),
	}
	sh.opening.over = make(chan struct{})
	sh.ctx = context.Background() //nolint:forbidigo // NewManager has no context
	sh.ready.init()
	ctx, cancel := context.WithTimeout(sh.ctx, readTime)
	defer cancel()
	contents, _ := sh.log.Read(ctx)       // Run reports the error, unless the disk works by then
	temporary := node.New(s.nodeConfig()) // for admission until Run reads the log again
	temporary.Step(sh.now(), node.Read{Entries: contents.Entries, SameBoot: contents.SameBoot})
	snapshot := snapshotOf(temporary)
	if previous := temporary.Shutdown(); snapshot.refuses && previous != nil {
		snapshot.until, snapshot.pods = sh.log.TimeOf(previous.WaitEnd()), refusedPods(temporary)
	}
	sh.admission.now.Store(snapshot)
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

// step passes an input to the core and starts the resulting effects. Then it does the same with the failures
// that these have reported.
func (s *shell) step(in node.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.stepLocked(in)
}

// stepLocked does what step does. The mutex is held.
func (s *shell) stepLocked(in node.Input) {
	s.stepOnce(in)
	for len(s.toReport) > 0 {
		text := s.toReport[0]
		s.toReport = s.toReport[1:]
		s.stepOnce(node.Failed{Text: text})
	}
	if s.users > 0 {
		s.afterStep()
	}
}

// stepOnce passes one input to the core and starts the resulting effects. Before Run and TerminateAll, and
// after them, it drops the effects: only the core's state changes. The mutex is held.
func (s *shell) stepOnce(in node.Input) {
	now := s.now()
	effects := s.node.Step(now, in)
	if s.observe != nil {
		s.observe(now, in, effects)
	}
	if s.users == 0 {
		return
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
}

// afterStep updates all that depends on the state of the core: admission, timer, the end of TerminateAll, the
// last report and the metrics. The mutex is held.
func (s *shell) afterStep() {
	s.updateAdmission()
	s.setTimer(s.node.Wake())
	if _, isOver := s.node.Terminated(); isOver {
		select {
		case <-s.terminated: // it is closed already
		default:
			close(s.terminated)
		}
	}
	if newest := s.node.Shutdown(); newest != nil && newest != s.ended && !newest.Ended.IsZero() {
		s.ended = newest
		s.last = func() Report { return s.reportOf(newest) } // before OnReport, which waits for pods that outlive the shutdown
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

// updateAdmission replaces the snapshot that Admit reads:
//
//   - If every pod is refused, only if the snapshot says something else: a drain has many steps.
//   - While the log is being read, not at all.
//   - Otherwise it refuses the pods that the core refuses. While a write to the log is under way, it also refuses static
//     pods whose final status was accepted. If the agent died before the log had that, the next one would send the
//     status while the pod runs again. A write that has failed does not keep them refused.
//
// The mutex is held.
func (s *shell) updateAdmission() {
	switch {
	case s.node.Refuses():
		if now := s.admission.now.Load(); !now.refuses || !now.until.IsZero() { // it does not refuse, or not for good
			s.admission.now.Store(&admissionSnapshot{refuses: true})
		}
		return
	case s.node.State() == node.StateOpening:
		return
	}
	next := snapshotOf(s.node)
	if s.isWriting() {
		for _, p := range s.node.PodsOf(s.node.Shutdown()) {
			if p.Static && p.Told {
				next.pods[p.Key] = true
			}
		}
	}
	s.admission.now.Store(next)
}

// isWriting reports whether a write to the log is under way. The mutex is held.
func (s *shell) isWriting() bool {
	if s.written == nil {
		return false
	}
	select {
	case <-s.written.Done():
		return false
	default:
		return true
	}
}

// enter is called by Run and TerminateAll when they begin. The first one sets up the context of the calls to
// embedder code, which has the values of ctx, but does not end with it. It also asks for the pod policies.
func (s *shell) enter(ctx context.Context) {
	s.mu.Lock()
	s.users++
	isFirst := s.users == 1
	if isFirst {
		s.ctx, s.cancel = context.WithCancel(context.WithoutCancel(ctx))
		s.events = nodeEvents{recorder: s.opts.Events, node: s.opts.Node}
	}
	ctx = s.ctx
	s.mu.Unlock()
	if isFirst && s.opts.Policy != nil {
		s.askPolicies(ctx)
	}
}

// policies are the pod policies by kind of shutdown, and the errors of Options.Policy.
type policies struct {
	known map[source.Kind]node.Policy
	errs  map[source.Kind]error
}

// askPolicies calls Options.Policy for all kinds of shutdown in advance, so that no drain waits for it. If
// that does not return in time, PolicySetTerminal is used for all.
func (s *shell) askPolicies(ctx context.Context) {
	kinds := append(source.Kinds(), source.KindUnknown)
	asked := call.Start(ctx, s.calls, "Options.Policy", func(context.Context) (policies, error) {
		p := policies{known: map[source.Kind]node.Policy{}, errs: map[source.Kind]error{}}
		for _, kind := range kinds {
			policy, err := s.policy(kind)
			p.known[kind] = node.Policy(policy)
			if err != nil {
				p.errs[kind] = err
			}
		}
		return p, nil
	})
	p, err := asked.Await(ctx, time.Now().Add(answerTime))
	if err != nil {
		p = policies{errs: map[source.Kind]error{}}
		for _, kind := range kinds {
			p.errs[kind] = fmt.Errorf("failed to get the pod policy, using %s: %w", PolicySetTerminal, err)
		}
	}
	s.mu.Lock()
	s.policyErrs = p.errs
	s.mu.Unlock()
	s.step(node.Policies(p.known))
}

// leave is called by Run and TerminateAll when they end. The last one cancels the calls to embedder code, and
// waits until a time for them to return. The error names those that have not.
func (s *shell) leave(until time.Time) error {
	s.mu.Lock()
	s.users--
	isLast := s.users == 0
	if isLast {
		s.cancel()
	}
	calls := s.calls
	s.mu.Unlock()
	if !isLast {
		return nil
	}
	return awaitCalls(calls, until)
}

// awaitCalls waits for the calls of a group until a time. The error names the calls that have not returned.
func awaitCalls(calls *call.Group, until time.Time) error {
	timedOut := make(chan struct{})
	timer := time.AfterFunc(time.Until(until), func() { close(timedOut) })
	defer timer.Stop()
	hanging := calls.Wait(timedOut)
	const most = 10
	switch n := len(hanging); {
	case n == 0:
		return nil
	case n > most:
		return fmt.Errorf("%d calls have not returned, including %s", n, strings.Join(hanging[:most], ", "))
	default:
		return fmt.Errorf("calls that have not returned: %s", strings.Join(hanging, ", "))
	}
}

// run implements [Manager.Run]. It watches the host and drains the pods in shutdowns, until ctx ends, or at once if the
// state folder cannot be locked and Options.RequireStateDir is set. Then it releases the lock, waits for the calls in
// progress, at most until their time is over, and closes the log.
func (s *shell) run(ctx context.Context) error {
	s.mu.Lock()
	if s.phase != phaseIdle {
		s.mu.Unlock()
		return errAlreadyRun
	}
	s.phase = phaseRunning
	s.mu.Unlock()
	defer s.ready.close() // Ready is closed even if ctx ends early
	s.enter(ctx)
	s.step(node.Opening{})
	slowRead := time.AfterFunc(openTime, s.refuseWhileOpening)
	defer slowRead.Stop()
	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	h, hostEnded := s.startHost(runCtx)
	folderErr := s.open(runCtx, h != nil) // an error ends Run only if RequireStateDir is set
	if folderErr != nil && s.opts.RequireStateDir && ctx.Err() == nil {
		folderErr = fmt.Errorf("Options.RequireStateDir is set: %w", folderErr)
		stop(folderErr)
	} else {
		folderErr = nil
	}
	<-runCtx.Done()
	stop(nil)
	until := s.endRun() // the time at which the calls in progress are given up
	var closeErr, hostErr error
	if h != nil {
		closeErr = h.Close(context.WithoutCancel(ctx)) // before leave, so that the host does not wait for calls that hang
		hostErr = <-hostEnded
	}
	hangingErr := s.leave(until)
	return errors.Join(folderErr, s.interruption(), closeErr, hostErr, hangingErr, s.log.Close(until))
}

// startHost watches the host until ctx ends. ended then gets the result, an error or nil. Both results are
// nil if no host is watched.
func (s *shell) startHost(ctx context.Context) (h *host.Host, ended <-chan error) {
	if !s.watches() {
		s.ready.hostTried()
		klog.FromContext(ctx).Info("No host is watched, only Trigger and TerminateAll drain", "reason", s.off)
		return nil, nil
	}
	h = host.New(host.Options{
		Source: s.opts.Source, Delay: s.requestedDelay(), Shortens: s.shortensBucket, Metrics: s.opts.Metrics,
		Calls: s.calls, Listener: s,
	})
	s.host.Store(h)
	s.logRequest(ctx)
	result := make(chan error, 1)
	go func() { result <- h.Run(ctx) }()
	return h, result
}

// refuseWhileOpening is called when the log has not been read within openTime. It refuses all pods until the log is
// read. Announcements stop waiting for the log.
func (s *shell) refuseWhileOpening() {
	defer s.opening.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node.State() == node.StateOpening {
		logger := klog.FromContext(s.ctx)
		s.writeLog(func() { logger.Info("Pods are refused until the state log has been read", "folder", s.opts.StateDir) })
		now := *s.admission.now.Load()
		now.refuses, now.until = true, time.Time{}
		s.admission.now.Store(&now)
	}
}

// open locks the state folder, reads the log and passes it to the core. Only from then on this agent writes the log: a new
// one that it wrote before would lack the final statuses that are pending in the old one. If the folder cannot be locked,
// or the log not be read in time, open returns that error, the core gets an empty log, and nothing is stored. All other
// problems are only reported to the core. hasHost says that a host is watched, which will say whether the shutdown of the
// log is still under way.
func (s *shell) open(ctx context.Context, hasHost bool) error {
	defer close(s.opened)
	defer s.opening.end()
	lockCtx, cancel := context.WithTimeout(ctx, folderTime)
	defer cancel()
	warning, err := s.log.Lock(lockCtx)
	var contents statelog.Contents
	if err == nil {
		readCtx, cancel := context.WithTimeout(ctx, readTime)
		contents, err = s.log.Read(readCtx)
		cancel()
	}
	for _, err := range append([]error{s.log.BootErr(), warning, err}, contents.Errs...) {
		if err != nil {
			s.step(node.Failed{Text: err.Error()})
		}
	}
	if err == nil {
		s.showStoredShutdown(contents)
	}
	s.useLog(contents, err == nil && s.opts.StateDir != "")
	if !hasHost && err == nil { // nobody can say what is pending: the log decides
		s.step(node.Pending{Wall: s.opts.Clock.Now()})
	}
	s.ready.folderTried()
	return err
}

// useLog passes the log to the core. isStoring says whether this agent writes the log from then on.
func (s *shell) useLog(contents statelog.Contents, isStoring bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isStoring = isStoring
	s.stepLocked(node.Read{Entries: contents.Entries, SameBoot: contents.SameBoot})
	if previous := s.node.Shutdown(); previous != nil && s.last != nil {
		s.last = func() Report { return s.reportOf(previous) } // not a copy: the shutdown may resume, or its pods end
	}
}

// endRun tells the core that the context of Run has ended. Calls that ignore their contexts may still go on.
// The result is until when Run waits for them: hangTime after now, or after the end of an interrupted drain.
func (s *shell) endRun() time.Time {
	s.step(node.RunEnds{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phaseOver
	until := time.Now()
	if current := s.node.Shutdown(); current != nil && s.node.State() == node.StateDraining {
		if end := s.log.TimeOf(current.WaitEnd()); end.After(until) {
			until = end
		}
	}
	return until.Add(hangTime)
}

// interruption returns the error of a Run that ended during a drain, or nil. It names the pods that are not
// known to have ended.
func (s *shell) interruption() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node.State() != node.StateDraining {
		return nil
	}
	errs := append([]error{ErrInterrupted}, s.reportOf(s.node.Shutdown()).podErrs()...)
	for _, p := range s.node.Due() {
		if p.Signalled.IsZero() {
			errs = append(errs, fmt.Errorf("pod %s/%s: not killed", p.Namespace, p.Name))
		}
	}
	return errors.Join(errs...)
}

// terminateAll implements TerminateAll. All calls wait for the same drain, the first one begins it:
//
//   - If ctx has ended before the first call, nothing is drained. The next call then counts as the first.
//   - If the drain ends, the call waits for OnReport, and returns the drain's report.
//   - If ctx ends first, the call returns the report as it is then, or an empty one if the drain has not begun. If no
//     other call waits, the drain stops.
func (s *shell) terminateAll(ctx context.Context) (Report, error) {
	s.enter(ctx)
	s.mu.Lock()
	begun, _ := s.node.Terminated() // nil: TerminateAll waits for no drain yet
	isFirst := begun == nil && s.waiting == 0
	if err := context.Cause(ctx); err != nil && isFirst {
		s.mu.Unlock()
		return Report{}, errors.Join(fmt.Errorf("TerminateAll has signalled no pod, because its context had ended: %w", err), s.leave(time.Now()))
	}
	s.waiting++
	s.mu.Unlock()
	s.step(node.TerminateAll{Wall: s.opts.Clock.Now()})
	select {
	case <-s.terminated:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.waiting--
	isLast := s.waiting == 0
	s.mu.Unlock()
	if isLast && ctx.Err() != nil {
		s.step(node.StopTerminateAll{})
	}
	s.mu.Lock()
	drained, isOver := s.node.Terminated()
	s.mu.Unlock()
	if drained == nil { // ctx has ended before a drain has begun
		return Report{}, errors.Join(context.Cause(ctx), s.leave(time.Now().Add(hangTime)))
	}
	if isOver { // its report is passed to OnReport first, as TerminateAll promises
		s.awaitReport(ctx, drained.Number)
	}
	s.mu.Lock()
	report := s.reportOf(drained)
	s.mu.Unlock()
	return report, errors.Join(report.Err(), context.Cause(ctx), s.leave(time.Now().Add(hangTime)))
}

// awaitReport waits until OnReport has been called for the shutdown with this number, and then at most onReportTime until
// it returns. The end of ctx ends both waits. It returns nothing, because TerminateAll returns the report in any case.
func (s *shell) awaitReport(ctx context.Context, number int) {
	s.mu.Lock()
	reporting := s.reportingOf(number)
	s.mu.Unlock()
	if returned, err := reporting.called.Wait(ctx); err == nil {
		_, _ = returned.Await(ctx, time.Now().Add(onReportTime))
	}
}

// reportingOf returns the state of the first call of OnReport for the shutdown with this number. Before that call it
// makes the state, so that awaitReport can wait for the call. The mutex is held.
func (s *shell) reportingOf(number int) *reporting {
	r := s.reported[number]
	if r == nil {
		r = &reporting{}
		r.called, r.setCalled = call.NewFuture[*call.Future[struct{}]]()
		s.reported[number] = r
	}
	return r
}

// reporting is the state of the first call of OnReport for one shutdown.
type reporting struct {
	called    *call.Future[*call.Future[struct{}]] // completed when OnReport is called, with a future of its return
	setCalled func(*call.Future[struct{}], error)  // completes called
	isCalled  bool
}

// reportOf returns the current report of a shutdown. The mutex is held.
func (s *shell) reportOf(of *node.Shutdown) Report {
	return reportOf(of, s.node.PodsOf(of))
}

// lastReport implements LastReport.
func (s *shell) lastReport() (Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return Report{}, false
	}
	return s.last(), true
}

// showStoredShutdown makes the shutdown in the log the result of LastReport, unless this agent has had one already, and
// shows the times in the kubelet's state file in the metrics.
func (s *shell) showStoredShutdown(c statelog.Contents) {
	stored := c.Entries
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored.Shutdown != nil && s.node.Shutdown() == nil {
		report := reportOf(stored.Shutdown, node.PodsOf(stored.Shutdown, stored.Pods))
		s.last = func() Report { return report }
	}
	if times := c.Times; times != (statelog.Times{}) {
		s.setTimes(times.StartTime, times.EndTime)
	}
}

// showTimes writes the times of the newest shutdown to the metrics and the kubelet's state file. Like the
// kubelet, it does neither if the gate GracefulNodeShutdownBasedOnPodPriority is off.
func (s *shell) showTimes() {
	if newest := s.node.Shutdown(); newest != nil && s.byPriority {
		started, ended := wallTimes(newest)
		s.setTimes(started, ended)
	}
}

// setTimes updates the metrics if the times have changed and, in Run, the kubelet's state file, unless another agent uses
// the folder. The mutex is held.
func (s *shell) setTimes(started, ended time.Time) {
	if times := [2]time.Time{started, ended}; times != s.shownTimes {
		s.shownTimes = times
		s.opts.Metrics.Times(started, ended)
		if s.phase == phaseRunning {
			s.log.SaveTimes(statelog.Times{StartTime: started, EndTime: ended})
		}
	}
}

// StoredReport reads the report of the last shutdown from a state folder ([Options.StateDir]), for programs
// other than the agent. found is false if no report is stored. The error names a file that is not usable.
// The report has no end if the shutdown has not ended. StoredReport neither locks nor changes the folder.
func StoredReport(dir string) (report Report, found bool, err error) {
	if info, err := os.Stat(dir); err != nil {
		return Report{}, false, fmt.Errorf("failed to read the state folder: %w", err)
	} else if !info.IsDir() {
		return Report{}, false, fmt.Errorf("the state folder %q is no directory", dir)
	}
	contents, err := statelog.ReadFile(dir)
	stored := contents.Entries
	if stored.Shutdown == nil || err != nil {
		return Report{}, false, err
	}
	return reportOf(stored.Shutdown, node.PodsOf(stored.Shutdown, stored.Pods)), true, nil
}
