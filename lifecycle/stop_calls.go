package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
)

// stopCalls repeats StopContainer for a container, or StopPod for a unit, until the containers have
// ended or GiveUpAfter is over. Only the goroutine of the stop uses it.
type stopCalls struct {
	*stop // whose deadline applies

	runs    []*stop // the containers that one call stops
	call    func(ctx context.Context, seconds int64) error
	replies chan stopReply  // in the order in which the calls return
	callCtx context.Context //nolint:containedctx // of the calls; it ends when their answers are no longer needed

	made     int           // calls so far
	killAt   time.Time     // when the timeout of the newest call is over, and the runtime kills
	slack    time.Duration // how long after killAt a call may return
	timedOut bool          // a call did not return in time; all later calls have the timeout 0
	forced   bool          // a call had the timeout 0
	reported Outcome       // what the successful calls say; "": no call has succeeded, or a list has refuted it
	failures int
	failure  error // the newest one
	// listsAtReturn is how many lists had begun when the newest call had returned, or was waited for in vain.
	listsAtReturn int
}

// stopReply is what one call has returned.
type stopReply struct {
	number     int       // of the call, from 1
	seconds    int64     // the timeout
	at         time.Time // when the call was made
	returnedAt time.Time
	err        error
}

var (
	errNoTimeLeft = errors.New("it was killed at once, because its deadline had passed when it was stopped")
)

// stopUntilEnded calls until the containers have ended or are given up. It returns the outcome, and the
// newest failure of a call or a list even if a later one succeeded.
func (c *stopCalls) stopUntilEnded() (Outcome, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.replies, c.callCtx = make(chan stopReply), ctx
	c.slack = c.pod.terminator.opts.StopTimeoutSlack
	c.setFirstCall()
	for pause := backoff(0); c.ctx.Err() == nil; {
		if c.isKnownEnded() {
			return c.outcomeOfEnded()
		}
		answered := c.callAndWait()
		if c.ctx.Err() != nil {
			break
		}
		callErr := c.callError(answered)
		if callErr != nil {
			c.recordFailure(callErr)
		}
		switch err := c.checkEnded(callErr, answered); {
		case err == nil:
			return c.outcomeOfEnded()
		case c.ctx.Err() != nil:
			return OutcomeLeftRunning, c.failure
		case callErr == nil:
			c.recordFailure(err)
		}
		if c.options.oneAttempt {
			return c.giveUp()
		}
		if !c.timedOut || answered != nil { // a call that did not return has been waited for long enough
			sleepContext(c.ctx, min(pause.next(), time.Until(c.giveUpAt())))
		}
		if !time.Now().Before(c.giveUpAt()) {
			return c.giveUp()
		}
	}
	return OutcomeLeftRunning, c.failure
}

// isKnownEnded reports whether the newest list makes another call unnecessary. Such a list has begun
// after the last call and lacks the containers, or it has a later run with the same ID, which another call
// would stop.
func (c *stopCalls) isKnownEnded() bool {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	newest := c.pod.lists.newestNumber
	if c.made > 0 && newest > c.listsAtReturn && !slices.ContainsFunc(c.runs, func(s *stop) bool { return s.options.trustSuccess || s.listedBy == newest }) {
		return true
	}
	isReplaced := c.replacedBy() != nil
	if isReplaced && c.made == 0 {
		c.reported = OutcomeNotFound
	}
	return isReplaced
}

// replacedBy returns the later run with the same ID that the newest list has in place of this run; nil if
// there is none. The mutex is held.
func (c *stopCalls) replacedBy() (by *Container) {
	if c.unit != nil || c.run.began == 0 || c.listedBy == c.pod.lists.newestNumber {
		return nil
	}
	for _, other := range c.pod.lists.newestRuns {
		if other.ID != c.run.id {
			continue
		}
		if other.Began.IsZero() || runOf(other) == c.run {
			return nil
		}
		if runOf(other).began > c.run.began {
			by = &other
		}
	}
	return by
}

// callAndWait makes a call with the rest of the grace period as its timeout, and waits for the answer.
// It returns nil if the call has not returned StopTimeoutSlack after its timeout. If the deadline moves
// earlier meanwhile, it makes a second, concurrent call with a shorter timeout.
func (c *stopCalls) callAndWait() *stopReply {
	c.makeCall(c.timeout())
	for {
		timer := time.NewTimer(time.Until(c.returnBy()))
		select {
		case a := <-c.replies:
			timer.Stop()
			if a.isSuccess() || a.number == c.made {
				c.setReported(a)
				return &a
			}
		case <-c.deadlineMoved:
			timer.Stop()
			if seconds := c.timeout(); time.Now().Add(graceperiod.Duration(seconds)).Before(c.killAt) {
				c.makeCall(seconds)
			}
		case <-timer.C:
			c.timedOut = true
			c.slack = 2 * min(c.slack, math.MaxInt64/2) // a runtime that hangs should not collect many calls
			return nil
		case <-c.ctx.Done():
			timer.Stop()
			return nil
		}
	}
}

// timeout returns the timeout of the next call, in seconds.
func (c *stopCalls) timeout() int64 {
	if c.timedOut {
		return 0
	}
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	return c.deadline.stopTimeout()
}

// returnBy returns the time by which the newest call must return.
func (c *stopCalls) returnBy() time.Time {
	if c.options.oneAttempt {
		// No second call may follow. The runtime's client may give up GiveUpAfter past the timeout, as the
		// kubelet's does: its error comes first.
		return c.killAt.Add(c.pod.terminator.opts.GiveUpAfter).Add(c.slack)
	}
	return times.Earlier(c.killAt.Add(c.slack), c.giveUpAt())
}

// giveUpAt returns when the containers are given up: GiveUpAfter after the deadline, or after the first
// call if that was made after the deadline.
func (c *stopCalls) giveUpAt() time.Time {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	return times.Later(c.deadline.end, c.firstCallAt).Add(c.pod.terminator.opts.GiveUpAfter)
}

// makeCall makes a call in another goroutine, which sends the answer.
func (c *stopCalls) makeCall(seconds int64) {
	a := stopReply{number: c.made + 1, seconds: seconds, at: time.Now()}
	c.made++
	c.killAt = a.killAt()
	c.forced = c.forced || seconds == 0
	call, ctx := c.call, c.callCtx
	c.pod.spawnAfter(ctx, c.failure, c.method(), c.apiPod, c.container.Name, func() error { return call(ctx, seconds) }, func(err error) {
		a.err, a.returnedAt = err, time.Now()
		select {
		case c.replies <- a:
		case <-ctx.Done():
		}
	})
}

// killAt returns when the timeout of the call is over, and the runtime kills.
func (a stopReply) killAt() time.Time { return a.at.Add(graceperiod.Duration(a.seconds)) }

// isSuccess reports whether the runtime answered that the container has ended.
func (a stopReply) isSuccess() bool {
	return a.err == nil || errors.Is(a.err, ErrKilled) || errors.Is(a.err, ErrContainerNotFound)
}

// setReported derives the reported outcome from a successful answer. A runtime kills when the timeout
// is over. A call that took as long as its timeout therefore counts as a kill, even without ErrKilled.
func (c *stopCalls) setReported(a stopReply) {
	switch {
	case !a.isSuccess():
	case errors.Is(a.err, ErrContainerNotFound):
		if c.reported == "" {
			c.reported = OutcomeNotFound
		}
	case c.forced:
		c.reported = OutcomeForced
	case a.err != nil || c.reported == OutcomeGraceExceeded || !a.returnedAt.Before(times.Earlier(a.killAt(), c.killAt)):
		c.reported = OutcomeGraceExceeded
	default:
		c.reported = OutcomeGraceful
	}
}

// callError returns what went wrong with a call, nil if nothing did.
func (c *stopCalls) callError(a *stopReply) error {
	switch {
	case a == nil:
		return fmt.Errorf("%s has not returned for %v", c.method(), time.Since(c.firstCallAt))
	case !a.isSuccess():
		return fmt.Errorf("%s with timeout %d failed: %w", c.method(), a.seconds, a.err)
	default:
		return nil
	}
}

// checkEnded returns nil if the containers have ended, and otherwise the reason to believe that they may
// run. Where the call is trusted, its error decides. Otherwise a list decides that begins after the call
// has returned.
func (c *stopCalls) checkEnded(callErr error, answered *stopReply) error {
	c.pod.mu.Lock()
	c.listsAtReturn = c.pod.lists.started
	if !slices.ContainsFunc(c.runs, func(s *stop) bool { return !s.options.trustSuccess }) {
		c.pod.mu.Unlock()
		return callErr
	}
	l := c.pod.requestList(c.ctx, c.apiPod)
	c.pod.mu.Unlock()
	if err := l.wait(c.ctx); err != nil {
		return fmt.Errorf("%s has returned, but the runtime cannot list what runs: %w", c.method(), err)
	}
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	for _, s := range c.runs {
		if s.listedBy >= l.number {
			if c.reported != OutcomeGraceExceeded {
				c.reported = "" // the call said that the container had ended, which is not true
			}
			if answered != nil && errors.Is(answered.err, ErrContainerNotFound) {
				return fmt.Errorf("%s has returned %q, but the runtime lists the container", c.method(), answered.err)
			}
			return s.errStillListed()
		}
	}
	return nil
}

// outcomeOfEnded returns the outcome of containers that have ended. If no call reports how they ended,
// the time decides.
func (c *stopCalls) outcomeOfEnded() (Outcome, error) {
	outcome := c.reported
	switch {
	case outcome != "":
	case c.forced:
		outcome = OutcomeForced
	case time.Now().Before(c.killAt):
		outcome = OutcomeGraceful
	default:
		outcome = OutcomeGraceExceeded
	}
	if outcome == OutcomeForced && c.failure == nil {
		c.failure = errNoTimeLeft
	}
	if c.failures > 0 {
		c.logStopped(outcome)
	}
	return outcome, c.lastFailure()
}

// logStopped logs how a container has ended whose stop had failed before.
func (c *stopCalls) logStopped(outcome Outcome) {
	c.pod.mu.Lock()
	later := c.replacedBy()
	c.pod.mu.Unlock()
	if later == nil {
		c.logger().Info("A container is stopped after all", "outcome", outcome, "failures", c.failures)
		return
	}
	c.logger().Info("A container counts as stopped, because the runtime lists a later run with its ID and another Began",
		"began", time.Unix(0, c.run.began), "laterBegan", later.Began, "failures", c.failures)
}

// recordFailure keeps what went wrong. The first failure is logged. It is also recorded as an event, unless
// another container of the pod is failing already, or the caller retries by itself.
func (c *stopCalls) recordFailure(err error) {
	c.failure = err
	if c.failures++; c.failures > 1 {
		return
	}
	c.logger().Error(err, "Failed to stop a container", "tryAgain", !c.options.oneAttempt)
	if !c.options.oneAttempt && c.pod.isFirstToFail(c.stop) {
		c.record(c.apiPod, v1.EventTypeWarning, "FailedKillPod", fmt.Sprintf("error killing pod: %v", err))
	}
}

// giveUp returns the outcome of containers that have not ended. With OneAttempt the next request grants
// a new grace period, as in the kubelet, unless the call has not returned.
func (c *stopCalls) giveUp() (Outcome, error) {
	if !c.options.oneAttempt {
		c.logger().Error(c.failure, "Gave up stopping a container", "failures", c.failures)
	} else if !c.timedOut {
		c.pod.mu.Lock()
		for _, s := range c.runs {
			s.deadline.end = time.Time{}
		}
		c.pod.mu.Unlock()
	}
	return OutcomeRuntimeStuck, c.lastFailure()
}

// lastFailure returns the newest failure, with the number of failures; nil if there was none.
func (c *stopCalls) lastFailure() error {
	if c.failures > 1 {
		return fmt.Errorf("%w (the last of %d failures)", c.failure, c.failures)
	}
	return c.failure
}
