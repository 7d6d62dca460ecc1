package apistatustest

import (
	"net/http"
	"slices"
	"sync"
	"time"
)

// Request is one request that has arrived.
type Request struct {
	Method, Path string // the path without the query
	ContentType  string // the header of that name; "": none
	UserAgent    string // likewise
	Body         []byte // shared by all that ask for it: not to be changed
	Status       int    // the code of the answer; 0: not answered, or not yet
	At           time.Time
	Answered     time.Time // when the answer was handed to the network; zero: not answered
}

// journal notes requests.
type journal struct {
	mu       sync.Mutex // guards all below
	requests []Request
}

// arrived notes a request and gives its number.
func (j *journal) arrived(r *http.Request, body []byte, at time.Time) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = append(j.requests, Request{
		Method: r.Method, Path: r.URL.Path, ContentType: r.Header.Get("Content-Type"),
		UserAgent: r.UserAgent(), Body: body, At: at,
	})
	return len(j.requests) - 1
}

// answered notes the answer of a request, before the client can have it.
func (j *journal) answered(number, status int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests[number].Status, j.requests[number].Answered = status, time.Now()
}

// Requests are those that have arrived, with their bodies, in order. A client that
// has an answer finds it here.
func (s *Server) Requests() []Request {
	s.journal.mu.Lock()
	defer s.journal.mu.Unlock()
	return slices.Clone(s.journal.requests)
}
