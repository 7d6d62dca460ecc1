package lifecycle

import (
	"errors"
	"fmt"
	"math"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// The shortest and the longest wait between a StopContainer that failed and the next one.
const (
	minRetry = 100 * time.Millisecond
	maxRetry = time.Second
)

// stop calls StopContainer for one container until a call succeeds or the container is
// given up. A new call is made if the last one has failed or has not returned in time, or if
// the runtime kills the container earlier by it. Calls that have not returned stay under way.
type stop struct {
	*run

	firstCallAt time.Time
	stopCalls   int       // number of StopContainer calls so far
	failed      bool      // the last call has failed, or has not returned in time
	killAt      time.Time // when the timeout of the last call ends, and the runtime kills
	silent      bool      // a call has not returned in time
	forced      bool      // a call had the timeout 0
	failures    int
	reported    bool  // the first failure was logged
	err         error // of the last failure
	outcome     Outcome
}

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

// stopLocked stops the container and returns its outcome, with the last error if a call has
// failed. It calls StopContainer again when a call has failed, when a call has not returned
// in time, and when the deadline has moved.
func (r *run) stopLocked() (Outcome, error) {
	s := &stop{run: r, firstCallAt: time.Now(), failed: true}
	retry, slack := minRetry, r.table.terminator.opts.StopSlack
	r.result.Phase = PhaseStopping
	for s.outcome == "" {
		s.callLocked()
		deadline := r.deadline
		s.awaitLocked(func() bool { return s.failed || deadline != r.deadline }, s.killAt.Add(slack))
		switch {
		case s.outcome != "":
		case s.failed:
			s.reportFailureLocked()
			s.awaitLocked(func() bool { return false }, time.Now().Add(retry))
			retry = min(2*retry, maxRetry)
		case deadline == r.deadline: // the call has not returned in time
			s.failed, s.silent = true, true
			s.addSilenceLocked()
			s.reportFailureLocked()
			slack = 2 * min(slack, math.MaxInt64/2) // so that a runtime that hangs gets few calls
		}
	}
	r.result.Stopping = time.Since(s.firstCallAt)
	s.logEndLocked()
	return s.outcome, s.err
}

// awaitLocked waits until ready returns true or the time until is reached. It returns
// earlier, with an outcome set, if the container ends, the terminator is closed, or the
// container is given up.
func (s *stop) awaitLocked(ready func() bool, until time.Time) {
	s.table.waitLocked(func() bool { return s.outcome != "" || s.table.closed || ready() },
		func() time.Time { return earlier(until, s.giveUpAt()) }, nil)
	switch {
	case s.outcome != "":
	case s.table.closed:
		s.outcome = LeftRunning
	case !time.Now().Before(s.giveUpAt()):
		if s.err == nil {
			s.addSilenceLocked()
		}
		s.outcome = RuntimeStuck
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
	if s.table.closed || !s.failed && !killAt.Before(s.killAt) {
		return
	}
	s.stopCalls++
	s.killAt, s.failed, s.forced = killAt, false, s.forced || seconds == 0
	number, ctx, id, runtime := s.stopCalls, s.ctx, s.result.ID, s.table.terminator.opts.Runtime
	s.spawnLocked(ctx, "runtime", func() error {
		return runtime.StopContainer(ctx, id, seconds)
	}, func(err error) { s.returnedLocked(number, seconds, killAt, err) })
}

// returnedLocked handles the result of a StopContainer call. The first success sets the
// outcome. If the last call fails, stopLocked makes another one. The runtime does not say
// whether it killed the container, but it kills when its timeout is over: a successful call
// that took as long as its timeout counts as a kill.
func (s *stop) returnedLocked(number int, seconds int64, killAt time.Time, err error) {
	if !s.failed {
		killAt = earlier(killAt, s.killAt)
	}
	switch {
	case s.outcome != "" || s.table.closed:
	case err == nil && s.forced:
		s.outcome = Forced
	case err == nil && time.Now().Before(killAt):
		s.outcome = Graceful
	case err == nil:
		s.outcome = GraceExceeded
		s.table.terminator.opts.Metrics.ContainerKilledAfterGrace()
	case errors.Is(err, ErrContainerNotFound):
		s.outcome = NotFound
	default:
		s.failures++
		s.err = fmt.Errorf("StopContainer with timeout %d failed: %w", seconds, err)
		s.failed = s.failed || number == s.stopCalls
	}
}

// giveUpAt returns when the container is given up: GiveUp after the deadline, or after the
// first call if that comes after the deadline.
func (s *stop) giveUpAt() time.Time {
	from := s.deadline.at()
	if from.Before(s.firstCallAt) {
		from = s.firstCallAt
	}
	return from.Add(s.table.terminator.opts.GiveUp)
}

// reportFailureLocked logs the first failure of the container. It also records an event,
// unless another container of the pod is failing already.
func (s *stop) reportFailureLocked() {
	if s.reported {
		return
	}
	err := s.err
	s.reported = true
	if s.table.failing++; s.table.failing == 1 {
		s.recordEventLocked(s.pod, v1.EventTypeWarning, "FailedKillPod", fmt.Sprintf("error killing pod: %v", err))
	}
	s.logLocked(func(l klog.Logger) { l.Error(err, "Failed to stop a container, trying again") })
}

// logEndLocked logs how the stop ended if there was a failure, and adds the number of
// failures to the error.
func (s *stop) logEndLocked() {
	if s.reported {
		s.table.failing--
	}
	switch err := s.err; {
	case s.outcome == RuntimeStuck:
		s.logLocked(func(l klog.Logger) { l.Error(err, "Gave up stopping a container", "failures", s.failures) })
	case s.reported && s.outcome != LeftRunning:
		s.logLocked(func(l klog.Logger) {
			l.Info("A container is stopped after all", "outcome", s.outcome, "failures", s.failures)
		})
	}
	if s.failures > 1 {
		s.err = fmt.Errorf("%w (the last of %d failures)", s.err, s.failures)
	}
}

// earlier returns the earlier of two times. A zero b means that there is only a.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
