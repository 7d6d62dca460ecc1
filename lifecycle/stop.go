package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
)

// stopOptions says how a request wants its containers stopped.
type stopOptions struct {
	ignoreOrder  bool          // do not wait for other containers (KillContainer)
	trustSuccess bool          // a successful StopContainer proves that the container has ended: no list must confirm it
	oneAttempt   bool          // the stop ends when the first StopContainer fails
	message      string        // of the Killing event; "": the kubelet's
	hooks        HandlerRunner // runs the preStop hook; nil: [TerminatorOptions].Hooks does
}

// containerStop stops one run of a container. begin starts a goroutine that executes the steps of the kubelet's
// killContainer. A stop that failed may begin again later. The pod's mutex guards the fields that change.
type containerStop struct {
	pod       *podState
	container Container
	run       containerRun // as listed by the runtime, or as named by the caller

	ctx             context.Context
	apiPod          *v1.Pod
	spec            *v1.Container // nil: not in the pod's spec
	role            role
	options         stopOptions
	podStop         *podStop // stops the container together with others; nil: it stops alone
	hook            preStop
	lastListedIn    int           // number of the newest list that has the run; 0: none
	newestListAtEnd int           // number of the newest list when the stop ended
	lastNotified    chan struct{} // closed when the newest call of Events or OnHook has returned; nil: there was none
	deadline        deadline      // its end is zero if the next begin starts a new grace period
	inProgress      bool          // the stop's goroutine is running
	earlierRuns     int           // number of other runs of the container that the termination in progress had stopped before
	failing         bool          // StopContainer has failed
	// reported is the outcome that the StopContainer calls have reported so far, including those of earlier attempts; "": none
	// has succeeded, or a list still had the container. Only the stop's goroutine uses it.
	reported Outcome
	// firstCallAt is the time of the first StopContainer or StopPod call. If the runtime lists the run again after
	// not listing it, the time stays, so that such a runtime cannot postpone GiveUpAfter for ever.
	firstCallAt time.Time
	result      ContainerResult
}

// newStop returns the stop of one run of a container. The stop has not begun. The caller holds the mutex.
func newStop(p *podState, c Container) *containerStop {
	s := &containerStop{pod: p, container: c, run: runOf(c), result: ContainerResult{Name: c.Name, ID: c.ID, Began: c.Began}}
	s.hook.handled = c.PreStopDone
	if t := p.termination; t.inProgress() { // only in a termination are many runs of a container suspicious (pauseAfterManyRuns)
		for _, other := range t.stops {
			if other.container.Name == c.Name {
				s.earlierRuns++
			}
		}
	}
	return s
}

// isStopping reports whether the stop is in progress; false for a nil receiver.
func (s *containerStop) isStopping() bool { return s != nil && s.inProgress }

// isGivenUp reports whether the stop has ended although the container may still be running.
func (s *containerStop) isGivenUp() bool { return !s.inProgress && !s.result.Outcome.hasEnded() }

// mayRun reports whether the container may be running. That is so
//
//   - while its stop is in progress;
//   - if its stop was given up, and no list of the running containers is newer or the newest list has it;
//   - if it had ended, and the newest list has it again (isListedAgain).
//
// The caller holds the mutex.
func (s *containerStop) mayRun() bool {
	if s.isGivenUp() {
		newest := s.pod.lists.newestNumber
		hasNoNewerList, isListed := newest == s.newestListAtEnd, newest == s.lastListedIn
		return hasNoNewerList || isListed
	}
	return !s.result.Outcome.hasEnded() || s.isListedAgain()
}

// isListedAgain reports whether the newest list has the container although an earlier list showed that it
// had ended, so that it must be stopped again.
func (s *containerStop) isListedAgain() bool {
	wasEndedByList := s.result.Outcome.hasEnded() && !s.options.trustSuccess // trustSuccess: a StopContainer call has ended it
	isListed := s.lastListedIn > 0 && s.lastListedIn == s.pod.lists.newestNumber
	return wasEndedByList && isListed
}

// isUnlisted reports whether the newest list lacks the container although an earlier list had it: the container has ended. The
// caller holds the mutex.
func (s *containerStop) isUnlisted() bool {
	return s.lastListedIn > 0 && s.lastListedIn < s.pod.lists.newestNumber
}

// replacedBy returns the later run with the same ID that the newest list has instead of this run. It returns nil if there is
// none, or if the listed run may be this one, because the list does not say when it began. The caller holds the mutex.
func (s *containerStop) replacedBy() (laterRun *Container) {
	isListed := s.lastListedIn == s.pod.lists.newestNumber
	hasNoLaterRun := s.podStop != nil || s.run.began == 0 // StopPod names no ID, and without Began no run is known to be later
	if hasNoLaterRun || isListed {
		return nil
	}
	for _, other := range s.pod.lists.newestRuns {
		if other.ID != s.run.id {
			continue
		}
		if other.Began.IsZero() || runOf(other) == s.run {
			return nil
		}
		if runOf(other).began > s.run.began {
			laterRun = &other
		}
	}
	return laterRun
}

// begin starts an attempt to stop the container: the first one, or another one after the container was given up or a list
// had it again. Another attempt keeps the old deadline if that is earlier. Only the first attempt records the Killing event,
// and each one that follows a request with OneAttempt, as in the kubelet. The caller holds the mutex.
func (s *containerStop) begin(ctx context.Context, apiPod *v1.Pod, newDeadline deadline, options stopOptions) {
	// First read what the previous attempt has left, if there was one.
	isFirst := s.ctx == nil                                   // neither an earlier attempt nor addUnbegunStop has set ctx
	continuesGrace := !s.deadline.end.IsZero()                // false: it is the first attempt, or giveUp lets a new grace period start
	recordsKilling := !continuesGrace || s.options.oneAttempt // s.options are still those of the previous request
	if continuesGrace && s.deadline.end.Before(newDeadline.end) {
		newDeadline = s.deadline
	}
	if !s.result.Outcome.hasEnded() { // the previous attempt, if any, gave up: GiveUpAfter starts again
		s.firstCallAt = time.Time{}
	}
	// Then set the state of the new attempt.
	s.ctx, s.apiPod, s.options, s.deadline, s.inProgress = ctx, apiPod, options, newDeadline, true
	s.failing, s.result.Phase, s.result.Outcome, s.result.Err = false, "", "", nil
	if isFirst { // the result keeps the first grace period
		s.result.GrantedSeconds = newDeadline.granted
	}
	s.readSpec()
	s.podStop = s.pod.joinPodStop(s)
	s.pod.terminator.calls.Go(func() string { return "the stop of " + fullName(apiPod, s.container.Name) }, func() {
		if !continuesGrace && s.spec == nil && s.podStop == nil { // only in the first attempt: the line need not be repeated
			s.logger().Info("Stopping container that is not in the pod's spec, without a hook")
		}
		s.execute(recordsKilling)
	})
}

// readSpec reads the container's spec and role from the pod. If the pod has no such container, the result gets the error
// that the kubelet returns, whose reason is the message of the event. Unlike the kubelet, the stop goes on, without a hook
// and without waiting for other containers. The caller holds the mutex.
func (s *containerStop) readSpec() {
	s.spec, s.role = findContainer(s.apiPod, s.container.Name)
	if s.spec == nil {
		s.result.Err = fmt.Errorf("failed to get containerSpec %q (id=%q) in pod %q when killing container for reason %q",
			s.container.Name, s.container.ID, formatPod(s.apiPod), s.options.message)
	}
}

// shorten moves the deadline of a stop in progress to newDeadline, if that is earlier. With a PodStopper one StopPod call
// stops several containers (s.podStop), so the deadlines of all of them move. The caller holds the mutex.
func (s *containerStop) shorten(newDeadline deadline) {
	isEarlier := newDeadline.end.Before(s.deadline.end)
	if !s.inProgress || !isEarlier {
		return
	}
	newDeadline.shortened = true
	s.deadline = newDeadline
	s.pod.wake()
	if s.podStop != nil {
		for _, member := range s.podStop.members {
			member.shorten(newDeadline) // it calls s.shorten back, which then does nothing
		}
	}
}

// execute is the stop's goroutine: it runs the hook, waits for the containers that must stop before this one, and then stops
// the container. recordsKilling says whether to record the Killing event.
func (s *containerStop) execute(recordsKilling bool) {
	if recordsKilling {
		s.recordKilling()
	}
	if s.pod.terminator.opts.HooksAtTurn {
		s.waitForOrder() // the hook runs only at the container's turn
	}
	s.runHook()
	s.waitForOrder() // with HooksAtTurn, again: while the hook ran, a container that must stop first may have been restarted
	s.pauseAfterManyRuns()
	outcome, err := s.stopUntilEnded()
	s.setOutcome(outcome, err) // at once, so that the containers that wait for this one can stop
	s.waitForHook()
	s.waitForEvents()
	s.finish()
}

// waitForOrder waits for the containers that must stop before this one, at most until the deadline. Only a sidecar
// waits, unless it is stopped on its own (KillContainer) or together with the others (podStop).
func (s *containerStop) waitForOrder() {
	s.pod.waitWhile(s.ctx, func() (wait bool, recheckAt time.Time) {
		obeysOrder := !s.options.ignoreOrder && s.podStop == nil
		hasTime := !s.deadline.hasPassed() && s.ctx.Err() == nil
		wait = obeysOrder && hasTime && s.pod.isBlocked(s.role)
		if wait {
			s.result.Phase = PhaseWaiting
		}
		return wait, s.deadline.end
	})
}

// manyRuns is the number of runs of one container in one termination after which its stops pause. An agent that restarts a
// sidecar until the main containers have ended causes fewer runs.
const manyRuns = 10

// pauseAfterManyRuns pauses before a stop if the termination has already stopped manyRuns runs of the container: a runtime
// whose IDs change with each list would otherwise be called without end and without a pause. Before the first such pause
// it logs the suspicion.
func (s *containerStop) pauseAfterManyRuns() {
	if s.earlierRuns == manyRuns {
		s.logger().Info("The runtime lists a new run of the container again and again: are its ID and Began the same in each list?", "runs", manyRuns)
	}
	if s.earlierRuns >= manyRuns {
		_ = times.Sleep(s.ctx, longestPause)
	}
}

// stopUntilEnded stops the container, alone or with others, until it has ended or is given up, and
// returns its outcome.
func (s *containerStop) stopUntilEnded() (Outcome, error) {
	if s.podStop != nil {
		return s.podStop.stopUntilEnded(s)
	}
	s.setPhase(PhaseStopping)
	stopContainer := func(ctx context.Context, seconds int64) error {
		return s.pod.terminator.opts.Runtime.StopContainer(ctx, s.container.ID, seconds)
	}
	calls := &stopCalls{containerStop: s, targets: []*containerStop{s}, call: stopContainer}
	return calls.stopUntilEnded()
}

// setPhase sets the phase that [Termination.Result] shows for the container.
func (s *containerStop) setPhase(phase Phase) {
	s.pod.mu.Lock()
	defer s.pod.mu.Unlock()
	s.result.Phase = phase
	s.pod.wake()
}

// setOutcome sets the container's outcome, and lets the containers stop that waited for it. The stop itself is in progress
// until finish.
func (s *containerStop) setOutcome(outcome Outcome, err error) {
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
	if !s.firstCallAt.IsZero() { // zero: a PodStopper was not called before Close
		s.result.Stopping = time.Since(s.firstCallAt)
	}
	s.result.Outcome = outcome
	s.pod.unblockStops()
}

// finish ends the stop, for which a termination and KillContainer wait. If the newest list has the container again,
// another attempt begins.
func (s *containerStop) finish() {
	s.pod.mu.Lock()
	defer s.pod.unlock()
	s.result.Phase, s.newestListAtEnd, s.inProgress = PhaseEnded, s.pod.lists.newestNumber, false
	if t := s.pod.termination; t.inProgress() && t.usesLists() && s.isListedAgain() {
		t.stopListed(s.container, s)
	}
	s.pod.wake()
}

// logger returns a logger with the container's name and ID.
func (s *containerStop) logger() klog.Logger {
	return klog.FromContext(s.ctx).WithValues("pod", klog.KObj(s.apiPod), "containerName", s.container.Name, "containerID", s.container.ID)
}

// method returns the name of the runtime's method that stops the container, for error messages.
func (s *containerStop) method() string {
	if s.podStop != nil {
		return "StopPod"
	}
	return "StopContainer"
}

// stopError adds the container's name and ID, if known, to an error.
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
