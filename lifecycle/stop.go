package lifecycle

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/graceperiod"
)

// How long it takes until a StopContainer that has failed is asked for again.
const (
	firstRetry   = 100 * time.Millisecond
	slowestRetry = time.Second
)

// stop asks the runtime to end one container, until it has, or is given up. It is
// used by one goroutine.
type stop struct {
	container *container
	began     time.Time
	answers   chan answer
	calls     []*stopCall   // that are counted on: not answered, and not silent
	patience  time.Duration // how long past its timeout the next call may be silent
	retry     time.Duration // how long after the next failure
	due       time.Time     // when the next call may be made
	deadline  deadline      // that the calls were made for
	stale     bool          // they may not be enough
	silent    bool          // one was silent
	forced    bool          // one had a timeout of 0
	failures  int
	err       error // the last one
}

// stopCall is one StopContainer.
type stopCall struct {
	timeout  int64
	killAt   time.Time // when the runtime is to have killed the container
	silentAt time.Time // when it is counted on no longer
}

// answer is what came of one.
type answer struct {
	call *stopCall
	err  error
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

// stop stops a container.
func (c *container) stop() (Outcome, error) {
	if c.isLeft() {
		return LeftRunning, nil
	}
	s := &stop{
		container: c, began: time.Now(), answers: make(chan answer),
		patience: c.table.terminator.opts.StopSlack, retry: firstRetry, stale: true,
	}
	c.setPhase(PhaseStopping)
	outcome := s.run()
	s.settle(outcome)
	if s.failures > 1 {
		s.err = fmt.Errorf("%w (the last of %d failures)", s.err, s.failures)
	}
	return outcome, s.err
}

// run goes on until the container has an outcome: whenever something has happened it
// sees to it that the calls which are counted on kill the container in time.
func (s *stop) run() (outcome Outcome) {
	c := s.container
	wake := time.NewTimer(0)
	defer wake.Stop()
	for outcome == "" {
		d, changed := c.watch()
		if outcome = s.proceed(d); outcome != "" {
			break
		}
		wake.Reset(time.Until(s.next()))
		select {
		case a := <-s.answers:
			outcome = s.answered(a)
		case <-changed:
		case <-wake.C:
		case <-c.life.Done():
			outcome = LeftRunning
		}
	}
	return outcome
}

// proceed asks the runtime if what was asked of it is not enough, and gives up.
func (s *stop) proceed(d deadline) Outcome {
	now := time.Now()
	s.stale = s.stale || d != s.deadline
	s.deadline = d
	for _, call := range s.calls {
		if !now.Before(call.silentAt) {
			s.silent = true
			s.patience = 2 * min(s.patience, math.MaxInt64/2) // a deaf runtime is not buried under calls
			s.fail(call, fmt.Errorf("StopContainer was silent for %v", now.Sub(s.began)))
			break
		}
	}
	if !now.Before(s.giveUpAt()) {
		if s.err == nil {
			s.fail(nil, fmt.Errorf("StopContainer was silent for %v", now.Sub(s.began)))
		}
		return RuntimeStuck
	}
	if s.stale && !now.Before(s.due) {
		s.stale = false
		s.ask(now)
	}
	return ""
}

// ask calls StopContainer, beside those calls that have not been answered, unless one
// of them kills the container in time.
func (s *stop) ask(now time.Time) {
	seconds := s.deadline.left()
	if s.silent {
		seconds = 0
	}
	killAt := now.Add(graceperiod.Duration(seconds))
	if slices.ContainsFunc(s.calls, func(c *stopCall) bool { return !killAt.Before(c.killAt) }) {
		return
	}
	call := &stopCall{timeout: seconds, killAt: killAt, silentAt: killAt.Add(s.patience)}
	s.calls = append(s.calls, call)
	s.forced = s.forced || seconds == 0
	ctx, id, runtime := s.container.life, s.container.snapshot().ID, s.container.table.terminator.opts.Runtime
	s.container.spawn(ctx, "runtime", func() error {
		return runtime.StopContainer(ctx, id, seconds)
	}, func(err error) {
		select {
		case s.answers <- answer{call: call, err: err}:
		case <-ctx.Done():
		}
	})
}

// answered takes the answer of a call: the first success ends all of them, a failure
// is followed by another call. The runtime does not say whether it had to kill, but it
// does so when its timeout is over: a stop that lasted that long is taken for a kill.
func (s *stop) answered(a answer) Outcome {
	killAt := a.call.killAt
	for _, call := range s.calls {
		killAt = earlier(killAt, call.killAt)
	}
	switch {
	case a.err == nil && s.forced:
		return Forced
	case a.err == nil && time.Now().Before(killAt):
		return Graceful
	case a.err == nil:
		s.container.table.terminator.opts.Metrics.ContainerKilledAfterGrace()
		return GraceExceeded
	case errors.Is(a.err, ErrContainerNotFound):
		return NotFound
	case s.container.isLeft():
		return LeftRunning
	}
	s.due = time.Now().Add(s.retry)
	s.retry = min(2*s.retry, slowestRetry)
	s.fail(a.call, fmt.Errorf("StopContainer with timeout %d failed: %w", a.call.timeout, a.err))
	return ""
}

// next is when there is something to do if nothing is heard until then.
func (s *stop) next() time.Time {
	next := s.giveUpAt()
	if s.stale {
		next = earlier(next, s.due)
	}
	for _, call := range s.calls {
		next = earlier(next, call.silentAt)
	}
	return next
}

// giveUpAt is when the container cannot be helped. One that is asked for again long
// after its deadline has as much time.
func (s *stop) giveUpAt() time.Time {
	from := s.deadline.at()
	if from.Before(s.began) {
		from = s.began
	}
	return from.Add(s.container.table.terminator.opts.GiveUp)
}

// earlier gives the earlier of two moments.
func earlier(a, b time.Time) time.Time {
	if b.Before(a) {
		return b
	}
	return a
}

// fail lets go of a call that has failed, and makes the first failure known: one log
// line for each container, one event for all of the pod that fail at the same time.
func (s *stop) fail(call *stopCall, err error) {
	s.calls = slices.DeleteFunc(s.calls, func(c *stopCall) bool { return c == call })
	s.stale, s.err = true, err
	s.failures++
	if s.failures > 1 {
		return
	}
	c := s.container
	c.logger().Error(err, "Failed to stop a container, trying again")
	c.table.mu.Lock()
	c.table.failing++
	first := c.table.failing == 1
	c.table.mu.Unlock()
	if first {
		c.recordFailedKill(err)
	}
}

// settle makes the end known of what has failed.
func (s *stop) settle(outcome Outcome) {
	c := s.container
	c.table.mu.Lock()
	c.result.Stopping = time.Since(s.began)
	if s.failures > 0 {
		c.table.failing--
	}
	c.table.mu.Unlock()
	switch {
	case outcome == RuntimeStuck:
		c.logger().Error(s.err, "Gave up stopping a container", "failures", s.failures)
	case s.failures > 0 && outcome != LeftRunning:
		c.logger().Info("A container is stopped after all", "outcome", outcome, "failures", s.failures)
	}
}

// logger names the container in each line.
func (c *container) logger() klog.Logger {
	return klog.FromContext(c.life).WithValues("pod", klog.KObj(c.pod), "containerName", c.result.Name, "containerID", c.snapshot().ID)
}
