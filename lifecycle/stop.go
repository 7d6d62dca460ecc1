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

// How long it takes until a StopContainer that has failed is asked for again.
const (
	firstRetry   = 100 * time.Millisecond
	slowestRetry = time.Second
)

// stop asks the runtime to end one container, until it has, or is given up. Each
// StopContainer kills the container earlier than those before it, which stay in flight and
// may still succeed.
type stop struct {
	*run

	began    time.Time
	asked    int       // calls so far
	failed   bool      // the last one is counted on no longer: it has failed, or is silent
	killAt   time.Time // when the runtime is to have killed the container, by the last one
	silent   bool      // one was silent
	forced   bool      // one had a timeout of 0
	failures int
	told     bool  // of the first one
	err      error // the last one
	outcome  Outcome
}

// stopError is why a container did not end as it should. It is put into words only
// when somebody asks: an agent that stops has one for each of its containers.
type stopError struct {
	name, id string
	err      error
}

// Error names the container.
func (e *stopError) Error() string {
	return fmt.Sprintf("failed to stop container %q (id=%q): %v", e.name, e.id, e.err)
}

// Unwrap gives what went wrong.
func (e *stopError) Unwrap() error { return e.err }

// stopLocked stops a container.
func (r *run) stopLocked() (Outcome, error) {
	s := &stop{run: r, began: time.Now(), failed: true}
	retry, patience := firstRetry, r.table.terminator.opts.StopSlack
	r.result.Phase = PhaseStopping
	for s.outcome == "" {
		s.askLocked()
		seen := r.deadline
		s.awaitLocked(func() bool { return s.failed || seen != r.deadline }, s.killAt.Add(patience))
		switch {
		case s.outcome != "":
		case s.failed:
			s.tellLocked()
			s.awaitLocked(func() bool { return false }, time.Now().Add(retry))
			retry = min(2*retry, slowestRetry)
		case seen == r.deadline:
			s.failed, s.silent = true, true
			s.noteSilenceLocked()
			s.tellLocked()
			patience = 2 * min(patience, math.MaxInt64/2) // a deaf runtime is not buried under calls
		}
	}
	r.result.Stopping = time.Since(s.began)
	if s.failures > 0 {
		s.settleLocked()
	}
	return s.outcome, s.err
}

// awaitLocked waits until ready, or some time. The container may end meanwhile; it is left
// when the agent stops, and given up when it is time for that.
func (s *stop) awaitLocked(ready func() bool, until time.Time) {
	s.table.waitLocked(func() bool { return s.outcome != "" || s.table.closed || ready() },
		func() time.Time { return earlier(until, s.giveUpAt()) }, nil)
	switch {
	case s.outcome != "":
	case s.table.closed:
		s.outcome = LeftRunning
	case !time.Now().Before(s.giveUpAt()):
		if s.err == nil {
			s.noteSilenceLocked()
		}
		s.outcome = RuntimeStuck
	}
}

// noteSilenceLocked takes the silence of a call for a failure.
func (s *stop) noteSilenceLocked() {
	s.failures++
	s.err = fmt.Errorf("StopContainer was silent for %v", time.Since(s.began))
}

// askLocked calls StopContainer, beside calls that have not been answered, unless the
// last of those kills the container in time.
func (s *stop) askLocked() {
	seconds := s.deadline.left()
	if s.silent {
		seconds = 0
	}
	killAt := time.Now().Add(graceperiod.Duration(seconds))
	if s.table.closed || !s.failed && !killAt.Before(s.killAt) {
		return
	}
	s.asked++
	s.killAt, s.failed, s.forced = killAt, false, s.forced || seconds == 0
	number, ctx, id, runtime := s.asked, s.ctx, s.result.ID, s.table.terminator.opts.Runtime
	s.spawnLocked(ctx, "runtime", func() error {
		return runtime.StopContainer(ctx, id, seconds)
	}, func(err error) { s.answeredLocked(number, seconds, killAt, err) })
}

// answeredLocked takes the answer of a call: the first success ends all of them, a
// failure of the last one is followed by another call. The runtime does not say whether
// it had to kill, but it does so when its timeout is over: a stop that lasted that long
// is taken for a kill.
func (s *stop) answeredLocked(number int, seconds int64, killAt time.Time, err error) {
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
		s.failed = s.failed || number == s.asked
	}
}

// giveUpAt is when the container cannot be helped. One that is asked for again long
// after its deadline has as much time.
func (s *stop) giveUpAt() time.Time {
	since := s.deadline.at()
	if since.Before(s.began) {
		since = s.began
	}
	return since.Add(s.table.terminator.opts.GiveUp)
}

// tellLocked makes the first failure known: one log line for each container, one
// event for all of a pod that fail at the same time.
func (s *stop) tellLocked() {
	if s.told {
		return
	}
	err := s.err
	s.told = true
	if s.table.failing++; s.table.failing == 1 {
		s.recordLocked(s.pod, v1.EventTypeWarning, "FailedKillPod", fmt.Sprintf("error killing pod: %v", err))
	}
	s.logLocked(func(l klog.Logger) { l.Error(err, "Failed to stop a container, trying again") })
}

// settleLocked makes the end known of what has failed.
func (s *stop) settleLocked() {
	if s.told {
		s.table.failing--
	}
	switch err := s.err; {
	case s.outcome == RuntimeStuck:
		s.logLocked(func(l klog.Logger) { l.Error(err, "Gave up stopping a container", "failures", s.failures) })
	case s.told && s.outcome != LeftRunning:
		s.logLocked(func(l klog.Logger) {
			l.Info("A container is stopped after all", "outcome", s.outcome, "failures", s.failures)
		})
	}
	if s.failures > 1 {
		s.err = fmt.Errorf("%w (the last of %d failures)", s.err, s.failures)
	}
}

// earlier gives the earlier of two moments. A zero b is none.
func earlier(a, b time.Time) time.Time {
	if !b.IsZero() && b.Before(a) {
		return b
	}
	return a
}
