package call

import (
	"context"
	"slices"
	"time"

	"k8s.io/klog/v2"
)

// slow is how long a call may exceed its limit before it is logged as hanging.
const slow = 5 * time.Second

// Watch starts to watch a call, which may take as long as limit says (0: it should return at once). If the call has not returned
// 5 s after that, Watch logs it, once, with the keys and values of about. The result, returned, must be called as soon as the call
// is over.
func Watch(ctx context.Context, name string, limit time.Duration, about ...any) (returned func() bool) {
	return time.AfterFunc(limit+slow, func() {
		klog.FromContext(ctx).WithValues(about...).Info("A call has not returned", "call", name, "after", limit+slow)
	}).Stop
}

// WatchEnd starts to watch a call, which should return when its context ends. If it has not returned 5 s after that, WatchEnd logs
// it, once, with the keys and values of about. The result, returned, must be called as soon as the call is over.
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

// WaitAndLog waits until no goroutine of the group is running or giveUp is closed. It returns the sorted names of the
// running goroutines, each once. After 5 s it logs these names, and who waits: the name of a method.
func (g *Group) WaitAndLog(ctx context.Context, who string, giveUp <-chan struct{}) (hanging []string) {
	timer := time.AfterFunc(slow, func() {
		if names := slices.Compact(g.names()); len(names) > 0 {
			klog.FromContext(ctx).Info(who+" waits for calls that have not returned", "calls", names)
		}
	})
	defer timer.Stop()
	return slices.Compact(g.Wait(giveUp))
}
