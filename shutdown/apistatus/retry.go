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

	"github.com/kubegrace/kubegrace/internal/times"
)

const (
	// maxFirstTimeout is the longest timeout of the first attempt, which may hang on a dead connection.
	maxFirstTimeout = time.Second
	// maxHeadroom is the longest time by which a call ends earlier than the caller's deadline.
	maxHeadroom = 50 * time.Millisecond
)

// withHeadroom returns a context that ends shortly before ctx, so that a caller who waits for ctx
// still receives the error.
func withHeadroom(ctx context.Context) (context.Context, context.CancelFunc) {
	end, hasDeadline := ctx.Deadline()
	if !hasDeadline {
		return context.WithCancel(ctx)
	}
	headroom := min(time.Until(end)/20, maxHeadroom) // 5 % of the remaining time
	return context.WithDeadline(ctx, end.Add(-headroom))
}

// retry repeats an attempt until it succeeds, the API server refuses it, or ctx ends.
//
// Each attempt has twice the timeout of the previous one, so that one hanging connection does not use up all the
// time, and a slow server can still answer. The pauses start at 20 ms, because a conflict is over at once, and stay
// below 1 s, so that a server that answers again is noticed soon. A longer Retry-After of the server is respected.
func retry(ctx context.Context, attempt func(context.Context) error) error {
	backoff := &wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 500 * time.Millisecond}
	var lastErr error
	for timeout := firstTimeout(ctx); ctx.Err() == nil; timeout = max(timeout, 2*timeout) { // max: 2*timeout may overflow
		err := withTimeout(ctx, timeout, attempt)
		if err == nil || isRefusal(err) {
			return err
		}
		if ctx.Err() == nil || lastErr == nil { // an error caused by the end of ctx says less than the previous error
			lastErr = err
		}
		klog.FromContext(ctx).V(2).Info("Failed to write to the API server, will try again", "err", err)
		seconds, _ := apierrors.SuggestsClientDelay(err)
		_ = times.Sleep(ctx, max(backoff.Step(), time.Duration(seconds)*time.Second)) // the loop sees the end of ctx
	}
	if lastErr == nil {
		return fmt.Errorf("gave up: %w", context.Cause(ctx))
	}
	return fmt.Errorf("gave up: %w: %w", context.Cause(ctx), lastErr)
}

// firstTimeout returns the timeout of the first attempt: at most a quarter of the remaining time, so
// that a second attempt with twice the timeout fits.
func firstTimeout(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(maxFirstTimeout, time.Until(end)/4)
	}
	return maxFirstTimeout
}

// withTimeout makes one attempt. If it fails because of the timeout, the error says so.
func withTimeout(ctx context.Context, timeout time.Duration, attempt func(context.Context) error) error {
	attemptCtx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := attempt(attemptCtx)
	hasTimedOut := attemptCtx.Err() != nil && ctx.Err() == nil
	if err != nil && hasTimedOut {
		return fmt.Errorf("no answer within %v: %w", timeout, err)
	}
	return err
}

// isRefusal reports whether the API server has refused the request, so that another attempt is useless. A
// conflict is no refusal, because the next attempt reads the object again. An error without an answer from the
// API server is no refusal either.
func isRefusal(err error) bool {
	var status apierrors.APIStatus
	if !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusConflict, http.StatusTooManyRequests, http.StatusRequestTimeout:
		return false
	default:
		return code >= http.StatusBadRequest && code < http.StatusInternalServerError
	}
}
