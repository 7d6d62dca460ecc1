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

// stopCalls calls StopContainer for a container, or StopPod for the containers of a podStop, until they have ended or
// GiveUpAfter has passed. Below, "call" means either. Only the stop's goroutine uses it.
type stopCalls struct {
	*containerStop // the container, or the member of the podStop that makes the calls; its deadline applies

	targets []*containerStop                               // the containers that a call stops
	call    func(ctx context.Context, seconds int64) error // StopContainer or StopPod
	replies chan *stopCall                                 // calls that have returned, in the order of their returns
	callCtx context.Context                                // ends when nobody waits for replies any more

	made         []*stopCall   // the calls so far
	deadlineSeen deadline      // the container's deadline when timeout last read it
	slack        time.Duration // how long after the end of its timeout a call may return
	timedOut     bool          // a call did not return in time; later calls have timeout 0
	failures     int
	failure      error // the newest one
	// lastListBeforeReturn is the number of the newest list that had begun when the newest call returned or timed out. A
	// list with a higher number shows what the call has achieved.
	lastListBeforeReturn int
}

// stopCall is one call of StopContainer or StopPod.
type stopCall struct {
	seconds    int64 // the timeout
	madeAt     time.Time
	killAt     time.Time // when the timeout ends, and the runtime kills
	returnedAt time.Time // this and err are set before the call is sent to stopCalls.replies
	err        error
	hasFailed  bool // it was received from stopCalls.replies, and is no success
}

var errNoTimeLeft = errors.New("killed at once, because the deadline had passed before StopContainer was called")

// stopUntilEnded repeats the call until the containers have ended or are given up, and returns their outcome:
//
//   - once they have ended, outcomeOfEnded;
//   - OutcomeRuntimeStuck, once they are given up (giveUpAt) or the only call of a OneAttempt request was in vain;
//   - OutcomeLeftRunning, if the terminator is closed.
//
// The error is the newest failure, even if a later call succeeded.
func (c *stopCalls) stopUntilEnded() (Outcome, error) {
	ctx, cancel := context.WithCancelCause(c.ctx)
	// This cancel ends the calls that are still in progress. If Close has ended c.ctx, they must see the cause of c.ctx, even if
	// its end has not reached ctx yet.
	defer func() { cancel(context.Cause(c.ctx)) }()
	c.replies, c.callCtx = make(chan *stopCall), ctx
	c.slack = c.pod.terminator.opts.StopTimeoutSlack
	c.setFirstCall()
	for pause := backoff(0); c.ctx.Err() == nil; {
		if c.newestListShowsEnd() {
			return c.outcomeOfEnded()
		}
		ended, returned := c.callOnce()
		switch {
		case ended:
			return c.outcomeOfEnded()
		case c.ctx.Err() != nil:
			return OutcomeLeftRunning, c.failure
		case c.options.oneAttempt:
			return c.giveUp()
		case returned: // pause before the next call; if the call has not returned, the wait for it was pause enough
			_ = times.Sleep(c.ctx, min(pause.next(), time.Until(c.giveUpAt())))
		}
		if !time.Now().Before(c.giveUpAt()) {
			return c.giveUp()
		}
	}
	return OutcomeLeftRunning, c.failure
}

// setFirstCall notes that the first call is made now. Later calls do not change that time: GiveUpAfter may count from it.
func (c *stopCalls) setFirstCall() {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	for _, s := range c.targets {
		if s.firstCallAt.IsZero() {
			s.firstCallAt = time.Now()
		}
	}
}

// callOnce makes a call, and then checks with a list whether the containers have ended. Unless the terminator was closed,
// it records why they may still run. returned is false if the call has not returned in time.
func (c *stopCalls) callOnce() (ended, returned bool) {
	reply := c.callAndWait()
	if c.ctx.Err() != nil { // the terminator was closed
		return false, false
	}
	callErr := c.callError(reply)
	if callErr != nil {
		c.recordFailure(callErr)
	}
	notEndedErr := c.checkEnded(callErr, reply)
	wasInVain := callErr == nil && notEndedErr != nil // the call succeeded, but the container may still run
	if wasInVain && c.ctx.Err() == nil {
		c.recordFailure(notEndedErr)
	}
	return notEndedErr == nil, reply != nil
}

// newestListShowsEnd reports whether the newest list shows that the containers have ended, so that no further call is
// needed. There are two cases:
//
//   - The list began after the last call had returned, and has none of the containers. This is no proof for a container
//     with trustSuccess: its runtime cannot list, or the caller named it without a list.
//   - The list has a later run with the same ID. The next call, which has only the ID, would stop that run by mistake.
func (c *stopCalls) newestListShowsEnd() bool {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	newest := c.pod.lists.newestNumber
	isNewerThanCalls := len(c.made) > 0 && newest > c.lastListBeforeReturn
	mayRun := func(s *containerStop) bool { return s.options.trustSuccess || s.lastListedIn == newest }
	if isNewerThanCalls && !slices.ContainsFunc(c.targets, mayRun) {
		return true
	}
	return c.replacedBy() != nil
}

// callAndWait makes a call with the remaining grace period as its timeout, and returns the reply. If the
// deadline moves earlier while it waits, it makes a second call with a shorter timeout. It returns the first reply
// that is a success, else that of the newest call. The result is nil if no such reply came by returnBy, or if
// the terminator was closed.
func (c *stopCalls) callAndWait() *stopCall {
	c.makeCall(c.timeout())
	for {
		changed, hasDeadlineMoved := c.watchDeadline()
		if hasDeadlineMoved {
			c.callIfKillsEarlier()
		}
		select {
		case reply := <-c.replies:
			c.setReported(reply)
			if reply.isSuccess() || reply == c.newest() {
				return reply
			}
			c.recordFailure(c.callError(reply)) // of an earlier call; the newest one may still succeed
		case <-changed: // perhaps the deadline has moved
		case <-times.After(c.returnBy()):
			c.timedOut = true
			// Double the slack of the next call, so that calls do not pile up in a runtime that hangs.
			c.slack = 2 * min(c.slack, math.MaxInt64/2) // min: no overflow
			return nil
		case <-c.ctx.Done():
			return nil
		}
	}
}

// callIfKillsEarlier makes a call with the remaining grace period, if the runtime then kills earlier than by the newest call.
func (c *stopCalls) callIfKillsEarlier() {
	seconds := c.timeout()
	killAt := time.Now().Add(graceperiod.Duration(seconds))
	if killAt.Before(c.newest().killAt) {
		c.makeCall(seconds)
	}
}

// newest returns the call that was made last. There must be one.
func (c *stopCalls) newest() *stopCall { return c.made[len(c.made)-1] }

// watchDeadline returns a channel that is closed at the next change of the pod, and whether the deadline has moved since
// timeout last read it. It locks the mutex.
func (c *stopCalls) watchDeadline() (changed <-chan struct{}, hasMoved bool) {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	return c.pod.nextChange(), c.deadline != c.deadlineSeen
}

// timeout reads the deadline, and returns the timeout in seconds for a StopContainer or StopPod call that is made now:
// the rest of the grace period, or 0 (kill at once) if an earlier call did not return in time. It locks the mutex.
func (c *stopCalls) timeout() int64 {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	c.deadlineSeen = c.deadline
	if c.timedOut {
		return 0
	}
	return c.deadline.stopTimeout()
}

// returnBy returns the end of the wait for the newest call: slack past the end of the call's timeout (killAt), but not later
// than the time at which the containers are given up. slack is StopTimeoutSlack at first, and doubles after each call that has
// not returned in time. With OneAttempt the wait ends GiveUpAfter and slack past killAt, without that limit.
func (c *stopCalls) returnBy() time.Time {
	killAt := c.newest().killAt
	if c.options.oneAttempt {
		// The call is not repeated if it fails. Wait until it has had time to return its error: a client like the kubelet's
		// gives a call up only GiveUpAfter past the call's timeout.
		return killAt.Add(c.pod.terminator.opts.GiveUpAfter).Add(c.slack)
	}
	return times.Earlier(killAt.Add(c.slack), c.giveUpAt())
}

// giveUpAt returns the time at which the containers are given up: GiveUpAfter past the deadline, or past
// the first call if that was later. It locks the mutex.
func (c *stopCalls) giveUpAt() time.Time {
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	return times.Later(c.deadline.end, c.firstCallAt).Add(c.pod.terminator.opts.GiveUpAfter)
}

// makeCall makes a call with a timeout of seconds in another goroutine, which sends the reply. It does not
// wait, so that a runtime that hangs does not hang the stop.
func (c *stopCalls) makeCall(seconds int64) {
	now := time.Now()
	made := &stopCall{seconds: seconds, madeAt: now, killAt: now.Add(graceperiod.Duration(seconds))}
	c.made = append(c.made, made)
	call, ctx := c.call, c.callCtx
	do := func() error { return call(ctx, seconds) }
	returned := func(err error) {
		made.err, made.returnedAt = err, time.Now()
		select {
		case c.replies <- made:
		case <-ctx.Done(): // nobody waits for it
		}
	}
	c.pod.spawn(agentCall{
		ctx: ctx, name: c.method(), apiPod: c.apiPod, container: c.container.Name, do: do, returned: returned, previousErr: c.failure,
	})
}

// isSuccess reports whether the runtime replied that the container has ended. ErrContainerNotFound says
// so too.
func (call *stopCall) isSuccess() bool {
	return call.err == nil || errors.Is(call.err, ErrContainerNotFound)
}

// isForced reports whether a call had timeout 0, so that the runtime killed the container at once.
func (c *stopCalls) isForced() bool {
	return slices.ContainsFunc(c.made, func(call *stopCall) bool { return call.seconds == 0 })
}

// earliestKill returns the earliest time at which the runtime kills the container: the end of the timeout of the newest call,
// or of an earlier call that has not failed. A failed call is assumed to kill nothing.
func (c *stopCalls) earliestKill() time.Time {
	earliest := c.newest().killAt
	for _, call := range c.made {
		if !call.hasFailed {
			earliest = times.Earlier(earliest, call.killAt)
		}
	}
	return earliest
}

// setReported updates c.reported, the outcome so far, when a call has returned. A failed call changes nothing. After a
// successful one the outcome is
//
//   - Forced, if any call had timeout 0;
//   - GraceExceeded, if this call or an earlier successful one returned when the runtime had already killed the container
//     (earliestKill);
//   - Graceful otherwise.
//
// ErrContainerNotFound is a success too, but it only says that the container is gone. The outcome is then NotFound, unless
// an earlier call has reported that it stopped the container.
func (c *stopCalls) setReported(reply *stopCall) {
	reply.hasFailed = !reply.isSuccess()
	returnedAfterKill := !reply.returnedAt.Before(c.earliestKill())
	wasKilled := returnedAfterKill || c.reported == OutcomeGraceExceeded
	switch {
	case reply.hasFailed: // nothing is reported
	case errors.Is(reply.err, ErrContainerNotFound):
		if c.reported == "" { // else it is gone because an earlier call stopped it
			c.reported = OutcomeNotFound
		}
	case c.isForced() || c.reported == OutcomeForced:
		c.reported = OutcomeForced
	case wasKilled:
		c.reported = OutcomeGraceExceeded
	default:
		c.reported = OutcomeGraceful
	}
}

// callError returns the error that describes a failed call; nil if the call succeeded. reply is nil if the
// call did not return.
func (c *stopCalls) callError(reply *stopCall) error {
	switch {
	case reply == nil:
		return fmt.Errorf("%s with timeout %d has not returned after %v", c.method(), c.newest().seconds, time.Since(c.newest().madeAt))
	case !reply.isSuccess():
		return fmt.Errorf("%s with timeout %d failed: %w", c.method(), reply.seconds, reply.err)
	default:
		return nil
	}
}

// checkEnded returns nil if the containers have ended, else why they may still run. It checks with a new list, because
// a runtime may return from a call too early. If a successful call is proof for all containers (trustSuccess), it
// requests no list: callErr, the call's error, decides. reply is nil if the call did not return.
func (c *stopCalls) checkEnded(callErr error, reply *stopCall) error {
	c.pod.mu.Lock()
	c.lastListBeforeReturn = c.pod.lists.started // later lists show what the call has achieved
	needsList := slices.ContainsFunc(c.targets, func(s *containerStop) bool { return !s.options.trustSuccess })
	if !needsList {
		c.pod.mu.Unlock()
		return callErr
	}
	list := c.pod.requestList(c.ctx, c.apiPod)
	c.pod.mu.Unlock()
	if err := list.wait(c.ctx); err != nil {
		return fmt.Errorf("%s returned, but the runtime cannot list the pod's containers: %w", c.method(), err)
	}
	c.pod.mu.Lock()
	defer c.pod.mu.Unlock()
	isListed := func(s *containerStop) bool { return s.lastListedIn >= list.number }
	if !slices.ContainsFunc(c.targets, isListed) {
		return nil
	}
	if c.reported != OutcomeGraceExceeded { // kept: the container was killed, even if it has not ended yet
		c.reported = "" // the call has not ended the container
	}
	if reply != nil && errors.Is(reply.err, ErrContainerNotFound) { // only quoted: an error that wraps it would be a success
		return fmt.Errorf("%s returned %q, but the runtime still lists the container", c.method(), reply.err.Error())
	}
	return fmt.Errorf("%s returned, but the runtime still lists the container", c.method())
}

// outcomeOfEnded returns the outcome of containers that have ended: the one that the calls have reported, else impliedOutcome.
// The error is the newest failure; for a forced kill without a failure, errNoTimeLeft.
func (c *stopCalls) outcomeOfEnded() (Outcome, error) {
	c.readReplies()
	outcome := c.reported
	if outcome == "" {
		outcome = c.impliedOutcome()
	}
	if outcome == OutcomeForced && c.failure == nil {
		c.failure = errNoTimeLeft
	}
	if c.failures > 0 {
		c.logStopped(outcome)
	}
	return outcome, c.lastFailure()
}

// impliedOutcome returns the outcome when a list shows that the containers have ended, but no call has reported it.
func (c *stopCalls) impliedOutcome() Outcome {
	switch {
	case len(c.made) == 0: // the runtime had restarted the container before the first call (newestListShowsEnd)
		return OutcomeNotFound
	case c.isForced():
		return OutcomeForced
	case time.Now().Before(c.earliestKill()): // no call's timeout has ended
		return OutcomeGraceful
	default:
		return OutcomeGraceExceeded
	}
}

// readReplies reads the replies of calls that returned when nobody waited for them, until one reports the outcome: it
// may say that the runtime has killed the container.
func (c *stopCalls) readReplies() {
	for c.reported == "" {
		select {
		case reply := <-c.replies:
			c.setReported(reply)
		default: // no call has returned since
			return
		}
	}
}

// logStopped logs that a container has ended after failures. The failures were logged, so the log must show their end too.
func (c *stopCalls) logStopped(outcome Outcome) {
	c.pod.mu.Lock()
	laterRun := c.replacedBy()
	c.pod.mu.Unlock()
	if laterRun == nil {
		c.logger().Info("Stopped container after earlier failures", "outcome", outcome, "failures", c.failures)
		return
	}
	c.logger().Info("Container counts as stopped, because the runtime lists a later run with its ID and another Began",
		"began", time.Unix(0, c.run.began), "laterBegan", laterRun.Began, "failures", c.failures)
}

// recordFailure keeps a failure for the result. Only the first one is logged, and recorded as an event. There is no
// event if another container of the pod is failing already, or if the caller retries (OneAttempt).
func (c *stopCalls) recordFailure(err error) {
	c.failure = err
	c.failures++
	if c.failures > 1 {
		return
	}
	c.logger().Error(err, "Failed to stop container", "tryAgain", !c.options.oneAttempt)
	if !c.options.oneAttempt && c.pod.markFailing(c.containerStop) {
		c.record(c.apiPod, v1.EventTypeWarning, "FailedKillPod", fmt.Sprintf("error killing pod: %v", err))
	}
}

// giveUp returns the outcome of containers that have not ended. With OneAttempt it also decides what the next request gets:
// if the only call has returned, a new grace period, as in the kubelet. Otherwise that call may still stop the container, and
// the old deadline stays.
func (c *stopCalls) giveUp() (Outcome, error) {
	switch {
	case !c.options.oneAttempt:
		c.logger().Error(c.failure, "Gave up stopping container", "failures", c.failures)
	case !c.timedOut: // the only call has returned
		c.pod.mu.Lock()
		for _, s := range c.targets {
			s.deadline.end = time.Time{} // begin then takes the deadline of the next request
		}
		c.pod.mu.Unlock()
	}
	return OutcomeRuntimeStuck, c.lastFailure()
}

// lastFailure returns the newest failure, and in its text the number of failures if there were several;
// nil if there was none.
func (c *stopCalls) lastFailure() error {
	if c.failures > 1 {
		return fmt.Errorf("%w (the last of %d failures)", c.failure, c.failures)
	}
	return c.failure
}
