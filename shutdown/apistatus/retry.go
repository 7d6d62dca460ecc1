package apistatus

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/klog/v2"
)

// pauses gives those between attempts. The first ones are short, as a conflict
// needs them; the longest is what a server that was down costs when it is back.
func pauses() wait.DelayFunc {
	return wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 500 * time.Millisecond}.DelayFunc()
}

// retry attempts something until it succeeds, is refused for good, or ctx ends.
// Each attempt has twice the time of the one before, so that neither a connection
// that is stuck costs all that ctx has, nor a slow server is never waited for.
//
// The caller is inside the room. It is left between attempts and for good, so that
// what never succeeds does not keep the rest from being tried.
func (r *Reporter) retry(ctx context.Context, room room, attempt func(context.Context) error) error {
	timeout := firstBound(ctx, r.opts.AttemptTimeout)
	var last error
	enter := func(context.Context) error { return nil } // it is inside
	err := pauses().Until(ctx, true, true, func(ctx context.Context) (bool, error) {
		if err := enter(ctx); err != nil {
			return false, err
		}
		enter = room.enter
		err := bounded(ctx, timeout, attempt)
		room.leave()
		switch {
		case err == nil:
			return true, nil
		case forGood(err):
			return false, err
		case ctx.Err() != nil:
			return false, ctx.Err() // it was cut, and says nothing that last does not
		}
		klog.FromContext(ctx).V(2).Info("A write to the API server is tried again", "err", err)
		last, timeout = err, doubled(timeout)
		return false, nil
	})
	if err == nil || forGood(err) {
		return err
	}
	return gaveUp(ctx, last)
}

// firstBound is what the first attempt has: a quarter of the time that is left at
// most, so that there is one more, with twice as much, whatever becomes of it.
func firstBound(ctx context.Context, timeout time.Duration) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(timeout, time.Until(end)/4)
	}
	return timeout
}

// bounded makes one attempt.
func bounded(ctx context.Context, timeout time.Duration, attempt func(context.Context) error) error {
	bound, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := attempt(bound)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer within %v: %w", timeout, err)
	}
	return err
}

// doubled is twice a span of time, or the same where that is none.
func doubled(d time.Duration) time.Duration { return max(d, 2*d) }

// gaveUp says why something is not tried any more, and what was in its way.
func gaveUp(ctx context.Context, last error) error {
	if last == nil {
		return fmt.Errorf("given up: %w", context.Cause(ctx))
	}
	return fmt.Errorf("given up: %w: %w", context.Cause(ctx), last)
}

// forGood tells whether trying again is of no use: the API server has understood and
// said no. A conflict is another writer's, and the next attempt begins with what he
// wrote; all that is no answer of the API server may be one the next time.
func forGood(err error) bool {
	if errors.Is(err, errNoUID) {
		return true
	}
	var status *apierrors.StatusError
	answered := errors.As(err, &status)
	if !answered {
		return false
	}
	switch code := status.ErrStatus.Code; code {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}
