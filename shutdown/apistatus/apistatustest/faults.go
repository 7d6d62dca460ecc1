package apistatustest

import (
	"context"
	"math"
	"net/http"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Fault is what goes wrong with a request. The zero value: nothing. Several work
// together: first it waits, then it hangs, is dropped, is refused, or is lost.
type Fault struct {
	// Delay passes before the request is carried out. A client that gives up in the
	// meantime, or a server that dies, leaves it undone.
	Delay time.Duration
	// Status refuses the request with a metav1.Status of this code, 400 or more, and
	// its usual reason; 0: it is carried out. A 409 is an AlreadyExists for a POST, for
	// all else a Conflict.
	Status int
	// RetryAfter goes with Status, in whole seconds, rounded up; client-go waits that
	// long and tries again by itself, up to ten times. 0: it says nothing, and client-go
	// gives the error to its caller.
	RetryAfter time.Duration
	// Drop closes the connection without an answer; the request is not carried out.
	// Package net/http asks again by itself for a GET on a connection that was used
	// before, and for nothing else.
	Drop bool
	// Hang never answers and never carries out: it ends when the client gives up, or
	// the server dies or is closed.
	Hang bool
	// Lost carries the request out and closes the connection without an answer.
	Lost bool
}

// Script sets what is asked for each request, before it is carried out; nil: no
// faults, as in the beginning. It replaces [Server.Slow]. fault is called from many
// goroutines; it may read the request and its body, and call the server, but for
// [Server.Close].
func (s *Server) Script(fault func(*http.Request) Fault) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.script = fault
}

// Slow delays every request by d; 0 or less: none. It replaces [Server.Script].
func (s *Server) Slow(d time.Duration) {
	s.Script(func(*http.Request) Fault { return Fault{Delay: d} })
}

// fault is what the script says of a request.
func (s *Server) fault(r *http.Request) Fault {
	s.mu.Lock()
	script := s.script
	s.mu.Unlock()
	if script == nil {
		return Fault{}
	}
	return script(r)
}

// forever is how long a request hangs.
const forever = time.Duration(math.MaxInt64)

// pass waits as the fault says; false: nothing is to be done any more.
func (f Fault) pass(ctx context.Context, over <-chan struct{}) bool {
	if f.Hang {
		f.Delay = forever
	}
	if f.Delay > 0 {
		timer := time.NewTimer(f.Delay)
		defer timer.Stop()
		select {
		case <-timer.C:
		case <-ctx.Done():
		case <-over:
		}
	}
	select {
	case <-over:
		return false
	default:
		return ctx.Err() == nil && !f.Drop
	}
}

// err is the error of a fault with a Status.
func (f Fault) err(r *http.Request) error {
	seconds := int(math.Ceil(f.RetryAfter.Seconds()))
	return apierrors.NewGenericServerResponse(f.Status, r.Method, schema.GroupResource{}, "", "scripted fault", seconds, false)
}
