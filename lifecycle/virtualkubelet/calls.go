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

// watchCall makes a hanging call of the embedder's code visible: 5 s after the limit the call is logged, and the
// error of Close names it. The caller must call returned when the call has returned. pod is empty for a call
// about all pods.
func (a *agent) watchCall(ctx context.Context, what string, pod types.NamespacedName, limit time.Duration) (returned func()) {
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

// callGuarded calls f, which is code of the embedder, and watches the call with watchCall. A panic of f is logged and
// becomes the error, so that it does not end the process. previousErr is the error of the previous call of this kind;
// nil: it succeeded, or there was none. If that was the same panic, it is not logged again.
func (a *agent) callGuarded(ctx context.Context, what string, pod types.NamespacedName, limit time.Duration, previousErr error, f func() error) (err error) {
	defer a.watchCall(ctx, what, pod, limit)()
	about := func() []any { return []any{"pod", pod} }
	call.GuardAbout(ctx, what, previousErr, about, f, func(failed error) { err = failed })
	return err
}

// callWithin calls f as callGuarded does, with a context that ends at the limit. If f fails after the limit, the error
// says that f has not returned in time, unless it is an ErrInvalidInput, which does not come from the timeout.
func (a *agent) callWithin(ctx context.Context, what string, pod types.NamespacedName, limit time.Duration, previousErr error, f func(context.Context) error) error {
	bounded, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	err := a.callGuarded(bounded, what, pod, limit, previousErr, func() error { return f(bounded) })
	hasTimedOut := bounded.Err() != nil && ctx.Err() == nil
	if err != nil && hasTimedOut && !errdefs.IsInvalidInput(err) {
		err = fmt.Errorf("%s has not returned within %v: %w", what, limit, err)
	}
	return err
}

// callGuarded calls f as [agent.callGuarded] does, for a call about this pod.
func (r *record) callGuarded(ctx context.Context, what string, limit time.Duration, f func() error) error {
	err := r.agent.callGuarded(ctx, what, r.name, limit, r.lastError(what), f)
	r.setLastError(what, err)
	return err
}

// callWithin calls f as [agent.callWithin] does, for a call about this pod.
func (r *record) callWithin(ctx context.Context, what string, limit time.Duration, f func(context.Context) error) error {
	err := r.agent.callWithin(ctx, what, r.name, limit, r.lastError(what), f)
	r.setLastError(what, err)
	return err
}

// callSafely calls f, which is code of the embedder, returns no error, and must not block. If f panics, the panic is
// logged and returned as an error. The result is nil if f has returned.
func (r *record) callSafely(what string, f func()) error {
	return r.callGuarded(r.ctx, what, 0, func() error {
		f()
		return nil
	})
}

// lastError returns the error of the last call of this kind about this pod; nil if that call succeeded or there was
// none.
func (r *record) lastError(what string) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.lastErrors[what]
}

// setLastError remembers err as the result of a call, so that the next call can tell whether it fails for the first
// time.
func (r *record) setLastError(what string, err error) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.lastErrors[what] == nil && err == nil { // most calls never fail and need no map
		return
	}
	if r.lastErrors == nil {
		r.lastErrors = map[string]error{}
	}
	r.lastErrors[what] = err
}

// failures counts the failures of a repeated call since its last success, so that a lasting failure is logged
// once instead of at each attempt.
type failures struct {
	text  string // the error of the last failure
	count int
}

// log takes the result of one attempt. It logs an error that differs from the previous one, with the message
// failed, and the first success after failures, with the message recovered.
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
