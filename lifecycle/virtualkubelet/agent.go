package virtualkubelet

import (
	"context"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// agent is shared by all pods of a provider.
type agent struct {
	opts       Options
	terminator terminator
	ctx        context.Context // ends with Close
	close      context.CancelCauseFunc
	calls      call.Group                    // all goroutines
	notify     atomic.Pointer[func(*v1.Pod)] // virtual-kubelet's callback; nil: not registered yet
	registered chan struct{}                 // closed when there is one
	pods       *podTable
	poller     *poller       // nil with a Runtime
	starts     chan struct{} // of size MaxStarts: has an element for each start under way
}

// terminator is what of a [lifecycle.Terminator] is used.
type terminator interface {
	Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) error) error
	PostStart(ctx context.Context, pod *v1.Pod, c lifecycle.Container) error
	Terminate(ctx context.Context, pod *v1.Pod, req lifecycle.Request) *lifecycle.Termination
	Forget(pod *v1.Pod)
	Close(ctx context.Context) error
}

// isClosed reports whether Close was called.
func (a *agent) isClosed() bool { return a.ctx.Err() != nil }

// context returns a context with the values of another one. It ends when the provider is closed, with
// the cause [lifecycle.ErrClosed].
func (a *agent) context(values context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(values))
	stop := context.AfterFunc(a.ctx, func() { cancel(lifecycle.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// spawn runs work in a goroutine for which Close waits, unless Close was called before.
func (a *agent) spawn(name types.NamespacedName, work func()) {
	if !a.isClosed() {
		a.calls.Go(name.String, work)
	}
}

// inTurn calls do when fewer than [Options.MaxStarts] starts are under way. The error is that of do, or
// the cause of ctx, if that ends before.
func (a *agent) inTurn(ctx context.Context, do func() error) error {
	select {
	case a.starts <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.starts }()
	return do()
}

// safely calls code of the author that returns no error; a panic is one, and is logged.
func safely(ctx context.Context, name string, f func()) error {
	return guarded(ctx, name, func() error {
		f()
		return nil
	})
}

// guarded calls code of the author; a panic is an error.
func guarded(ctx context.Context, name string, f func() error) (err error) {
	call.Guard(ctx, name, f, func(failed error) { err = failed })
	return err
}

// isClosed reports whether a channel is closed on which nothing is sent.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
