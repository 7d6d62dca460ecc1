package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// stopOptions says how a request wants its containers stopped.
type stopOptions struct {
	ignoreOrder  bool          // do not wait for other containers (KillContainer)
	trustSuccess bool          // a successful StopContainer proves that the container has ended
	oneAttempt   bool          // the stop ends when the first StopContainer fails
	message      string        // of the Killing event; "": the kubelet's
	hooks        HandlerRunner // nil: [TerminatorOptions].Hooks
}

// stop stops one run of a container. Its goroutine runs execute, which follows the kubelet's
// killContainer. The pod's mutex guards the fields that change.
type stop struct {
	pod       *pod
	container Container
	run       run // as listed by the runtime

	ctx           context.Context
	apiPod        *v1.Pod
	spec          *v1.Container // nil: not in the pod's spec
	role          role
	options       stopOptions
	unit          *unit // the containers that stop together with this one; nil: it stops alone
	hook          preStop
	listedBy      int           // number of the newest list that has the run; 0: none
	termination   *Termination  // the newest one that includes the stop; nil: none
	lastNotified  chan struct{} // closed when the newest call of Events or OnHook has returned; nil: there was none
	deadline      deadline      // its end is zero if the next begin starts a new grace period
	timer         *time.Timer   // of the deadline
	expired       chan struct{} // closed at the deadline
	deadlineMoved chan struct{} // has a value until an earlier deadline is read
	unblocked     chan struct{} // closed when the container need not wait for others
	done          chan struct{} // closed when the stop has ended; nil: it has not begun
	failing       bool          // StopContainer has failed
	// firstCallAt is the time of the first StopContainer call. It stays when the runtime lists a run
	// again after not listing it, so that such a runtime does not postpone GiveUpAfter.
	firstCallAt time.Time
	result      ContainerResult
}

func newStop(p *pod, c Container) *stop {
	s := &stop{pod: p, container: c, run: runOf(c), result: ContainerResult{Name: c.Name, ID: c.ID, Began: c.Began}}
	s.hook.handled = c.PreStopDone
	return s
}

// inProgress reports whether the stop's goroutine is running.
func (s *stop) inProgress() bool { return s.done != nil && !isClosed(s.done) }

// isGivenUp reports whether the stop has ended but its container may still run.
func (s *stop) isGivenUp() bool {
	return s.done != nil && isClosed(s.done) && !s.result.Outcome.hasEnded()
}

// isListedAgain reports whether the newest list has the container although an earlier list showed that
// it had ended.
func (s *stop) isListedAgain() bool {
	return s.result.Outcome.hasEnded() && !s.options.trustSuccess && s.listedBy > 0 && s.listedBy == s.pod.lists.newestNumber
}

// begin starts the stop's goroutine, for the first time or again. A stop that was given up resumes: it
// keeps its old deadline if that is earlier, and records no second Killing event. If the previous request
// had OneAttempt it does record one, as the kubelet does in each attempt. The caller holds the mutex.
func (s *stop) begin(ctx context.Context, apiPod *v1.Pod, until deadline, options stopOptions) {
	resumes := !s.deadline.end.IsZero()
	recordsKilling := !resumes || s.options.oneAttempt // the options of the previous request
	if resumes && s.deadline.end.Before(until.end) {
		until = s.deadline
	}
	isFirst := s.done == nil
	s.ctx, s.apiPod, s.options, s.deadline = ctx, apiPod, options, until
	s.spec, s.role = findContainer(apiPod, s.container.Name)
	if !s.result.Outcome.hasEnded() {
		s.firstCallAt = time.Time{}
	}
	s.expired, s.deadlineMoved, s.unblocked, s.done = make(chan struct{}), make(chan struct{}, 1), make(chan struct{}), make(chan struct{})
	s.failing, s.result.Phase, s.result.Outcome, s.result.Err = false, "", "", nil
	if s.result.GrantedSeconds == 0 {
		s.result.GrantedSeconds = until.granted
	}
	if s.spec == nil {
		// The kubelet returns this error; its reason is the event's message. Unlike the kubelet, continue without a hook and without waiting for other containers.
		s.result.Err = fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container for reason %q",
			s.container.Name, s.container.ID, formatPod(apiPod), options.message)
	}
	if s.unit = s.pod.joinableUnit(); s.unit != nil {
		s.unit.members = append(s.unit.members, s)
	}
	if options.ignoreOrder || s.unit != nil || !s.role.isSidecar() {
		s.unblock()
	}
	s.timer = time.AfterFunc(time.Until(until.end), s.expire)
	s.pod.terminator.calls.Go(func() string { return "the stop of " + fullName(apiPod, s.container.Name) }, func() {
		if isFirst && s.spec == nil && s.pod.terminator.opts.Pods == nil {
			s.logger().Info("Stopping container that is not in the pod's spec, without a hook")
		}
		s.execute(recordsKilling)
	})
}

// expire closes expired at the deadline. It does nothing if the timer fired for a deadline that has
// moved since.
func (s *stop) expire() {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	if s.deadline.hasPassed() && !isClosed(s.expired) {
		close(s.expired)
	}
}

// shorten moves the deadline to until if that is earlier, also for the containers of the same unit. The
// caller holds the mutex.
func (s *stop) shorten(until deadline) {
	if !s.inProgress() || !until.end.Before(s.deadline.end) {
		return
	}
	until.shortened = true
	s.deadline = until
	s.timer.Reset(time.Until(until.end))
	select {
	case s.deadlineMoved <- struct{}{}:
	default: // an unread value is enough: its reader gets the newest deadline
	}
	if s.unit != nil { // one member calls StopPod for all
		for _, member := range s.unit.members {
			member.shorten(until)
		}
	}
}

// unblock ends the wait for other containers. The caller holds the mutex.
func (s *stop) unblock() {
	if s.inProgress() && !isClosed(s.unblocked) {
		close(s.unblocked)
	}
}

// execute runs the hook, waits for the containers that stop first, and stops the container.
func (s *stop) execute(recordsKilling bool) {
	if recordsKilling {
		s.recordKilling()
	}
	if s.pod.terminator.opts.HooksAtTurn && s.unit == nil {
		s.waitForOrder()
	}
	s.runHook()
	s.waitForOrder()
	outcome, err := s.stopUntilEnded()
	s.end(outcome, err)
	s.waitForHook()
	s.waitForEvents()
	s.finish()
}

// waitForOrder waits until no other container blocks this one, at most until the deadline.
func (s *stop) waitForOrder() {
	for began := time.Now(); s.updateWait(began); {
		select {
		case <-s.unblocked:
		case <-s.expired:
		case <-s.ctx.Done():
		}
	}
}

// updateWait reports whether the container must keep waiting for others, and updates the result's phase and
// waiting time. If a newer list blocks a container that was unblocked before, it makes a new unblocked
// channel. since is when the wait began.
func (s *stop) updateWait(since time.Time) bool {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.result.Waited = max(s.result.Waited, time.Since(since))
	if s.options.ignoreOrder || s.unit != nil || isClosed(s.expired) || s.ctx.Err() != nil || !s.pod.isBlocked(s.role) {
		return false
	}
	s.result.Phase = PhaseWaiting
	if isClosed(s.unblocked) { // a newer list has another container that blocks this one
		s.unblocked = make(chan struct{})
	}
	return true
}

// stopUntilEnded stops the container, alone or with its unit, and returns its outcome.
func (s *stop) stopUntilEnded() (Outcome, error) {
	if s.unit != nil {
		return s.unit.stopUntilEnded(s)
	}
	began := time.Now()
	s.setPhase(PhaseStopping)
	calls := &stopCalls{
		stop: s, runs: []*stop{s}, call: func(ctx context.Context, seconds int64) error {
			return s.pod.terminator.opts.Runtime.StopContainer(ctx, s.container.ID, seconds)
		},
	}
	outcome, err := calls.stopUntilEnded()
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.result.Stopping = time.Since(began)
	return outcome, err
}

// setFirstCall sets firstCallAt to now, unless it is set.
func (s *stop) setFirstCall() {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	if s.firstCallAt.IsZero() {
		s.firstCallAt = time.Now()
	}
}

// setPhase sets the phase of the result.
func (s *stop) setPhase(phase Phase) {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.result.Phase = phase
}

// end sets the container's outcome, and unblocks the containers that waited for it.
func (s *stop) end(outcome Outcome, err error) {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	if outcome == OutcomeLeftRunning {
		err = errors.Join(ErrClosed, err)
	}
	if err != nil {
		s.result.Err = errors.Join(s.result.Err, &stopError{name: s.container.Name, id: s.container.ID, err: err})
	}
	if outcome == OutcomeGraceExceeded {
		s.pod.terminator.opts.Metrics.ContainerKilledAfterGrace()
	}
	s.result.Outcome = outcome
	s.pod.unblockStops()
}

// finish closes done.
func (s *stop) finish() {
	s.pod.mu.Lock()
	defer s.pod.unlock()
	s.timer.Stop()
	s.result.Phase = PhaseEnded
	close(s.done)
	if t := s.pod.termination; t.inProgress() && t.usesLists && s.isListedAgain() {
		t.requireList() // the next list begins another stop of the same run
	}
}

// currentResult returns a copy of the result so far.
func (s *stop) currentResult() ContainerResult {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	return s.result
}

// logger returns a logger with the container's name and ID.
func (s *stop) logger() klog.Logger {
	return klog.FromContext(s.ctx).WithValues("pod", klog.KObj(s.apiPod), "containerName", s.container.Name, "containerID", s.container.ID)
}

// method returns the name of the runtime's method that stops the container.
func (s *stop) method() string {
	if s.unit != nil {
		return "StopPod"
	}
	return "StopContainer"
}

// errStillListed is the error of a call that returned too early.
func (s *stop) errStillListed() error {
	return fmt.Errorf("%s returned, but the runtime still lists the container", s.method())
}

// stopError adds the container's name and ID to an error.
type stopError struct {
	name, id string
	err      error
}

func (e *stopError) Error() string {
	if e.id == "" { // no run of it was listed
		return fmt.Sprintf("failed to stop container %q: %v", e.name, e.err)
	}
	return fmt.Sprintf("failed to stop container %q (id=%q): %v", e.name, e.id, e.err)
}

func (e *stopError) Unwrap() error { return e.err }

// isClosed reports whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
