package virtualkubelet

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// workers counts the goroutines of a provider, so that Close can wait for them.
type workers struct {
	closing chan struct{} // closed by close

	mu      sync.Mutex
	closed  bool
	working map[string]int // the number of goroutines by the name of the pod
	idle    chan struct{}  // made by awaitIdle; closed when no goroutine is left
}

func newWorkers() *workers {
	return &workers{closing: make(chan struct{}), working: map[string]int{}}
}

// spawn runs work in a goroutine, unless close was called before, and reports whether it does.
func (w *workers) spawn(name types.NamespacedName, work func()) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.working[name.String()]++
	go func() {
		defer w.done(name.String())
		work()
	}()
	return true
}

// context returns a context with the values of ctx, which ends when close is called, or ended is
// closed if it is not nil. cancel must be called.
func (w *workers) context(ctx context.Context, name types.NamespacedName, ended <-chan struct{}) (_ context.Context, cancel context.CancelFunc) {
	ctx, cancel = context.WithCancel(ctx)
	watched := w.spawn(name, func() {
		defer cancel()
		select {
		case <-w.closing:
		case <-ended:
		case <-ctx.Done():
		}
	})
	if !watched {
		cancel()
	}
	return ctx, cancel
}

// done discounts a goroutine.
func (w *workers) done(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.working[name]--; w.working[name] == 0 {
		delete(w.working, name)
	}
	if len(w.working) == 0 && w.idle != nil {
		close(w.idle)
		w.idle = nil
	}
}

// close makes the goroutines that watch closing end, and spawn start no more.
func (w *workers) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	if !w.closed {
		w.closed = true
		close(w.closing)
	}
}

// isClosed reports whether close was called.
func (w *workers) isClosed() bool { return isClosed(w.closing) }

// isClosed reports whether a channel is closed on which nothing is sent.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// awaitIdle waits until no goroutine is left. When ctx ends first, the error names the
// pods whose goroutines are left.
func (w *workers) awaitIdle(ctx context.Context) error {
	w.mu.Lock()
	if len(w.working) == 0 {
		w.mu.Unlock()
		return nil
	}
	if w.idle == nil {
		w.idle = make(chan struct{})
	}
	idle := w.idle
	w.mu.Unlock()
	select {
	case <-idle:
		return nil
	case <-ctx.Done():
		w.mu.Lock()
		defer w.mu.Unlock()
		pods := strings.Join(slices.Sorted(maps.Keys(w.working)), ", ")
		return fmt.Errorf("stopped waiting for calls that have not returned, of pods %s: %w", pods, context.Cause(ctx))
	}
}
