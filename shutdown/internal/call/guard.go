package call

import (
	"context"
	"fmt"
	"runtime/debug"

	"k8s.io/klog/v2"
)

// PanicError is the error of a call that did not return: it panicked, or it ended its
// goroutine (runtime.Goexit, as a test's FailNow does).
type PanicError struct {
	Call  string // the name of what was called
	Value any    // of the panic; nil: the goroutine was ended
}

// Error names the call, and the value of its panic.
func (e *PanicError) Error() string {
	if e.Value == nil {
		return e.Call + " ended its goroutine"
	}
	return fmt.Sprintf("%s panicked: %v", e.Call, e.Value)
}

// Guard calls f and gives its error to end, once, whatever f does. A panic is logged
// with its stack and goes no further. After a Goexit end is called too, and then the
// goroutine ends, which nothing can prevent.
func Guard(ctx context.Context, name string, f func() error, end func(error)) {
	err := error(&PanicError{Call: name}) // stands if f neither returns nor panics
	defer func() {
		if value := recover(); value != nil {
			err = &PanicError{Call: name, Value: value}
			klog.FromContext(ctx).Error(err, "Recovered from a panic", "call", name, "stack", string(debug.Stack()))
		}
		end(err)
	}()
	err = f()
}

// Recover makes an error of a panic, in err, and logs it with its stack. It is to be
// deferred itself. It is for those who call so often that [Guard] costs too much.
func Recover(ctx context.Context, name fmt.Stringer, err *error) {
	if value := recover(); value != nil {
		*err = &PanicError{Call: name.String(), Value: value}
		klog.FromContext(ctx).Error(*err, "Recovered from a panic", "call", name.String(), "stack", string(debug.Stack()))
	}
}
