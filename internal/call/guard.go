package call

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// PanicError is the error of a call that did not return: it panicked, or it ended its goroutine
// with runtime.Goexit, as FailNow of a test does.
type PanicError struct {
	Call  string // the name of what was called
	Value any    // the value of the panic; nil: the goroutine was ended
}

// Error names the call and the value of its panic.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return e.Call + " ended its goroutine"
	}
	return fmt.Sprintf("%s panicked: %v", e.Call, e.Value)
}

// Guard calls f and then end, once, with the error of f. A panic is logged with its stack and
// becomes a [PanicError]. Guard calls end after a runtime.Goexit too; the goroutine ends then,
// which cannot be prevented.
func Guard(ctx context.Context, name string, f func() error, end func(error)) {
	GuardAbout(ctx, name, nil, nil, f, end)
}

// GuardAbout is [Guard] with more to log of a panic: the keys and values of about, nil for none. before is
// the error of the call before, nil for none: the same panic is not logged again.
func GuardAbout(ctx context.Context, name string, before error, about func() []any, f func() error, end func(error)) {
	guard(name, f, func(err error) {
		if was := (*PanicError)(nil); errors.As(before, &was) && was.Error() == err.Error() {
			return
		}
		logger := klog.FromContext(ctx)
		if about != nil {
			logger = logger.WithValues(about()...)
		}
		logPanic(logger, name, err)
	}, end)
}

// guard calls f, passes a panic to panicked before the stack is unwound, and then calls end.
func guard(name string, f func() error, panicked, end func(error)) {
	err := error(&PanicError{Call: name}) // stays if f calls runtime.Goexit
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Call: name, Value: value}
			panicked(err)
		}
		end(err)
	}()
	err = f()
}

func logPanic(logger klog.Logger, name string, err error) {
	logger.Error(err, "Recovered from a panic", "call", name, "stack", string(debug.Stack()))
}

// Recover turns a panic into an error, stores it in err, and logs it with its stack. Defer it
// directly. It is for callers to whom [Guard] is too slow.
func Recover(ctx context.Context, name fmt.Stringer, err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Call: name.String(), Value: value}
		klog.FromContext(ctx).Error(*err, "Recovered from a panic", "call", name.String(), "stack", string(debug.Stack()))
	}
}
