package apiserverproxy

import (
	"context"
	"errors"
	"time"
)

// Fault is what goes wrong with a request. The zero value is no fault. Delay can be
// combined with all other fields. Of these, Drop takes precedence over Lost, Lost over
// Hang, and Hang over Status.
type Fault struct {
	// Delay passes before the request is carried out. If the client gives up before, the
	// request is not carried out. 0 or less means none.
	Delay time.Duration
	// Drop closes the connection without an answer; the request is not carried out.
	// net/http itself repeats a GET on a connection that was used before.
	Drop bool
	// Hang never answers. Without Lost the request is not carried out. It ends when the
	// client gives up or the proxy dies.
	Hang bool
	// Status refuses the request with a metav1.Status of this code, 400 or more, and its
	// usual reason. The reason of a 409 is AlreadyExists for a POST and Conflict
	// otherwise. 0 means that the request is carried out.
	Status int
	// RetryAfter is the Retry-After header that goes with Status, rounded up to whole
	// seconds. After a 429 or a 5xx with it client-go waits that long and repeats the
	// request by itself, up to ten times, unless rest.Request.MaxRetries says otherwise.
	// With 0 or less there is no header, and client-go returns the error to its caller.
	RetryAfter time.Duration
	// Lost carries the request out and closes the connection without an answer. With Hang
	// the connection stays open.
	Lost bool
}

var (
	errDropped = errors.New("the connection was dropped, as the script wants")
	errLost    = errors.New("the answer was lost, as the script wants")
)

// wait waits for Delay. It returns the error of ctx if that ends first.
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
