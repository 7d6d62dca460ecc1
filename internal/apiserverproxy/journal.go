package apiserverproxy

import (
	"slices"
	"sync"
	"time"
)

// journal notes requests.
type journal struct {
	mu       sync.Mutex // guards all below
	requests []Request
}

// arrived notes a request and gives its number.
func (j *journal) arrived(r Request) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = append(j.requests, r)
	return len(j.requests) - 1
}

// answered notes the answer of a request, before the client can have it.
func (j *journal) answered(number, status int) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests[number].Status, j.requests[number].Answered = status, time.Now()
}

func (j *journal) all() []Request {
	j.mu.Lock()
	defer j.mu.Unlock()
	return slices.Clone(j.requests)
}
