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

// stop asks the runtime to end one container, until it has, or is given up.
type stop struct {
	*run

	began    time.Time
	last     stopCall      // the last call
	counted  bool          // it is counted on: it has neither failed nor is it silent
	seen     deadline      // for which it was enough
	due      time.Time     // when the next one may be made after a failure
	retry    time.Duration // how long after the next failure
	patience time.Duration // how long past its timeout the next call may be silent
	silent   bool          // one was silent
	forced   bool          // one had a timeout of 0
	failures int
	told     bool  // of the first one
	err      error // the last one
	outcome  Outcome
}

// stopCall is one StopContainer. Each kills the container earlier than those before it,
// which stay in flight and may still succeed.
type stopCall struct {
	number   int
	timeout  int64
	killAt   time.Time // when the runtime is to have killed the container
	silentAt time.Time // when it is counted on no longer
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
	s := &stop{run: r, began: time.Now(), retry: firstRetry, patience: r.table.terminator.opts.StopSlack}
	r.result.Phase = PhaseStopping
	for s.proceedLocked(); s.outcome == ""; s.proceedLocked() {
		failures := s.failures
		if failures > 0 && !s.told {
			s.tellLocked()
		}
		r.table.waitLocked(func() bool {
			return s.outcome != "" || s.failures != failures || s.seen != r.deadline || r.table.closed
		}, s.next, nil)
	}
	r.result.Stopping = time.Since(s.began)
	if s.failures > 0 {
		s.settleLocked()
	}
	return s.outcome, s.err
}

// proceedLocked asks the runtime if what was asked of it is not enough, and gives up.
func (s *stop) proceedLocked() {
	now := time.Now()
	isStuck := !now.Before(s.giveUpAt())
	switch {
	case s.outcome != "":
		return
	case s.table.closed:
		s.outcome = LeftRunning
		return
	case s.counted && !now.Before(s.last.silentAt), isStuck && s.err == nil:
		s.silent, s.counted = true, false
		s.patience = 2 * min(s.patience, math.MaxInt64/2) // a deaf runtime is not buried under calls
		s.failures++
		s.err = fmt.Errorf("StopContainer was silent for %v", now.Sub(s.began))
	}
	switch {
	case isStuck:
		s.outcome = RuntimeStuck
	case !s.counted && !now.Before(s.due), s.counted && s.seen != s.deadline:
		s.askLocked(now)
	}
	s.seen = s.deadline
}

// askLocked calls StopContainer, beside calls that have not been answered, unless the
// last of those kills the container in time.
func (s *stop) askLocked(now time.Time) {
	seconds := s.deadline.left()
	if s.silent {
		seconds = 0
	}
	killAt := now.Add(graceperiod.Duration(seconds))
	if s.counted && !killAt.Before(s.last.killAt) {
		return
	}
	s.last = stopCall{number: s.last.number + 1, timeout: seconds, killAt: killAt, silentAt: killAt.Add(s.patience)}
	s.counted, s.forced = true, s.forced || seconds == 0
	call, ctx, id, runtime := s.last, s.ctx, s.result.ID, s.table.terminator.opts.Runtime
	s.spawnLocked(ctx, "runtime", func() error {
		return runtime.StopContainer(ctx, id, seconds)
	}, func(err error) { s.answeredLocked(call, err) })
}

// answeredLocked takes the answer of a call: the first success ends all of them, a
// failure of the last one is followed by another call. The runtime does not say whether
// it had to kill, but it does so when its timeout is over: a stop that lasted that long
// is taken for a kill.
func (s *stop) answeredLocked(call stopCall, err error) {
	killAt := call.killAt
	if s.counted {
		killAt = earlier(killAt, s.last.killAt)
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
		s.err = fmt.Errorf("StopContainer with timeout %d failed: %w", call.timeout, err)
		if s.counted && call.number == s.last.number {
			s.counted, s.due = false, time.Now().Add(s.retry)
			s.retry = min(2*s.retry, slowestRetry)
		}
	}
}

// next is when there is something to do if nothing is heard until then.
func (s *stop) next() time.Time {
	if s.counted {
		return earlier(s.last.silentAt, s.giveUpAt())
	}
	return earlier(s.due, s.giveUpAt())
}

// giveUpAt is when the container cannot be helped. One that is asked for again long
// after its deadline has as much time.
func (s *stop) giveUpAt() time.Time {
	return later(s.deadline.at(), s.began).Add(s.table.terminator.opts.GiveUp)
}

// tellLocked makes the first failure known: one log line for each container, one
// event for all of a pod that fail at the same time.
func (s *stop) tellLocked() {
	err := s.err
	s.told = true
	if s.table.failing++; s.table.failing == 1 {
		s.recordLocked(event{s.pod, v1.EventTypeWarning, "FailedKillPod", fmt.Sprintf("error killing pod: %v", err)})
	}
	s.logLocked(func(l klog.Logger) { l.Error(err, "Failed to stop a container, trying again") })
}

// settleLocked makes the end known of what has failed.
func (s *stop) settleLocked() {
	if s.told {
		s.table.failing--
	}
	switch err := s.err; s.outcome {
	case LeftRunning:
	case RuntimeStuck:
		s.logLocked(func(l klog.Logger) { l.Error(err, "Gave up stopping a container", "failures", s.failures) })
	default:
		s.logLocked(func(l klog.Logger) {
			l.Info("A container is stopped after all", "outcome", s.outcome, "failures", s.failures)
		})
	}
	if s.failures > 1 {
		s.err = fmt.Errorf("%w (the last of %d failures)", s.err, s.failures)
	}
}

// earlier gives the earlier of two moments.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// later gives the later of two moments.
func later(a, b time.Time) time.Time {
	if a.Before(b) {
		return b
	}
	return a
}
