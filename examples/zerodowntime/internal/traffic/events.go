package traffic

import (
	"slices"
	"sync"
	"time"
)

// Outcome is how a request, a websocket or a message of a websocket has ended.
type Outcome string

const (
	// Answered means that the whole answer to a request, or to a message of a websocket, has
	// come.
	Answered Outcome = "answered"
	// Refused means that the proxy found no backend that accepts connections.
	Refused Outcome = "refused"
	// Cut means that a backend had accepted the request or the websocket and broke it off.
	Cut Outcome = "cut"
	// Moved means that a backend closed a websocket with a close frame, so that the client
	// connects again. It is no failure.
	Moved Outcome = "moved"
)

// Event is the end of one request, websocket or message.
type Event struct {
	Outcome Outcome
	At      time.Time     // when the client saw the end
	Took    time.Duration // from the start of the request to its end
	Pod     string        // the pod that the proxy chose; "" if it is not known
}

// Recorder collects events. The zero value is ready to use.
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

// Events returns all events so far, sorted by time.
func (r *Recorder) Events() []Event {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.SortedStableFunc(slices.Values(r.events), func(a, b Event) int { return a.At.Compare(b.At) })
}

// Counts is the number of events by outcome.
type Counts struct {
	Answered int `json:"answered"`
	Refused  int `json:"refused"`
	Cut      int `json:"cut"`
	Moved    int `json:"moved"`
}

// Add counts one event.
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

// Failed returns the number of requests without an answer.
func (c Counts) Failed() int { return c.Refused + c.Cut }

// Of returns the number of events with one outcome.
func (c Counts) Of(o Outcome) int {
	return map[Outcome]int{Answered: c.Answered, Refused: c.Refused, Cut: c.Cut, Moved: c.Moved}[o]
}

// Count counts events by outcome.
func Count(events []Event) Counts {
	var c Counts
	for _, e := range events {
		c.Add(e.Outcome)
	}
	return c
}
