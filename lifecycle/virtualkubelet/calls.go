package virtualkubelet

import (
	"context"
	"fmt"
	"time"

	"github.com/virtual-kubelet/virtual-kubelet/errdefs"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
)

// watch logs a call of the author's code that has not returned 5 s after its limit, and names it in the
// error of Close. pod is empty for a call about all pods. Call returned when the call has returned.
func (a *agent) watch(ctx context.Context, what string, pod types.NamespacedName, limit time.Duration) (returned func()) {
	leave := a.calls.Enter(func() string {
		if pod.Name == "" {
			return "a call of " + what
		}
		return what + " of " + pod.String()
	})
	stop := call.Watch(ctx, what, limit, "pod", pod)
	return func() {
		stop()
		leave()
	}
}

// guarded calls the author's code, which is watched. It logs a panic and returns it as an error. before is
// the error of the call before, nil for none: the same panic is not logged again.
func (a *agent) guarded(ctx context.Context, what string, pod types.NamespacedName, limit time.Duration, before error, f func() error) (err error) {
	defer a.watch(ctx, what, pod, limit)()
	about := func() []any { return []any{"pod", pod} }
	call.GuardAbout(ctx, what, before, about, f, func(failed error) { err = failed })
	return err
}

// bounded is guarded with a context that ends at the limit, which an error then names.
func (a *agent) bounded(ctx context.Context, what string, pod types.NamespacedName, limit time.Duration, before error, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := a.guarded(bounded, what, pod, limit, before, func() error { return f(bounded) })
	if err != nil && bounded.Err() != nil && ctx.Err() == nil && !errdefs.IsInvalidInput(err) {
		err = fmt.Errorf("%s has not returned within %v: %w", what, limit, err)
	}
	return err
}

// guarded calls the author's code about the pod.
func (r *record) guarded(ctx context.Context, what string, limit time.Duration, f func() error) error {
	err := r.agent.guarded(ctx, what, r.name, limit, r.lastError(what), f)
	r.setLastError(what, err)
	return err
}

// bounded calls the author's code about the pod with a context that ends at the limit.
func (r *record) bounded(ctx context.Context, what string, limit time.Duration, f func(context.Context) error) error {
	err := r.agent.bounded(ctx, what, r.name, limit, r.lastError(what), f)
	r.setLastError(what, err)
	return err
}

// safely is guarded for a function without an error that must return at once.
func (r *record) safely(what string, f func()) error {
	return r.guarded(r.ctx, what, 0, func() error {
		f()
		return nil
	})
}

func (r *record) lastError(what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastErrors[what]
}

func (r *record) setLastError(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastErrors[what] == nil && err == nil {
		return
	}
	if r.lastErrors == nil {
		r.lastErrors = map[string]error{}
	}
	r.lastErrors[what] = err
}

// failures are those of a call that is repeated, since it has succeeded last.
type failures struct {
	text  string // of the last one
	count int
}

// log logs a failure that differs from the one before as failed, and a success after failures as
// recovered. err is nil for a success.
func (f *failures) log(ctx context.Context, err error, failed, recovered string, about ...any) {
	logger := klog.FromContext(ctx).WithValues(about...)
	switch {
	case err != nil:
		if f.count++; f.text != err.Error() && ctx.Err() == nil {
			logger.Error(err, failed)
		}
		f.text = err.Error()
	case f.count > 0:
		logger.Info(recovered, "failures", f.count)
		*f = failures{}
	}
}
