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
	run      *run
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
	s := &r.stop
	*s = stop{run: r, began: time.Now(), retry: firstRetry, patience: r.table.terminator.opts.StopSlack}
	r.result.Phase = PhaseStopping
	told := false
	for s.proceedLocked(time.Now()); s.outcome == ""; s.proceedLocked(time.Now()) {
		failures := s.failures
		if failures > 0 && !told {
			told = true
			err := s.err
			if r.table.failing++; r.table.failing == 1 { // one event for all of a pod that fail at once
				r.eventLocked(r.pod, v1.EventTypeWarning, "FailedKillPod", fmt.Sprintf("error killing pod: %v", err))
			}
			r.logLocked(func(l klog.Logger) { l.Error(err, "Failed to stop a container, trying again") })
		}
		r.table.waitLocked(func() bool {
			return s.outcome != "" || s.failures != failures || s.seen != r.deadline || r.table.closed
		}, s.next, nil)
	}
	r.result.Stopping = time.Since(s.began)
	if told {
		r.table.failing--
	}
	switch err := s.err; {
	case s.outcome == RuntimeStuck:
		r.logLocked(func(l klog.Logger) { l.Error(err, "Gave up stopping a container", "failures", s.failures) })
	case told && s.outcome != LeftRunning:
		r.logLocked(func(l klog.Logger) {
			l.Info("A container is stopped after all", "outcome", s.outcome, "failures", s.failures)
		})
	}
	if s.failures > 1 {
		s.err = fmt.Errorf("%w (the last of %d failures)", s.err, s.failures)
	}
	return s.outcome, s.err
}

// proceedLocked asks the runtime if what was asked of it is not enough, and gives up.
func (s *stop) proceedLocked(now time.Time) {
	d, isStuck := s.run.deadline, !now.Before(s.giveUpAt())
	switch {
	case s.outcome != "":
		return
	case s.run.table.closed:
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
	case !s.counted && !now.Before(s.due), s.counted && s.seen != d:
		s.askLocked(now, d)
	}
	s.seen = d
}

// askLocked calls StopContainer, beside calls that have not been answered, unless the
// last of those kills the container in time.
func (s *stop) askLocked(now time.Time, d deadline) {
	seconds := d.left()
	if s.silent {
		seconds = 0
	}
	killAt := now.Add(graceperiod.Duration(seconds))
	if s.counted && !killAt.Before(s.last.killAt) {
		return
	}
	call := stopCall{number: s.last.number + 1, timeout: seconds, killAt: killAt, silentAt: killAt.Add(s.patience)}
	s.last, s.counted = call, true
	s.forced = s.forced || seconds == 0
	ctx, id, runtime := s.run.ctx, s.run.result.ID, s.run.table.terminator.opts.Runtime
	s.run.spawnLocked(ctx, "runtime", func() error {
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
	case s.outcome != "" || s.run.table.closed:
	case err == nil && s.forced:
		s.outcome = Forced
	case err == nil && time.Now().Before(killAt):
		s.outcome = Graceful
	case err == nil:
		s.outcome = GraceExceeded
		s.run.table.terminator.opts.Metrics.ContainerKilledAfterGrace()
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
	if !s.counted {
		return earlier(s.due, s.giveUpAt())
	}
	return earlier(s.last.silentAt, s.giveUpAt())
}

// giveUpAt is when the container cannot be helped. One that is asked for again long
// after its deadline has as much time.
func (s *stop) giveUpAt() time.Time {
	from := s.run.deadline.at()
	if from.Before(s.began) {
		from = s.began
	}
	return from.Add(s.run.table.terminator.opts.GiveUp)
}

// earlier gives the earlier of two moments.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}
