package call

import (
	"context"
	"errors"
	"time"
)

// ErrTimeSpent is the error of a call that was not waited for any longer.
var ErrTimeSpent = errors.New("the time for it was spent")

// Future is the result of something that goes on in another goroutine.
type Future[T any] struct {
	done  chan struct{}
	value T
	err   error
}

// NewFuture gives a future and the function that completes it, which is to be called
// once.
func NewFuture[T any]() (future *Future[T], complete func(T, error)) {
	f := &Future[T]{done: make(chan struct{})}
	return f, func(value T, err error) {
		f.value, f.err = value, err
		close(f.done)
	}
}

// Start calls f in a goroutine of the group. The context that f is given is ctx.
func Start[T any](ctx context.Context, g *Group, name string, f func(context.Context) (T, error)) *Future[T] {
	future, complete := NewFuture[T]()
	g.Go(func() string { return name }, func() {
		var value T
		Guard(ctx, name, func() (err error) {
			value, err = f(ctx)
			return err
		}, func(err error) { complete(value, err) })
	})
	return future
}

// Done is closed when there is a result.
func (f *Future[T]) Done() <-chan struct{} { return f.done }

// Wait waits for the result, or until ctx ends, and gives it. A result that is there
// counts even if ctx has ended. Without one the error is the cause of ctx's end.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	return f.result(context.Cause(ctx))
}

// Await is Wait until a time: then, without a result, the error is [ErrTimeSpent].
func (f *Future[T]) Await(ctx context.Context, until time.Time) (T, error) {
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	err := ErrTimeSpent
	select {
	case <-f.done:
	case <-timer.C:
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return f.result(err)
}

// result is what there is; none is the error if there is nothing.
func (f *Future[T]) result(none error) (T, error) {
	select {
	case <-f.done:
		return f.value, f.err
	default:
		var nothing T
		return nothing, none
	}
}
