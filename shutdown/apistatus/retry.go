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

// newBackoff returns the pauses between attempts. They start short for conflicts. The
// longest pause bounds how late a server that is up again is noticed.
func newBackoff() *wait.Backoff {
	return &wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 500 * time.Millisecond}
}

// retry repeats an attempt until it succeeds, the API server refuses, or ctx ends. Each
// attempt has twice the timeout of the previous one: a connection that hangs does not use
// up all the time, and a slow server gets its answer through in the end. If the server
// asks to wait (Retry-After), retry waits that long.
func retry(ctx context.Context, attempt func(context.Context) error) error {
	timeout, backoff := firstTimeout(ctx), newBackoff()
	var last error
	for {
		if ctx.Err() != nil {
			return gaveUp(ctx, last)
		}
		err := withTimeout(ctx, timeout, attempt)
		switch {
		case err == nil || isRefusal(err):
			return err
		case ctx.Err() != nil && last != nil:
			return gaveUp(ctx, last) // ctx has ended this attempt; the error before is the informative one
		case ctx.Err() != nil:
			return gaveUp(ctx, err)
		}
		klog.FromContext(ctx).V(2).Info("A write to the API server is tried again", "err", err)
		last, timeout = err, max(timeout, 2*timeout)
		pause(ctx, max(backoff.Step(), retryAfter(err)))
	}
}

// pause waits for d or for the end of ctx.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// retryAfter returns how long the API server asks to wait; 0 means that it does not.
func retryAfter(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
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

// gaveUp returns the error of a retry that ctx has ended. last is the error of the last
// attempt; nil means that there was none.
func gaveUp(ctx context.Context, last error) error {
	if last == nil {
		return fmt.Errorf("given up: %w", context.Cause(ctx))
	}
	return fmt.Errorf("given up: %w: %w", context.Cause(ctx), last)
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
