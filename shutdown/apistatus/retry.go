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

const (
	// firstAttempt is the longest timeout of the first attempt.
	firstAttempt = time.Second
	// maxHeadroom is how long before the deadline of its context a call ends at most.
	maxHeadroom = 50 * time.Millisecond
)

// withHeadroom returns a context that ends shortly before ctx, so that a caller who waits
// until the end of ctx still receives the error.
func withHeadroom(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-min(time.Until(end)/20, maxHeadroom)))
}

// retry repeats an attempt until it succeeds, the API server refuses, or ctx ends. Each
// attempt has twice the timeout of the previous one: a connection that hangs does not use
// up all the time, and a slow server gets its answer through in the end. The pauses start
// short for conflicts, and the longest one bounds how late a server that is up again is
// noticed. If the server asks to wait (Retry-After), retry waits that long.
func retry(ctx context.Context, attempt func(context.Context) error) error {
	backoff := &wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 500 * time.Millisecond}
	var last error
	for timeout := firstTimeout(ctx); ctx.Err() == nil; timeout = max(timeout, 2*timeout) {
		err := withTimeout(ctx, timeout, attempt)
		if err == nil || isRefusal(err) {
			return err
		}
		if ctx.Err() == nil || last == nil { // an error that is due to the end of ctx tells less than the one before
			last = err
		}
		klog.FromContext(ctx).V(2).Info("A write to the API server is tried again", "err", err)
		seconds, _ := apierrors.SuggestsClientDelay(err)
		select {
		case <-time.After(max(backoff.Step(), time.Duration(seconds)*time.Second)):
		case <-ctx.Done():
		}
	}
	if last == nil {
		return fmt.Errorf("given up: %w", context.Cause(ctx))
	}
	return fmt.Errorf("given up: %w: %w", context.Cause(ctx), last)
}

// firstTimeout returns the timeout of the first attempt: at most a quarter of the
// remaining time, so that a second attempt with twice the timeout fits too.
func firstTimeout(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(firstAttempt, time.Until(end)/4)
	}
	return firstAttempt
}

// withTimeout makes one attempt within the timeout. The error says so if the timeout has
// ended it.
func withTimeout(ctx context.Context, timeout time.Duration, attempt func(context.Context) error) error {
	bound, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	err := attempt(bound)
	if err != nil && bound.Err() != nil && ctx.Err() == nil {
		return fmt.Errorf("no answer within %v: %w", timeout, err)
	}
	return err
}

// isRefusal reports whether another attempt is useless because the API server has refused
// the request. After a conflict the next attempt reads the object again. An error without
// an answer of the API server is no refusal.
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
