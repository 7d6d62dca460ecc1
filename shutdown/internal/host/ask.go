package host

import (
	"context"
	"errors"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	// hangTime is how long a call of the source may take before its context ends.
	hangTime = 10 * time.Second
	// giveUpTime is how long a call may go on after its context has ended.
	giveUpTime = time.Second
)

// errHangs is wrapped by the error of a call that was given up.
var errHangs = errors.New("does not return")

// caller makes the calls of the source.
type caller struct {
	calls   *call.Group
	hanging atomic.Int64 // the calls that were given up and have not returned
}

// ask calls a method of the source. The call's context ends with ctx or after bound. A second later
// the call is given up: the error wraps errHangs then, and a lock or a session that comes after all
// is closed. The method is not called at all if ctx has ended.
func ask[T any](ctx context.Context, c *caller, method string, bound time.Duration, f func(context.Context) (T, error)) (T, error) {
	var none T
	if ctx.Err() != nil {
		return none, context.Cause(ctx)
	}
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
	select {
	case <-answer.Done():
	case <-ctx.Done():
		select {
		case <-answer.Done():
		case <-time.After(giveUpTime):
		}
	}
	if settled.CompareAndSwap(false, true) {
		c.hanging.Add(1)
		return none, fmt.Errorf("%s %w", name, errHangs)
	}
	return answer.Wait(context.WithoutCancel(ctx)) // it has returned
}
