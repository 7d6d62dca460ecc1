package call

import (
	"context"
	"errors"
	"time"
)

// ErrTimeSpent is the error of a wait whose time is over.
var ErrTimeSpent = errors.New("the time for it was spent")

// Future is the result of a call that runs in another goroutine.
type Future[T any] struct {
	done  chan struct{}
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

// Start calls f with ctx as [Group.Call] does, and returns its value and its error.
func Start[T any](ctx context.Context, g *Group, name string, f func(context.Context) (T, error)) *Future[T] {
	future, complete := NewFuture[T]()
	var value T
	g.Call(ctx, name, 0, func() (err error) {
		value, err = f(ctx)
		return err
	}, func(err error) { complete(value, err) })
	return future
}

// Done returns a channel that is closed when there is a result.
func (f *Future[T]) Done() <-chan struct{} { return f.done }

// Wait waits for the result, or until ctx ends. If there is a result Wait returns it, even after
// the end of ctx. Otherwise the error is the cause of that end.
func (f *Future[T]) Wait(ctx context.Context) (T, error) {
	select {
	case <-f.done:
	case <-ctx.Done():
	}
	return f.result(context.Cause(ctx))
}

// Await is Wait with an end: without a result at that time the error is [ErrTimeSpent].
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

// result returns the result, or none as the error if there is no result yet.
func (f *Future[T]) result(none error) (T, error) {
	select {
	case <-f.done:
		return f.value, f.err
	default:
		var nothing T
		return nothing, none
	}
}
