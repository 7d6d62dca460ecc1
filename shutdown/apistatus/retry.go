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
	// firstAttempt bounds the first attempt to publish a node's state, together with a
	// quarter of the time that is left.
	firstAttempt = time.Second
	// maxHeadStart is how long before its context a call ends at most.
	maxHeadStart = 50 * time.Millisecond
)

// inTime is a context that ends before ctx: who waits until the end of ctx and no
// longer would not hear why.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-min(time.Until(end)/20, maxHeadStart)))
}

// pauses gives those between attempts. The first ones are short, as a conflict
// needs them; the longest is what a server that was down costs when it is back.
func pauses() *wait.Backoff {
	return &wait.Backoff{Duration: 20 * time.Millisecond, Factor: 2, Jitter: 0.5, Steps: 10, Cap: 500 * time.Millisecond}
}

// retry attempts something until it succeeds, is refused for good, or ctx ends.
// Each attempt has twice the time of the one before, so that neither a connection
// that is stuck costs all that ctx has, nor a slow server is never waited for. A
// server that says how long it wants to be left alone is left alone for so long.
func retry(ctx context.Context, attempt func(context.Context) error) error {
	timeout, pauses := firstBound(ctx), pauses()
	var last error
	for {
		if ctx.Err() != nil {
			return gaveUp(ctx, last)
		}
		err := bounded(ctx, timeout, attempt)
		switch {
		case err == nil || forGood(err):
			return err
		case ctx.Err() != nil && last != nil:
			return gaveUp(ctx, last) // the attempt was cut, and says nothing that last does not
		case ctx.Err() != nil:
			return gaveUp(ctx, err)
		}
		klog.FromContext(ctx).V(2).Info("A write to the API server is tried again", "err", err)
		last, timeout = err, max(timeout, 2*timeout)
		pause(ctx, max(pauses.Step(), asked(err)))
	}
}

// pause lets time pass, at most until ctx ends.
func pause(ctx context.Context, d time.Duration) {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-ctx.Done():
	}
}

// asked is how long an API server asks to be left alone; 0: it does not.
func asked(err error) time.Duration {
	seconds, _ := apierrors.SuggestsClientDelay(err)
	return time.Duration(seconds) * time.Second
}

// firstBound is what the first attempt has: a quarter of the time that is left at
// most, so that there is one more, with twice as much, whatever becomes of it.
func firstBound(ctx context.Context) time.Duration {
	if end, ok := ctx.Deadline(); ok {
		return min(firstAttempt, time.Until(end)/4)
	}
	return firstAttempt
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
