package apiserverproxy

import (
	"slices"
	"sync"
	"time"
)

// journal records requests.
type journal struct {
	mu       sync.Mutex // guards the fields below
	requests []Request
}

// arrived records a request and returns its number.
func (j *journal) arrived(r Request) int {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.requests = append(j.requests, r)
	return len(j.requests) - 1
}

// answered records the answer of a request. It is called before the client receives the
// answer.
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
