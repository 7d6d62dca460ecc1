package virtualkubelet

import (
	"context"
	"sync/atomic"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// agent is what all pods of a Provider share: its options, goroutines, terminator and table of pods.
type agent struct {
	opts       Options
	terminator terminator
	ctx        context.Context // ends with Close
	close      context.CancelCauseFunc
	calls      call.Group                    // goroutines and calls of the embedder's code, which Close waits for
	notify     atomic.Pointer[func(*v1.Pod)] // virtual-kubelet's callback; nil: not registered yet
	registered chan struct{}                 // closed once notify is set
	pods       *podTable
	poller     *poller       // nil with a Runtime
	starts     chan struct{} // has an element for each start in progress; its capacity is maxStarts
}

// terminator is the part of [lifecycle.Terminator] that this package uses. It is an interface so that tests can
// record the calls.
type terminator interface {
	Start(ctx context.Context, pod *v1.Pod, name string, start func(context.Context) error) error
	PostStart(ctx context.Context, pod *v1.Pod, c lifecycle.Container) error
	Terminate(ctx context.Context, pod *v1.Pod, req lifecycle.Request) *lifecycle.Termination
	Forget(pod *v1.Pod)
	Close(ctx context.Context) error
}

func (a *agent) isClosed() bool { return a.ctx.Err() != nil }

// context returns a context that has the values of a caller's context, but does not end with it. It ends with the cause
// [lifecycle.ErrClosed] when the provider is closed.
func (a *agent) context(values context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(context.WithoutCancel(values))
	stop := context.AfterFunc(a.ctx, func() { cancel(lifecycle.ErrClosed) })
	return ctx, func() {
		stop()
		cancel(nil)
	}
}

// spawn runs work in a goroutine that Close waits for. After Close it does nothing.
func (a *agent) spawn(name types.NamespacedName, work func()) {
	if !a.isClosed() {
		a.calls.Go(name.String, work)
	}
}

// withinMaxStarts waits until fewer than maxStarts starts are in progress, and then calls start. It returns
// the error of start, or the cause of ctx if ctx ends during the wait.
func (a *agent) withinMaxStarts(ctx context.Context, start func() error) error {
	select {
	case a.starts <- struct{}{}:
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	defer func() { <-a.starts }()
	return start()
}

// isClosed reports whether c is closed, for a channel on which nothing is ever sent.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}
