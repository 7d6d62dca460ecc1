// Package traffic sends requests and counts what becomes of them.
//
// # Concurrency properties
//
// All methods of a [Recorder] may be called concurrently. [Requests] and [Websockets]
// return when nothing is under way any more.
package traffic

import (
	"slices"
	"sync"
	"time"
)

// Outcome is what became of a request, or of a websocket that has ended.
type Outcome string

const (
	// Answered means that the whole answer came: to a request, or to a message of a
	// websocket.
	Answered Outcome = "answered"
	// Refused means that the proxy found no backend that takes the request.
	Refused Outcome = "refused"
	// Cut means that a backend took the request, or kept the websocket, and broke it off.
	Cut Outcome = "cut"
	// Moved means that a backend closed a websocket with notice, so that its client
	// connects again. It is no failure.
	Moved Outcome = "moved"
)

// Event is the end of one request.
type Event struct {
	Outcome Outcome
	At      time.Time     // when it was known
	Took    time.Duration // from the beginning of the request
	Pod     string        // which the proxy had chosen; "" where that is not known
}

// Recorder collects events. The zero value is empty.
type Recorder struct {
	mu     sync.Mutex
	events []Event
}

// Add adds an event.
func (r *Recorder) Add(e Event) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.events = append(r.events, e)
}

// Events gives all events so far, in the order of time.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(r.events), func(a, b Event) int { return a.At.Compare(b.At) })
}

// Counts says how many events had which outcome.
type Counts struct {
	Answered int `json:"answered"`
	Refused  int `json:"refused"`
	Cut      int `json:"cut"`
	Moved    int `json:"moved"`
}

// Add counts one more.
func (c *Counts) Add(o Outcome) {
	switch o {
	case Answered:
		c.Answered++
	case Refused:
		c.Refused++
	case Cut:
		c.Cut++
	case Moved:
		c.Moved++
	}
}

// Failed are the requests without an answer.
func (c Counts) Failed() int { return c.Refused + c.Cut }

// Of gives the number of one outcome.
func (c Counts) Of(o Outcome) int {
	return map[Outcome]int{Answered: c.Answered, Refused: c.Refused, Cut: c.Cut, Moved: c.Moved}[o]
}

// Count counts events.
func Count(events []Event) Counts {
	var c Counts
	for _, e := range events {
		c.Add(e.Outcome)
	}
	return c
}
