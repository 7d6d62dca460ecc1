package call

import (
	"context"
	"errors"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

// ErrTimeSpent is the error of [Future.Await] if there is no result in time. The call goes on.
var ErrTimeSpent = errors.New("timed out")

// Future is the result of a call that runs in another goroutine.
type Future[T any] struct {
	done  chan struct{} // closed when value and err are set
	value T
	err   error
}

// NewFuture returns a future and the function that completes it. Call that function once.
func NewFuture[T any]() (future *Future[T], complete func(T, error)) {
	f := &Future[T]{done: make(chan struct{})}
	return f, func(value T, err error) {
		f.value, f.err = value, err
		close(f.done)
	}
}

// Start calls f with ctx in a goroutine of the group, and returns at once. The future gets the result, or a
// [PanicError].
func Start[T any](ctx context.Context, g *Group, name string, f func(context.Context) (T, error)) *Future[T] {
	future, complete := NewFuture[T]()
	var value T
	const neverSlow = 0 // a call that takes long is not logged, because Await limits the wait
	g.Call(ctx, name, neverSlow, func() (err error) {
		value, err = f(ctx)
		return err
	}, func(err error) { complete(value, err) })
	return future
}

// Done returns a channel that is closed when the result is available.
func (f *Future[T]) Done() <-chan struct{} { return f.done }

// IsDone reports whether the result is available.
func (f *Future[T]) IsDone() bool {
	select {
	case <-f.done:
		return true
	default:
		return false
	}
}

// Wait returns the result as soon as it is available, even if ctx has ended. If ctx ends first, it returns the cause
// of ctx.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	return f.result(context.Cause(ctx))
}

// Await returns the result as soon as it is available. If ctx ends or the deadline passes first, it returns the cause
// of ctx, or [ErrTimeSpent]. A result that becomes available at the same moment takes precedence.
func (f *Future[T]) Await(ctx context.Context, deadline time.Time) (T, error) {
	errIfNotDone := ErrTimeSpent
	select {
	case <-f.done:
	case <-times.After(deadline):
	case <-ctx.Done():
		errIfNotDone = context.Cause(ctx)
	}
	return f.result(errIfNotDone)
}

// result returns the result of the call, or the error errIfNotDone if the result is not available yet.
func (f *Future[T]) result(errIfNotDone error) (T, error) {
	if !f.IsDone() {
		var zero T
		return zero, errIfNotDone
	}
	return f.value, f.err
}
