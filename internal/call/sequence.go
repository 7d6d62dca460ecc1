package call

import "sync"

// Sequence calls functions one after another, in goroutines of Calls. It is for code that may block and whose calls must keep
// their order: a logger blocks if nobody reads stderr, and a drain must not wait for it.
type Sequence struct {
	Calls *Group // required
	Name  string // under which Calls reports a function that hangs

	mu    sync.Mutex // guards queue
	queue []func()   // in order; the first one is being called
}

// Add has f called when the functions of all earlier Adds have returned, or at once if there are none. Add does not block.
func (s *Sequence) Add(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = append(s.queue, f)
	if len(s.queue) == 1 { // otherwise the end of the function before f starts f
		s.start(f)
	}
}

// start calls f in a new goroutine, and then starts the next function.
func (s *Sequence) start(f func()) {
	s.Calls.Go(func() string { return s.Name }, func() {
		defer s.startNext() // deferred, so that it is called even if f ends its goroutine, as runtime.Goexit does
		f()
	})
}

// startNext removes the function that has returned from the queue, and starts the one after it, if there is one.
func (s *Sequence) startNext() {
	if next := s.removeReturned(); next != nil {
		s.start(next)
	}
}

// removeReturned removes the first function, which has returned, and returns the one after it; nil: there is none.
func (s *Sequence) removeReturned() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.queue = s.queue[1:]
	if len(s.queue) == 0 {
		return nil
	}
	return s.queue[0]
}
