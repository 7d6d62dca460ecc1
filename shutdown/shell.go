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
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

const (
	// folderTime bounds the wait for another agent to unlock the state folder, and readTime that for
	// the files.
	folderTime = 10 * time.Second
	readTime   = 5 * time.Second
	// openTime is how long the reading of the log may take before pods are refused.
	openTime = 100 * time.Millisecond
	// onReportTime is how long TerminateAll waits for OnReport before it ends the context of the call.
	onReportTime = 10 * time.Second
	// hangTime is how long calls that ignore their context are waited for.
	hangTime = 10 * time.Second
)

// shell carries out what the core decides. Each input is one step under a mutex: the core returns
// effects, and each of them that may take time begins in a goroutine of its own, whose answer is the
// next input. Nothing blocks while the mutex is held.
type shell struct {
	*settings

	log       *statelog.Log
	ready     readiness
	opening   opening
	host      atomic.Pointer[host.Host] // of Run; nil: none yet
	admission admission

	mu         sync.Mutex // guards the fields below
	node       *node.Node
	isOpening  bool // the log is being read
	ctx        context.Context
	end        context.CancelFunc
	users      int // Run and TerminateAll, while they are under way
	phase      phase
	calls      *call.Group
	aborts     map[int]context.CancelFunc // of the calls under way that may be aborted
	hold       *host.Hold                 // of the shutdown under way; nil: none
	endTimer   func()                     // nil: there is no timer
	wake       time.Time                  // when the timer goes off; zero: it does not
	events     nodeEvents
	written    *call.Future[struct{}] // of the newest entry of the log
	isWatching bool                   // watchWrites has a goroutine
	isReadOnly bool                   // nothing is stored
	last       func() Report          // of the last shutdown that has ended; nil: there is none
	ended      *node.Shutdown         // the newest that has ended in this agent; nil: there is none
	reported   map[int]*reporting     // by the number of the shutdown
	terminated chan struct{}          // closed when TerminateAll has drained the node
	waiting    int                    // calls of TerminateAll that wait for that
	shownTimes [2]time.Time
	policyErrs map[source.Kind]error // of policies that are not known
	toReport   []string              // failures for the report of the drain under way
	// seen, if not nil, is told of each step before its effects are carried out. Tests have it ask the judge.
	seen func(at time.Time, in node.Input, effects []node.Effect)
}

// phase is that of Run.
type phase int

const (
	phaseIdle phase = iota
	phaseRunning
	phaseOver
)

// newShell returns the shell of a manager that does not run. It reads the log, for admission.
func newShell(s *settings, disk statelog.Options) *shell {
	disk.Dir, disk.Times = s.opts.StateDir, s.byPriority
	sh := &shell{
		settings: s, node: node.New(s.nodeConfig()), calls: &call.Group{}, aborts: map[int]context.CancelFunc{},
		reported: map[int]*reporting{}, terminated: make(chan struct{}),
		log: statelog.New(disk),
	}
	sh.opening.over = make(chan struct{})
	sh.ctx = context.Background() //nolint:forbidigo // NewManager has no context
	sh.isReadOnly = true          // until Run has the folder
	sh.ready.init()
	ctx, enough := context.WithTimeout(sh.ctx, readTime)
	defer enough()
	contents := sh.log.Read(ctx)
	before := node.New(s.nodeConfig()) // only says who is admitted until Run reads the log
	before.Step(sh.now(), node.Read{Entries: contents.Entries, SameBoot: contents.SameBoot})
	snapshot := snapshotOf(before)
	if left := before.Shutdown(); snapshot.refuses && left != nil {
		snapshot.until, snapshot.pods = sh.log.TimeOf(left.WaitEnd()), refusedPods(before)
	}
	sh.admission.now.Store(snapshot)
	sh.showPrevious(contents)
	return sh
}

// now returns the time since the boot.
func (s *shell) now() time.Time { return s.log.Since(s.opts.Clock.Now()) }

// context returns the context of the calls.
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

// step passes an input to the core and begins what follows from it.
func (s *shell) step(in node.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.take(in)
	for len(s.toReport) > 0 {
		text := s.toReport[0]
		s.toReport = s.toReport[1:]
		s.take(node.Failed{Text: text})
	}
	if s.users > 0 {
		s.afterStep()
	}
}

// take passes an input to the core and begins what follows from it. The mutex is held.
func (s *shell) take(in node.Input) {
	now := s.now()
	effects := s.node.Step(now, in)
	if s.seen != nil {
		s.seen(now, in, effects)
	}
	if s.users == 0 {
		return // nobody waits for anything any more
	}
	var kills []node.Effect
	for _, e := range effects {
		if e.Do == node.Kill {
			kills = append(kills, e)
		} else {
			s.carryOut(e)
		}
	}
	s.killAll(kills)
}

// afterStep sets what follows from the state of the core.
func (s *shell) afterStep() {
	s.admit()
	s.setTimer(s.node.Wake())
	if _, isOver := s.node.Terminated(); isOver {
		select {
		case <-s.terminated:
		default:
			close(s.terminated)
		}
	}
	if newest := s.node.Shutdown(); newest != nil && newest != s.ended && !newest.Ended.IsZero() {
		s.ended = newest
		s.last = func() Report { return s.reportOf(newest) } // OnReport may have to wait for pods that outlive it
	}
	s.showTimes()
}

// setTimer has a step made at a time; zero: at none. The timer that there is stays if it is for that time and has
// not gone off. The mutex is held.
func (s *shell) setTimer(wake time.Time) {
	if wake.Equal(s.wake) && s.now().Before(wake) {
		return
	}
	if s.wake = wake; s.endTimer != nil {
		s.endTimer()
		s.endTimer = nil
	}
	if wake.IsZero() {
		return
	}
	ctx, end := context.WithCancel(s.ctx)
	s.endTimer = end
	passed := s.opts.Clock.After(wake.Sub(s.now()))
	s.calls.Go(func() string { return "the timer of the drain" }, func() {
		select {
		case <-passed:
			s.step(node.Tick{})
		case <-ctx.Done():
		}
	})
}

// admit sets who is admitted. While the log is being read that stays as it was. A static pod whose final
// status was accepted is admitted once the log has that, or cannot be written: otherwise the next agent
// could send the status while the pod runs. The mutex is held.
func (s *shell) admit() {
	switch {
	case s.node.Refuses():
		if now := s.admission.now.Load(); !now.refuses || !now.until.IsZero() {
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

// isWriting reports whether the log lacks an entry, of which it is not known that it cannot be written.
// The mutex is held.
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

// enter begins the calls of Run or TerminateAll, with the values of its context.
func (s *shell) enter(ctx context.Context) {
	s.mu.Lock()
	s.users++
	isFirst := s.users == 1
	if isFirst {
		s.ctx, s.end = context.WithCancel(context.WithoutCancel(ctx))
		s.events = nodeEvents{recorder: s.opts.Events, node: s.opts.Node}
	}
	ctx = s.ctx
	s.mu.Unlock()
	if isFirst && s.opts.Policy != nil {
		s.askPolicies(ctx)
	}
}

// policies has the pod policy of each kind of shutdown, and why it is not the embedder's.
type policies struct {
	known map[source.Kind]node.Policy
	errs  map[source.Kind]error
}

// askPolicies asks for the policies of all kinds of shutdown. For one that is not known in time
// PolicySetTerminal counts.
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
			p.errs[kind] = fmt.Errorf("failed to ask for the pod policy, %s counts: %w", PolicySetTerminal, err)
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.node.Policies, s.policyErrs = p.known, p.errs
}

// leave ends the calls if nobody else needs them, and waits for those that ignore that until a time at
// most. The error names them.
func (s *shell) leave(until time.Time) error {
	s.mu.Lock()
	s.users--
	isLast := s.users == 0
	if isLast {
		s.end() // and the timer
	}
	calls := s.calls
	s.mu.Unlock()
	if !isLast {
		return nil
	}
	return hangingError(calls, until)
}

// hangingError waits for the calls of a group until a time. It returns an error that names the
// calls that still run, or nil.
func hangingError(calls *call.Group, until time.Time) error {
	enough := make(chan struct{})
	timer := time.AfterFunc(time.Until(until), func() { close(enough) })
	defer timer.Stop()
	hanging := calls.Wait(enough)
	const most = 10
	switch n := len(hanging); {
	case n == 0:
		return nil
	case n > most:
		return fmt.Errorf("%d calls have not returned, among them %s", n, strings.Join(hanging[:most], ", "))
	default:
		return fmt.Errorf("calls that have not returned: %s", strings.Join(hanging, ", "))
	}
}

// run is Run.
func (s *shell) run(ctx context.Context) error {
	s.mu.Lock()
	if s.phase != phaseIdle {
		s.mu.Unlock()
		return errAlreadyRun
	}
	s.phase, s.isOpening, s.isReadOnly = phaseRunning, true, false
	s.mu.Unlock()
	defer s.ready.close() // Ready is closed even if ctx ends early
	s.enter(ctx)
	s.step(node.Opening{})
	slow := time.AfterFunc(openTime, s.refuseWhileOpening)
	defer slow.Stop()
	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	h, hostEnded := s.startHost(runCtx)
	folderErr := s.open(runCtx, h == nil)
	if folderErr != nil && s.opts.RequireStateDir && ctx.Err() == nil {
		folderErr = fmt.Errorf("the state folder is required: %w", folderErr)
		stop(folderErr)
	} else {
		folderErr = nil
	}
	<-runCtx.Done()
	stop(nil)
	until := s.endRun()
	var closeErr, hostErr error
	if h != nil {
		closeErr = h.Close(context.WithoutCancel(ctx)) // before any wait: the host must not wait for calls that hang
		hostErr = <-hostEnded
	}
	hangingErr := s.leave(until)
	return errors.Join(folderErr, s.interruption(), closeErr, hostErr, hangingErr, s.log.Close(until))
}

// startHost begins to watch the host, until ctx ends; the channel gets the error of that. nil: no host is
// watched.
func (s *shell) startHost(ctx context.Context) (*host.Host, <-chan error) {
	if !s.watches() {
		s.ready.hostTried()
		klog.FromContext(ctx).Info("No host is watched, only Trigger and TerminateAll drain", "reason", s.off)
		return nil, nil
	}
	h := host.New(host.Options{
		Source: s.opts.Source, Delay: s.requestedDelay(), Shortens: s.shortensBucket, Metrics: s.opts.Metrics,
		Calls: s.calls, Listener: s,
	})
	s.host.Store(h)
	s.logRequest(ctx)
	ended := make(chan error, 1)
	go func() { ended <- h.Run(ctx) }()
	return h, ended
}

// refuseWhileOpening refuses pods while the log is being read for long. What is announced does not wait
// for it any more.
func (s *shell) refuseWhileOpening() {
	defer s.opening.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node.State() == node.StateOpening {
		klog.FromContext(s.ctx).Info("Pods are refused until the state log has been read", "folder", s.opts.StateDir)
		now := *s.admission.now.Load()
		now.refuses, now.until = true, time.Time{}
		s.admission.now.Store(&now)
	}
}

// open locks the state folder and reads the log. The error is that of the lock.
func (s *shell) open(ctx context.Context, nobodyCanTell bool) error {
	defer s.opening.end()
	waiting, enough := context.WithTimeout(ctx, folderTime)
	defer enough()
	warning, err := s.log.Lock(waiting)
	var contents statelog.Contents
	if err == nil {
		reading, enough := context.WithTimeout(ctx, readTime)
		contents = s.log.Read(reading)
		enough()
	}
	for _, err := range append([]error{s.log.BootErr(), warning, err}, contents.Errs...) {
		if err != nil {
			s.step(node.Failed{Text: err.Error()})
		}
	}
	s.mu.Lock()
	s.isOpening, s.isReadOnly = false, err != nil
	s.mu.Unlock()
	if err == nil {
		s.showPrevious(contents)
	}
	s.step(node.Read{Entries: contents.Entries, SameBoot: contents.SameBoot})
	s.mu.Lock()
	if left := s.node.Shutdown(); left != nil && s.last != nil {
		s.last = func() Report { return s.reportOf(left) } // it may go on, or end
	}
	s.mu.Unlock()
	if nobodyCanTell && err == nil {
		s.step(node.Pending{Wall: s.opts.Clock.Now()})
	}
	s.ready.folderTried()
	return err
}

// endRun tells the core that the context of Run has ended, and returns until when calls that hang are
// waited for.
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

// interruption returns the error of a Run that has ended in a drain: it names the pods that are not
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
			errs = append(errs, fmt.Errorf("pod %s/%s: it was not killed", p.Namespace, p.Name))
		}
	}
	return errors.Join(errs...)
}

// terminateAll is TerminateAll.
func (s *shell) terminateAll(ctx context.Context) (Report, error) {
	s.enter(ctx)
	s.mu.Lock()
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
		s.step(node.StopTerminateAll{}) // nobody waits for the drain any more
	}
	s.mu.Lock()
	drained, isOver := s.node.Terminated()
	s.mu.Unlock()
	if drained == nil {
		return Report{}, errors.Join(context.Cause(ctx), s.leave(time.Now().Add(hangTime)))
	}
	if isOver {
		s.awaitReport(ctx, drained.Number)
	}
	s.mu.Lock()
	report := s.reportOf(drained)
	s.mu.Unlock()
	return report, errors.Join(report.Err(), context.Cause(ctx), s.leave(time.Now().Add(hangTime)))
}

// awaitReport waits until OnReport has returned for a shutdown, but not for one that hangs.
func (s *shell) awaitReport(ctx context.Context, number int) {
	s.mu.Lock()
	reported := s.reportOn(number)
	s.mu.Unlock()
	if called, err := reported.Wait(ctx); err == nil {
		_, _ = called.Await(ctx, time.Now().Add(onReportTime))
	}
}

// reportOn returns the future of the call of OnReport for a shutdown. The mutex is held.
func (s *shell) reportOn(number int) *call.Future[*call.Future[struct{}]] {
	r := s.reported[number]
	if r == nil {
		r = &reporting{}
		r.called, r.setCalled = call.NewFuture[*call.Future[struct{}]]()
		s.reported[number] = r
	}
	return r.called
}

// reporting is the call of OnReport for one shutdown.
type reporting struct {
	called    *call.Future[*call.Future[struct{}]]
	setCalled func(*call.Future[struct{}], error)
	isCalled  bool
}

// reportOf returns the report of a shutdown as it is now. The mutex is held.
func (s *shell) reportOf(of *node.Shutdown) Report {
	return reportOf(of, s.node.PodsOf(of))
}

// lastReport is LastReport.
func (s *shell) lastReport() (Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.last == nil {
		return Report{}, false
	}
	return s.last(), true
}

// showPrevious makes the report of the log the last one.
func (s *shell) showPrevious(c statelog.Contents) {
	head, pods := entriesOf(c)
	s.mu.Lock()
	defer s.mu.Unlock()
	if head != nil && s.node.Shutdown() == nil {
		report := reportOf(head, node.PodsOf(head, pods))
		s.last = func() Report { return report }
	}
	if times := c.Times; times != (statelog.Times{}) {
		s.setTimes(times.StartTime, times.EndTime)
	}
}

// showTimes sets the metrics of the newest shutdown, and stores the kubelet's file. Without the priority
// gate neither is there, as in the kubelet.
func (s *shell) showTimes() {
	if newest := s.node.Shutdown(); newest != nil && s.byPriority {
		started, ended := timesOf(newest)
		s.setTimes(started, ended)
	}
}

// setTimes sets the metrics to the times of a shutdown, and stores them, if they have changed.
func (s *shell) setTimes(started, ended time.Time) {
	if times := [2]time.Time{started, ended}; times != s.shownTimes {
		s.shownTimes = times
		s.opts.Metrics.Times(started, ended)
		if s.phase == phaseRunning && !s.isReadOnly {
			s.log.SaveTimes(statelog.Times{StartTime: started, EndTime: ended})
		}
	}
}

// StoredReport reads the report of the last shutdown from a folder of state files (see
// [Options.StateDir]), for a program that shows it and is not the agent. found is false if no
// report is stored. A file that is not usable is an error that names it. If the shutdown has not
// ended yet, the report has no end. StoredReport does not lock the folder and writes nothing.
func StoredReport(dir string) (report Report, found bool, err error) {
	if info, err := os.Stat(dir); err != nil {
		return Report{}, false, fmt.Errorf("failed to read the state folder: %w", err)
	} else if !info.IsDir() {
		return Report{}, false, fmt.Errorf("the state folder %q is no directory", dir)
	}
	contents, err := statelog.ReadFile(dir)
	head, pods := entriesOf(contents)
	if head == nil || err != nil {
		return Report{}, false, err
	}
	return reportOf(head, node.PodsOf(head, pods)), true, nil
}

// entriesOf returns the shutdown and the pods of a log; nil: there is none.
func entriesOf(c statelog.Contents) (head *node.Shutdown, pods []*node.Pod) {
	for _, entry := range c.Entries {
		switch e := entry.(type) {
		case node.Shutdown:
			head = &e
		case node.Pod:
			pods = append(pods, &e)
		}
	}
	return head, pods
}
