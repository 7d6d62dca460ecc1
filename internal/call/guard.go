package call

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// PanicError is the error of a call that panicked, or ended its goroutine with runtime.Goexit, as
// testing's FailNow does.
type PanicError struct {
	Call  string // the name of the call
	Value any    // the value of the panic; nil: runtime.Goexit
}

// Error returns the name of the call with the value of its panic, or says that the call ended its goroutine
// (runtime.Goexit).
func (e *PanicError) Error() string {
	if e.Value == nil {
		return e.Call + " ended its goroutine"
	}
	return fmt.Sprintf("%s panicked: %v", e.Call, e.Value)
}

// Guard calls f, and then end once with the error of f. It logs a panic with its stack and converts it
// to a [PanicError]. It also calls end after a runtime.Goexit, which then ends the goroutine.
func Guard(ctx context.Context, name string, f func() error, end func(error)) {
	guard(name, f, func(err error) { logPanic(klog.FromContext(ctx), name, err) }, end)
}

// GuardRepeated calls f and then end, as [Guard] does. previousErr is the error of the previous call, or nil: if both calls panic
// with the same value, only the first panic is logged. about returns more keys and values for that line; nil: there are none.
func GuardRepeated(ctx context.Context, name string, previousErr error, about func() []any, f func() error, end func(error)) {
	guard(name, f, func(err error) {
		var previousPanic *PanicError
		isRepeated := errors.As(previousErr, &previousPanic) && previousPanic.Error() == err.Error()
		if isRepeated {
			return
		}
		logger := klog.FromContext(ctx)
		if about != nil {
			logger = logger.WithValues(about()...)
		}
		logPanic(logger, name, err)
	}, end)
}

// guard calls f and then end with the error of f. If f panics, guard first calls onPanic with a [PanicError]. The stack then
// still shows where f panicked, so that onPanic can log it.
func guard(name string, f func() error, onPanic, end func(error)) {
	err := error(&PanicError{Call: name}) // not replaced if f calls runtime.Goexit
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Call: name, Value: value}
			onPanic(err)
		}
		end(err)
	}()
	err = f()
}

// logPanic logs a panic. It must be called before the stack of the panic is unwound, since it logs that stack.
func logPanic(logger klog.Logger, name string, err error) {
	logger.Error(err, "Recovered from a panic", "call", name, "stack", string(debug.Stack()))
}
