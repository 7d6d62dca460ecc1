package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
)

// The shortest and the longest wait between a StopContainer that failed and the next one.
const (
	minRetry = 100 * time.Millisecond
	maxRetry = time.Second
)

// stop calls StopContainer for one container, or StopPod for those of a unit, until it has
// ended or is given up. A new call is made if the last one has failed or has not returned in
// time, if the runtime kills the container earlier by it, or if the [ExitWatcher] goes on
// saying that the container runs. Calls that have not returned stay under way.
type stop struct {
	*run

	firstCallAt time.Time
	calls       int       // number of StopContainer calls so far
	failed      bool      // the last call has failed, or has not returned in time
	killAt      time.Time // when the timeout of the last call ends, and the runtime kills
	silent      bool      // a call has not returned in time
	forced      bool      // a call had the timeout 0
	claim       Outcome   // the outcome by the runtime, which the watcher has not confirmed
	claimant    stopCall  // the call that has made the claim
	failures    int
	reported    bool  // the first failure was logged
	err         error // of the last failure
	outcome     Outcome
}

// stopCall is one call of StopContainer.
type stopCall struct {
	number    int // from 1
	seconds   int64
	at        time.Time
	startedAt time.Time // when the Start of the container had returned; zero: it had not
}

var errStillRuns = errors.New("StopContainer has returned, but the container has not exited")

// stopError is the error of a container that could not be stopped in time. It formats its
// text only when that is needed, because an agent that stops makes one for each container.
type stopError struct {
	name, id string
	err      error
}

// Error returns the text, with the name and ID of the container.
func (e *stopError) Error() string {
	return fmt.Sprintf("failed to stop container %q (id=%q): %v", e.name, e.id, e.err)
}

// Unwrap returns the error of the stop.
func (e *stopError) Unwrap() error { return e.err }

// untilEndedLocked stops the container and returns its outcome, with the last error if a
// call has failed.
func (s *stop) untilEndedLocked() (Outcome, error) {
	retry, slack := minRetry, s.settings.StopSlack
	s.result.Phase = PhaseStopping
	for s.outcome == "" {
		s.callLocked()
		deadline := s.deadline
		s.awaitLocked(func() bool { return s.failed || s.claim != "" || deadline != s.deadline }, s.killAt.Add(slack), nil)
		switch {
		case s.outcome != "":
		case s.claim != "":
			s.believeLocked(retry)
			retry = min(2*retry, maxRetry)
		case s.failed && s.manner.once:
			s.reportFailureLocked()
			s.outcome, s.flags.renew = RuntimeStuck, s.failures == s.calls && !s.silent // and none is under way
		case s.failed:
			s.reportFailureLocked()
			s.awaitLocked(func() bool { return s.claim != "" }, time.Now().Add(retry), nil)
			retry = min(2*retry, maxRetry)
		case deadline == s.deadline: // the call has not returned in time
			s.failed, s.silent = true, true
			s.addSilenceLocked()
			s.reportFailureLocked()
			slack = 2 * min(slack, math.MaxInt64/2) // so that a runtime that hangs gets few calls
		}
	}
	s.result.Stopping = time.Since(s.firstCallAt)
	s.logEndLocked()
	return s.outcome, s.err
}

// awaitLocked waits until ready returns true, the time until is reached, or the channel of
// interrupt is closed. It returns earlier, with an outcome set, if the terminator is closed or
// the container is given up.
func (s *stop) awaitLocked(ready func() bool, until time.Time, interrupt func() <-chan struct{}) {
	s.waitLocked(func() bool { return s.isClosed() || ready() }, func() time.Time { return times.Earlier(until, s.giveUpAt()) }, interrupt)
	switch {
	case s.claim != "" && s.confirmed():
		s.outcome = s.claim
	case s.isClosed():
		s.outcome = LeftRunning
	case !time.Now().Before(s.giveUpAt()):
		if s.err == nil && s.claim == "" {
			s.addSilenceLocked()
		}
		s.outcome = RuntimeStuck
	}
	if s.outcome == GraceExceeded {
		s.settings.Metrics.ContainerKilledAfterGrace()
	}
}

// confirmed reports whether nothing contradicts the claim of the runtime: no watcher says
// that the container runs, or has still to answer.
func (s *stop) confirmed() bool { return !s.isDoubtful() && s.openExit() == nil && !s.isAsked() }

// isDoubtful reports whether the claim may be about the time before the container was started.
func (s *stop) isDoubtful() bool { return s.start.returnedAt != s.claimant.startedAt }

// isAsked reports whether a watcher was asked and has not answered.
func (s *stop) isAsked() bool {
	return slices.ContainsFunc(s.unit.with(s.run), func(r *run) bool { return r.exits.isAsked() })
}

// openExit returns the channel of a container that runs, as far as its watcher says, nil if
// there is none.
func (s *stop) openExit() <-chan struct{} {
	for _, r := range s.unit.with(s.run) {
		if open := r.exits.open(); open != nil {
			return open
		}
	}
	return nil
}

// believeLocked waits for the watcher to confirm what the runtime says, ExitSlack at most,
// and at least retry. If it goes on saying that the container runs, the runtime is asked again,
// which is no failure.
func (s *stop) believeLocked(retry time.Duration) {
	deadline, now := s.deadline, time.Now()
	until := now.Add(max(retry, s.settings.ExitSlack))
	for s.outcome == "" && time.Now().Before(until) && deadline == s.deadline {
		s.awaitLocked(func() bool { return deadline != s.deadline || s.confirmed() }, until, s.openExit)
	}
	switch {
	case s.outcome != "" || time.Now().Before(until): // the deadline has changed
	case !s.isDoubtful() && s.openExit() == nil: // the watcher does not answer
		s.outcome = s.claim
	default:
		s.claim, s.failed = "", s.claimant.number == s.calls // else a later call is under way
		if s.err == nil {
			s.err = errStillRuns
		}
	}
}

// addSilenceLocked counts a call that has not returned in time as a failure.
func (s *stop) addSilenceLocked() {
	s.failures++
	s.err = fmt.Errorf("StopContainer was silent for %v", time.Since(s.firstCallAt))
}

// callLocked calls StopContainer in another goroutine, unless the last call is still under
// way and the runtime kills the container as early by that one.
func (s *stop) callLocked() {
	seconds := s.deadline.stopTimeout()
	if s.silent {
		seconds = 0
	}
	killAt := time.Now().Add(graceperiod.Duration(seconds))
	if s.isClosed() || !s.failed && !killAt.Before(s.killAt) {
		return
	}
	s.calls++
	s.claim = ""
	s.killAt, s.failed, s.forced = killAt, false, s.forced || seconds == 0
	s.goroutines++
	go s.call(s.ctx, s.pod, s.result.Name, s.result.ID, stopCall{s.calls, seconds, time.Now(), s.start.returnedAt})
}

// call is the body of the goroutine of one call.
func (s *stop) call(ctx context.Context, pod *v1.Pod, name, id string, c stopCall) {
	call.GuardAbout(ctx, "the runtime", about(pod, name), func() error {
		if s.settings.Pods != nil {
			return s.settings.Pods.StopPod(ctx, pod, c.seconds)
		}
		return s.settings.Runtime.StopContainer(ctx, id, c.seconds)
	}, func(err error) {
		s.mu.Lock()
		s.returnedLocked(c, err)
		s.doneAndUnlock()
	})
}

// returnedLocked handles the result of a StopContainer call. The first success is the claim
// that the container has ended. If the last call fails, another one is made. A runtime kills
// when its timeout is over: a successful call that took as long as its timeout counts as a
// kill, unless the runtime says so itself.
func (s *stop) returnedLocked(c stopCall, err error) {
	killAt := c.at.Add(graceperiod.Duration(c.seconds))
	if !s.failed {
		killAt = times.Earlier(killAt, s.killAt)
	}
	wasKilled, isGone := errors.Is(err, ErrKilled), errors.Is(err, ErrContainerNotFound)
	switch {
	case s.outcome != "" || s.claim != "" || s.isClosed():
		return
	case err != nil && !wasKilled && !isGone:
		s.failures++
		s.err = fmt.Errorf("StopContainer with timeout %d failed: %w", c.seconds, err)
		s.failed = s.failed || c.number == s.calls
		return
	case isGone:
		s.claim = NotFound
	case s.forced:
		s.claim = Forced
	case wasKilled || !time.Now().Before(killAt):
		s.claim = GraceExceeded
	default:
		s.claim = Graceful
	}
	s.claimant = c
	for _, r := range s.unit.with(s.run) {
		r.exits.askLocked(r.ctx, r.attempt, true)
	}
}

// giveUpAt returns when the container is given up: GiveUp after the deadline, or after the
// first call if that comes after the deadline.
func (s *stop) giveUpAt() time.Time {
	from := s.deadline.at()
	if from.Before(s.firstCallAt) {
		from = s.firstCallAt
	}
	return from.Add(s.settings.GiveUp)
}

// reportFailureLocked logs the first failure of the container. It also records an event,
// unless another container of the pod is failing already.
func (s *stop) reportFailureLocked() {
	if s.reported {
		return
	}
	err := s.err
	s.reported = true
	if s.live.addFailing(1) == 1 {
		s.recordEventLocked(s.pod, v1.EventTypeWarning, "FailedKillPod", fmt.Sprintf("error killing pod: %v", err))
	}
	s.logLocked(func(l klog.Logger) { l.Error(err, "Failed to stop a container", "tryAgain", !s.manner.once) })
}

// logEndLocked logs how the stop ended if there was a failure, and adds the number of
// failures to the error.
func (s *stop) logEndLocked() {
	if s.reported {
		s.live.addFailing(-1)
	}
	switch err := s.err; {
	case s.outcome == RuntimeStuck && s.reported && s.manner.once: // that it is not tried again was logged
	case s.outcome == RuntimeStuck:
		s.logLocked(func(l klog.Logger) { l.Error(err, "Gave up stopping a container", "failures", s.failures) })
	case s.reported && s.outcome != LeftRunning:
		s.logLocked(func(l klog.Logger) {
			l.Info("A container is stopped after all", "outcome", s.outcome, "failures", s.failures)
		})
	}
	if s.outcome != RuntimeStuck && s.outcome != LeftRunning && s.failures == 0 {
		s.err = nil
	}
	if s.failures > 1 {
		s.err = fmt.Errorf("%w (the last of %d failures)", s.err, s.failures)
	}
}
