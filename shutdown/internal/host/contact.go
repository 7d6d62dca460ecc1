package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
)

const (
	// callTimeout is the timeout of the context of most calls.
	callTimeout = 10 * time.Second
	// abandonAfter is how long a call may go on after its context has ended, before it is abandoned.
	abandonAfter = time.Second
	// answerTimeout is how long a call with callTimeout may take before HostTried is called, so that a host
	// that does not answer does not delay the start of the agent. It is also the timeout of short calls.
	answerTimeout = 2 * time.Second
	// delayTimeout is the timeout of RequestDelay: logind needs up to 3 s if it must be reloaded.
	delayTimeout = 5 * time.Second
)

// errHangs is wrapped by the error of an abandoned call.
var errHangs = errors.New("does not return")

// contact calls the methods of the source and records the results.
type contact struct {
	listener        Listener
	calls           *call.Group
	hanging         atomic.Int64 // the number of abandoned calls that have not returned yet
	isTriedReported atomic.Bool  // HostTried was called
	reached         atomic.Bool  // a session has returned from Pending or sent an event
	hasSucceeded    atomic.Bool  // a task has succeeded in the current session

	mu      sync.Mutex // guards all below
	err     error      // of the last attempt; nil: it succeeded
	lostErr error      // why the last session ended or did not begin; nil: there was no session yet
}

// callSource calls f, which calls a method of the source, and returns its result. If ctx has ended already, f is not called.
//
//   - The context of f ends with ctx, or after timeout. If f has not returned a second later, the call is abandoned: the error
//     wraps errHangs, and a lock or session that f returns later is closed.
//   - If f takes longer than timeout, or 2 s if timeout is callTimeout, callSource also calls reportSlow, so that the start of
//     the agent does not wait for the whole callTimeout.
//
// method is the name in errors and in the log.
func callSource[T any](ctx context.Context, c *contact, method string, timeout time.Duration, f func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	slowAfter := timeout
	if timeout == callTimeout {
		slowAfter = answerTimeout
	}
	slow := time.After(slowAfter)
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	name := "Options.Source: " + method
	var isSettled atomic.Bool // set when the call returns or is abandoned, whichever is first
	answer := call.Start(ctx, c.calls, name, func(ctx context.Context) (value T, err error) {
		defer func() {
			if isInTime := isSettled.CompareAndSwap(false, true); !isInTime {
				c.hanging.Add(-1)
				closeLateResult(ctx, value, err)
			}
		}()
		return f(ctx)
	})
	c.waitOrAbandon(ctx, answer.Done(), slow)
	if isAbandoned := isSettled.CompareAndSwap(false, true); isAbandoned {
		c.hanging.Add(1)
		return none, fmt.Errorf("%s %w", name, errHangs)
	}
	return answer.Wait(context.WithoutCancel(ctx)) // does not block
}

// waitOrAbandon waits until a call has returned, or until abandonAfter after the end of its context. If slow fires before
// that, it calls reportSlow.
func (c *contact) waitOrAbandon(ctx context.Context, returned <-chan struct{}, slow <-chan time.Time) {
	ctxDone := ctx.Done()
	var abandon <-chan time.Time // nil until ctx has ended
	for {
		select {
		case <-returned:
			return
		case <-slow:
			c.reportSlow()
		case <-ctxDone:
			ctxDone, abandon = nil, time.After(abandonAfter)
		case <-abandon:
			return
		}
	}
}

// closeLateResult closes a lock or session that an abandoned call has returned after all: nobody uses it.
func closeLateResult(ctx context.Context, value any, err error) {
	if late, ok := value.(io.Closer); ok && err == nil {
		if err := late.Close(); err != nil {
			klog.FromContext(ctx).Error(err, "Failed to close a late result of the host")
		}
	}
}

// reportSlow is called when a call of the source takes long. If that is in the first attempt, it records an error, unless there
// is one already, and calls HostTried: nobody has to wait for a host that hangs.
func (c *contact) reportSlow() {
	if isFirstAttemptOver := c.isTriedReported.Load(); isFirstAttemptOver {
		return
	}
	c.setResult(func() {
		if c.err == nil {
			c.err = errors.New("the host does not answer")
		}
	})
}

// setTaskResult records the result of a task of the session. The task has succeeded if taskErr is nil, even if tooShortErr says
// that the granted delay is too short. Status shows both errors.
func (c *contact) setTaskResult(taskErr, tooShortErr error) {
	if taskErr == nil {
		c.hasSucceeded.Store(true)
	}
	c.setResult(func() { c.err = errors.Join(taskErr, tooShortErr) })
}

// setLost records why a session ended or did not begin.
func (c *contact) setLost(err error) { c.setResult(func() { c.err, c.lostErr = err, err }) }

// setResult records the result of an attempt: it calls record with the mutex held. The first call of setResult also calls
// HostTried.
func (c *contact) setResult(record func()) {
	c.mu.Lock()
	record()
	c.mu.Unlock()
	if c.isTriedReported.CompareAndSwap(false, true) {
		c.listener.HostTried()
	}
}

// statusErr returns Status.Err: the error of the last attempt to connect or to do a task of the session. mayBeLost says that the
// held lock may have been lost with a session. If the attempt has succeeded nevertheless, statusErr returns why the last session
// ended or did not begin.
func (c *contact) statusErr(mayBeLost bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && mayBeLost {
		return c.lostErr
	}
	return c.err
}
