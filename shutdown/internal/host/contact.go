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
	// hangTime is how long a call of the source may take before its context ends.
	hangTime = 10 * time.Second
	// giveUpTime is how long a call may go on after its context has ended.
	giveUpTime = time.Second
	// answerTimeout is how long the first attempt to take the lock waits for the answer of a call
	// that has hangTime.
	answerTimeout = 2 * time.Second
	// delayTimeout is how long RequestDelay may take: logind needs up to three seconds if it has
	// to be reloaded.
	delayTimeout = 5 * time.Second
)

// errHangs is wrapped by the error of a call that was given up.
var errHangs = errors.New("does not return")

// contact makes the calls of the source, and knows how the attempts to take the lock go.
type contact struct {
	listener Listener
	calls    *call.Group
	hanging  atomic.Int64 // the calls that were given up and have not returned
	told     atomic.Bool  // HostTried was called
	reached  atomic.Bool  // a session has answered Pending or sent an event
	wentWell atomic.Bool  // a session has done what it should since this was reset

	mu   sync.Mutex // guards all below
	err  error      // of the last attempt; nil: it went well
	lost error      // why the last session ended, or did not begin
}

// ask calls a method of the source. The call's context ends with ctx or after bound. A second later
// the call is given up: the error wraps errHangs then, and a lock or a session that comes after all
// is closed. The method is not called at all if ctx has ended.
func ask[T any](ctx context.Context, c *contact, method string, bound time.Duration, f func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
	answerTime := bound
	if bound == hangTime {
		answerTime = answerTimeout
	}
	slow := time.After(answerTime)
	ctx, cancel := context.WithTimeout(ctx, bound)
	defer cancel()
	name := "Options.Source: " + method
	var settled atomic.Bool // set by the end of the call or by that of the wait, whichever is first
	answer := call.Start(ctx, c.calls, name, func(ctx context.Context) (value T, err error) {
		defer func() {
			if settled.CompareAndSwap(false, true) {
				return
			}
			c.hanging.Add(-1)
			if late, ok := any(value).(io.Closer); ok && err == nil {
				if err := late.Close(); err != nil {
					klog.FromContext(ctx).Error(err, "Failed to close what the host gave too late")
				}
			}
		}()
		return f(ctx)
	})
	over, giveUp := ctx.Done(), (<-chan time.Time)(nil)
	for waits := true; waits; {
		select {
		case <-answer.Done():
			waits = false
		case <-slow:
			c.takesTooLong()
		case <-over:
			over, giveUp = nil, time.After(giveUpTime)
		case <-giveUp:
			waits = false
		}
	}
	if settled.CompareAndSwap(false, true) {
		c.hanging.Add(1)
		return none, fmt.Errorf("%s %w", name, errHangs)
	}
	return answer.Wait(context.WithoutCancel(ctx)) // it has returned
}

// takesTooLong ends the first attempt, because a call takes too long.
func (c *contact) takesTooLong() {
	if !c.told.Load() {
		c.record(func() {
			if c.err == nil {
				c.err = errors.New("the host does not answer")
			}
		})
	}
}

// set records how an attempt went. unmet is why the host waits for too little, which is no failure
// of the attempt.
func (c *contact) set(failed, unmet error) {
	if failed == nil {
		c.wentWell.Store(true)
	}
	c.record(func() { c.err = errors.Join(failed, unmet) })
}

// lose records why a session ended or did not begin.
func (c *contact) lose(err error) { c.record(func() { c.err, c.lost = err, err }) }

// record records the result of an attempt, which ends the first one.
func (c *contact) record(result func()) {
	c.mu.Lock()
	result()
	c.mu.Unlock()
	if c.told.CompareAndSwap(false, true) {
		c.listener.HostTried()
	}
}

// shown returns the error for the status. If the lock may be lost, it is at least that of the
// session that was lost.
func (c *contact) shown(inDoubt bool) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.err == nil && inDoubt {
		return c.lost
	}
	return c.err
}
