package apiserverproxy

import (
	"context"
	"errors"
	"time"
)

// Fault is what goes wrong with a request. The zero value: nothing. Delay goes with all
// of the others; of these Drop comes before Lost, Lost before Hang, and Hang before
// Status.
type Fault struct {
	// Delay passes before the request is carried out. A client that gives up in the
	// meantime leaves it undone. 0 or less: none.
	Delay time.Duration
	// Drop closes the connection without an answer; the request is not carried out.
	// net/http asks again by itself for a GET on a connection that was used before.
	Drop bool
	// Hang never answers and, without Lost, never carries out. It ends when the client
	// gives up, or the proxy dies.
	Hang bool
	// Status refuses the request with a metav1.Status of this code, 400 or more, and its
	// usual reason. A 409 is an AlreadyExists for a POST, for all else a Conflict. 0: the
	// request is carried out.
	Status int
	// RetryAfter goes with Status, in whole seconds, rounded up: after a 429 or a 5xx
	// client-go waits that long and tries again by itself, up to ten times, unless
	// rest.Request.MaxRetries says otherwise. 0 or less: nothing is said, and client-go
	// gives the error to its caller.
	RetryAfter time.Duration
	// Lost carries the request out and closes the connection without an answer; with
	// Hang it is left open.
	Lost bool
}

var (
	errDropped = errors.New("the connection was dropped, as the script wants")
	errLost    = errors.New("the answer was lost, as the script wants")
)

// wait lets the delay pass. An error is that of ctx.
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
