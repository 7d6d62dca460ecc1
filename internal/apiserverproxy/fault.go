package apiserverproxy

import (
	"context"
	"errors"
	"time"
)

// Fault is what goes wrong with a request. The zero value is no fault. Delay can be combined with all other fields.
// Of Drop, Lost, Hang and Status, in this order, only the first that is set takes effect. The exception is Lost with
// Hang: the response is lost and the connection stays open.
type Fault struct {
	// Delay delays the request. A request that the client cancels during the delay is not forwarded. 0 or less: no
	// delay.
	Delay time.Duration
	// Drop closes the connection without a response, and does not forward the request. net/http retries a
	// GET on a reused connection.
	Drop bool
	// Hang never responds. Without Lost it does not forward the request. It ends when the client cancels
	// the request or the proxy dies.
	Hang bool
	// Status rejects the request with a metav1.Status of this code, 400 or more, and its usual reason. The
	// reason of a 409 is AlreadyExists for a POST and Conflict otherwise. 0 means no rejection.
	Status int
	// RetryAfter is the Retry-After header of the response with Status, rounded up to whole seconds. After
	// a 429 or 5xx with this header, client-go waits and retries the request up to ten times by default
	// (rest.Request.MaxRetries). 0 or less: no header, and client-go returns the error.
	RetryAfter time.Duration
	// Lost forwards the request and closes the connection without a response. With Hang the connection
	// stays open.
	Lost bool
}

var (
	errDropped = errors.New("the connection was dropped by the script")
	errLost    = errors.New("the response was lost by the script")
)

// wait waits for Delay. It returns the error of ctx if ctx has ended by then.
func (f Fault) wait(ctx context.Context) error {
	if f.Delay <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(f.Delay)
	defer timer.Stop()
	select {
	case <-timer.C:
		return ctx.Err()
	case <-ctx.Done():
		return ctx.Err()
	}
}
