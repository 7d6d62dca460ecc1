package apiserverproxy

import (
	"slices"
	"sync"
	"time"
)

// journal records requests in the order of their arrival, and the responses to them.
type journal struct {
	mu       sync.Mutex // guards the fields below
	requests []Request
}

// arrived records a request and returns its index.
func (j *journal) arrived(r Request) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = append(j.requests, r)
	return len(j.requests) - 1
}

// answered records the response to a request, before the client receives it.
func (j *journal) answered(index, status int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests[index].Status, j.requests[index].Answered = status, time.Now()
}

// all returns a copy of the recorded requests.
func (j *journal) all() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.requests)
}
