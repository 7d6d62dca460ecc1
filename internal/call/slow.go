package call

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

// slow is how long a call may exceed its limit before it is logged as hanging.
const slow = 5 * time.Second

// Watch starts to watch a call: if the call has not returned 5 s after its limit, Watch logs that, once. limit is how
// long the call may take; 0: it should return at once. The line has the keys and values of about. The result, returned,
// must be called as soon as the call is over.
func Watch(ctx context.Context, name string, limit time.Duration, about ...any) (returned func() bool) {
	return time.AfterFunc(limit+slow, func() {
		klog.FromContext(ctx).WithValues(about...).Info("A call has not returned", "call", name, "after", limit+slow)
	}).Stop
}

// WatchEnd starts to watch a call: if the call has not returned 5 s after the end of its context, WatchEnd logs
// that, once. The result, returned, must be called as soon as the call is over.
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

// WaitLoudly waits until no goroutine of the group is running or giveUp is closed. It returns the sorted names of the
// running goroutines, each once. After 5 s it logs these names and the name of the method that waits, who.
func (g *Group) WaitLoudly(ctx context.Context, who string, giveUp <-chan struct{}) (hanging []string) {
	timer := time.AfterFunc(slow, func() {
		if names := slices.Compact(g.names()); len(names) > 0 {
			klog.FromContext(ctx).Info(who+" waits for calls that have not returned", "calls", names)
		}
	})
	defer timer.Stop()
	return slices.Compact(g.Wait(giveUp))
}
