package call

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

// slow is how long after its limit a call that has not returned is logged.
const slow = 5 * time.Second

// Watch logs a call, once, that has not returned 5 s after its limit. about has keys and values to log.
// Call returned when it has returned.
func Watch(ctx context.Context, name string, limit time.Duration, about ...any) (returned func() bool) {
	return time.AfterFunc(limit+slow, func() {
		klog.FromContext(ctx).WithValues(about...).Info("A call has not returned", "call", name, "after", limit+slow)
	}).Stop
}

// WatchEnd logs a call, once, that has not returned 5 s after the end of its context.
func WatchEnd(ctx context.Context, name string, about ...any) (returned func()) {
	done := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		timer := time.NewTimer(slow)
		defer timer.Stop()
		select {
		case <-done:
		case <-timer.C:
			klog.FromContext(ctx).WithValues(about...).Info("A call has not returned since its context ended", "call", name, "after", slow)
		}
	})
	return func() {
		stop()
		close(done)
	}
}

// Enter makes a call in the caller's goroutine a member of the group until leave is called.
func (g *Group) Enter(name func() string) (leave func()) {
	m := g.add(name)
	return func() { g.remove(m) }
}

// WaitLoudly is [Group.Wait] that logs, once, what it waits for after 5 s. who is who waits.
func (g *Group) WaitLoudly(ctx context.Context, who string, enough <-chan struct{}) (hanging []string) {
	timer := time.AfterFunc(slow, func() {
		if names := g.names(); len(names) > 0 {
			klog.FromContext(ctx).Info(who+" waits for calls that have not returned", "calls", names)
		}
	})
	defer timer.Stop()
	return g.Wait(enough)
}

// names returns the names of the goroutines and calls that still run, sorted, each once, without empty ones.
func (g *Group) names() (names []string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	for m := range g.running {
		if name := m.name(); name != "" {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}
