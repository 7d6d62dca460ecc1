package virtualkubelet

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
)

// caller calls the embedder's code for one pod, or for all pods. It logs calls that hang, panic or fail. A failure that
// lasts is logged once, not at each attempt.
type caller struct {
	name  types.NamespacedName // of the pod; empty: the calls are about all pods
	calls *call.Group          // Provider.calls

	failuresMutex sync.Mutex
	failures      map[string]failure // by the name of the call
}

// failure is what is known of a call that has failed since its last success.
type failure struct {
	err   error // of the last attempt
	count int
}

// watchCall makes a hanging call visible: it is logged 5 s after the limit, and the error of Close names it for as long as it
// hangs. The caller must call the result, returned, when the call has returned.
func (c *caller) watchCall(ctx context.Context, callName string, limit time.Duration) (returned func()) {
	leave := c.calls.Enter(func() string {
		if c.name.Name == "" {
			return "a call of " + callName
		}
		return callName + " of " + c.name.String()
	})
	stop := call.Watch(ctx, callName, limit, "pod", c.name)
	return func() {
		stop()
		leave()
	}
}

// callGuarded calls f and logs its result (logResult). A panic becomes the error, so that it does not end the process. A call
// that has not returned 5 s after the limit is logged too, but not ended (watchCall).
func (c *caller) callGuarded(ctx context.Context, callName string, limit time.Duration, f func() error) (err error) {
	returned := c.watchCall(ctx, callName, limit)
	defer returned()
	about := func() []any { return []any{"pod", c.name} } // keys and values of the log line about a panic
	call.GuardRepeated(ctx, callName, c.lastError(callName), about, f, func(result error) { err = result })
	c.logResult(ctx, callName, err)
	return err
}

// callWithin calls f with a context that ends at the limit. Like callGuarded, it turns a panic into the error, logs the
// result, and logs a call that has not returned 5 s after the limit. If f fails after the limit, the error says that f has
// not returned in time, unless it is an ErrInvalidInput, which does not come from the timeout.
func (c *caller) callWithin(ctx context.Context, callName string, limit time.Duration, f func(context.Context) error) error {
	return c.callGuarded(ctx, callName, limit, func() error {
		bounded, cancel := context.WithTimeout(ctx, limit)
		defer cancel()
		err := f(bounded)
		hasTimedOut := bounded.Err() != nil && ctx.Err() == nil
		if err != nil && hasTimedOut && !errdefs.IsInvalidInput(err) {
			err = fmt.Errorf("%s has not returned within %v: %w", callName, limit, err)
		}
		return err
	})
}

// callSafely calls f, and returns an error if f panics. f must not block: a call that takes 5 s is logged.
func (c *caller) callSafely(ctx context.Context, callName string, f func()) error {
	const limit = 0 // f should return at once
	return c.callGuarded(ctx, callName, limit, func() error {
		f()
		return nil
	})
}

// lastError returns the error of the last call with this name; nil if that call succeeded or there was none.
func (c *caller) lastError(callName string) error {
	c.failuresMutex.Lock()
	defer c.failuresMutex.Unlock()
	return c.failures[callName].err
}

// logResult logs an error that differs from the one of the previous call with this name, and the first success after
// failures. It does not log a failure after the end of ctx.
func (c *caller) logResult(ctx context.Context, callName string, err error) {
	c.failuresMutex.Lock()
	previous := c.failures[callName]
	if err == nil {
		delete(c.failures, callName)
	} else {
		if c.failures == nil { // most calls never fail and need no map
			c.failures = map[string]failure{}
		}
		c.failures[callName] = failure{err, previous.count + 1}
	}
	c.failuresMutex.Unlock()
	isNews := err != nil && (previous.err == nil || previous.err.Error() != err.Error())
	logger := klog.FromContext(ctx).WithValues("pod", c.name, "call", callName)
	switch {
	case isNews && ctx.Err() == nil:
		logger.Error(err, "A call has failed")
	case err == nil && previous.err != nil:
		logger.Info("A call has succeeded after earlier failures", "failures", previous.count)
	}
}
