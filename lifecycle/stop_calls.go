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
// ended or GiveUpAfter has passed. Only the stop's goroutine uses it.
type stopCalls struct {
	*stop // whose deadline applies

	runs    []*stop // the containers that a call stops
	call    func(ctx context.Context, seconds int64) error
	replies chan stopReply  // in the order in which the calls return
	callCtx context.Context // ends when nobody waits for replies any more

	made     int           // number of calls
	killAt   time.Time     // when the newest call's timeout ends, and the runtime kills
	slack    time.Duration // how long after killAt a call may return
	timedOut bool          // a call did not return in time; later calls have timeout 0
	forced   bool          // a call had timeout 0
	reported Outcome       // the outcome by the successful calls; "": none has succeeded, or a list has refuted it
	failures int
	failure  error // the newest one
	// listsAtReturn is the number of lists started by the time the newest call had returned or timed
	// out.
	listsAtReturn int
}

// stopReply is what one call returned.
type stopReply struct {
	number     int       // of the call, from 1
	seconds    int64     // the timeout
	at         time.Time // when the call was made
	returnedAt time.Time
	err        error
}

var errNoTimeLeft = errors.New("killed at once, because the deadline had passed before StopContainer was called")

// stopUntilEnded repeats the call until the containers have ended or are given up. It returns the
// outcome and the newest failure, even if a later call succeeded.
func (c *stopCalls) stopUntilEnded() (Outcome, error) {
	ctx, cancel := context.WithCancel(c.ctx)
	defer cancel()
	c.replies, c.callCtx = make(chan stopReply), ctx
	c.slack = c.pod.terminator.opts.StopTimeoutSlack
	c.setFirstCall()
	for pause := backoff(0); c.ctx.Err() == nil; {
		if c.noteKnownEnd() {
			return c.outcomeOfEnded()
		}
		reply := c.callAndWait()
		if c.ctx.Err() != nil {
			break
		}
		callErr := c.callError(reply)
		if callErr != nil {
			c.recordFailure(callErr)
		}
		switch err := c.checkEnded(callErr, reply); {
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
		if !c.timedOut || reply != nil { // after a call that did not return, there is no pause
			sleepContext(c.ctx, min(pause.next(), time.Until(c.giveUpAt())))
		}
		if !time.Now().Before(c.giveUpAt()) {
			return c.giveUp()
		}
	}
	return OutcomeLeftRunning, c.failure
}

// noteKnownEnd returns true if the newest list makes another call unnecessary: it started after the last
// call returned and lacks the containers, or it has a later run with the same ID, which another call would
// stop. A run that was replaced before the first call counts as not found.
func (c *stopCalls) noteKnownEnd() bool {
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

// replacedBy returns the later run with the same ID that the newest list has instead of this run; nil if
// there is none. The caller holds the mutex.
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

// callAndWait makes a call with the remaining grace period as its timeout, and waits for the reply. It
// returns nil if the call has not returned StopTimeoutSlack after its timeout. If the deadline moves
// earlier, it makes a concurrent second call with a shorter timeout.
func (c *stopCalls) callAndWait() *stopReply {
	c.makeCall(c.timeout())
	for {
		select {
		case a := <-c.replies:
			if a.isSuccess() || a.number == c.made {
				c.setReported(a)
				return &a
			}
			c.recordFailure(c.callError(&a)) // the newer call decides
		case <-c.deadlineMoved:
			if seconds := c.timeout(); time.Now().Add(graceperiod.Duration(seconds)).Before(c.killAt) {
				c.makeCall(seconds)
			}
		case <-times.After(c.returnBy()):
			c.timedOut = true
			c.slack = 2 * min(c.slack, math.MaxInt64/2) // do not pile up calls in a runtime that hangs
			return nil
		case <-c.ctx.Done():
			return nil
		}
	}
}

// timeout returns the next call's timeout in seconds.
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
		// There is no second call. Wait for the error of a client that gives up GiveUpAfter past the timeout, as the kubelet's does.
		return c.killAt.Add(c.pod.terminator.opts.GiveUpAfter).Add(c.slack)
	}
	return times.Earlier(c.killAt.Add(c.slack), c.giveUpAt())
}

// giveUpAt returns the time at which the containers are given up: GiveUpAfter past the deadline, or past
// the first call if that was later.
func (c *stopCalls) giveUpAt() time.Time {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	return times.Later(c.deadline.end, c.firstCallAt).Add(c.pod.terminator.opts.GiveUpAfter)
}

// makeCall makes a call in another goroutine, which sends the reply.
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

// killAt returns the time at which the call's timeout ends, and the runtime kills.
func (a stopReply) killAt() time.Time { return a.at.Add(graceperiod.Duration(a.seconds)) }

// isSuccess reports whether the runtime replied that the container has ended.
func (a stopReply) isSuccess() bool {
	return a.err == nil || errors.Is(a.err, ErrKilled) || errors.Is(a.err, ErrContainerNotFound)
}

// setReported derives the outcome from a successful reply. A call that took as long as its timeout
// counts as a kill, even without ErrKilled.
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

// callError returns the error of a call. reply is nil if the call did not return.
func (c *stopCalls) callError(reply *stopReply) error {
	switch {
	case reply == nil:
		return fmt.Errorf("%s has not returned after %v", c.method(), time.Since(c.firstCallAt))
	case !reply.isSuccess():
		return fmt.Errorf("%s with timeout %d failed: %w", c.method(), reply.seconds, reply.err)
	default:
		return nil
	}
}

// checkEnded returns nil if the containers have ended, else why they may still run. With trustSuccess
// the call's error decides; otherwise a list that starts after the call returned. reply is nil if the
// call did not return.
func (c *stopCalls) checkEnded(callErr error, reply *stopReply) error {
	c.pod.mu.Lock()
	c.listsAtReturn = c.pod.lists.started
	if !slices.ContainsFunc(c.runs, func(s *stop) bool { return !s.options.trustSuccess }) {
		c.pod.mu.Unlock()
		return callErr
	}
	l := c.pod.requestList(c.ctx, c.apiPod)
	c.pod.mu.Unlock()
	if err := l.wait(c.ctx); err != nil {
		return fmt.Errorf("%s returned, but the runtime cannot list the pod's containers: %w", c.method(), err)
	}
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	for _, s := range c.runs {
		if s.listedBy >= l.number {
			if c.reported != OutcomeGraceExceeded {
				c.reported = "" // the call reported an end that is not true
			}
			if reply != nil && errors.Is(reply.err, ErrContainerNotFound) {
				return fmt.Errorf("%s returned %q, but the runtime still lists the container", c.method(), reply.err.Error()) // not wrapped: that would be a success
			}
			return s.errStillListed()
		}
	}
	return nil
}

// outcomeOfEnded returns the outcome of containers that have ended. If no call has reported it, the
// time decides.
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

// logStopped logs the end of a container after earlier failures.
func (c *stopCalls) logStopped(outcome Outcome) {
	c.pod.mu.Lock()
	later := c.replacedBy()
	c.pod.mu.Unlock()
	if later == nil {
		c.logger().Info("Stopped container after earlier failures", "outcome", outcome, "failures", c.failures)
		return
	}
	c.logger().Info("Container counts as stopped, because the runtime lists a later run with its ID and another Began",
		"began", time.Unix(0, c.run.began), "laterBegan", later.Began, "failures", c.failures)
}

// recordFailure keeps a failure. It logs the first one, and records an event for it unless another
// container of the pod is already failing or the caller retries itself.
func (c *stopCalls) recordFailure(err error) {
	c.failure = err
	if c.failures++; c.failures > 1 {
		return
	}
	c.logger().Error(err, "Failed to stop container", "tryAgain", !c.options.oneAttempt)
	if !c.options.oneAttempt && c.pod.isFirstToFail(c.stop) {
		c.record(c.apiPod, v1.EventTypeWarning, "FailedKillPod", fmt.Sprintf("error killing pod: %v", err))
	}
}

// giveUp returns the outcome of containers that have not ended. With OneAttempt the next request starts
// a new grace period, as in the kubelet, unless the call has not returned.
func (c *stopCalls) giveUp() (Outcome, error) {
	if !c.options.oneAttempt {
		c.logger().Error(c.failure, "Gave up stopping container", "failures", c.failures)
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
