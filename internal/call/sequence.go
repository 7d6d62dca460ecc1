package call

import "sync"

// Sequence calls functions one after another, in goroutines of Calls. It is for code that may block and whose calls must keep
// their order: a logger blocks if nobody reads stderr, and a drain must not wait for it.
type Sequence struct {
	Calls *Group // required
	Name  string // under which Calls reports a function that hangs

	mu      sync.Mutex // guards waiting
	waiting []func()   // in order; the first one is being called
}

// Add has f called when the functions of all earlier Adds have returned, or at once if there are none. Add does not block.
func (s *Sequence) Add(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = append(s.waiting, f)
	if len(s.waiting) == 1 { // otherwise the end of the function before f starts f
		s.start(f)
	}
}

// start calls f in a new goroutine, and then starts the next function that waits. It does so in a deferred function, which
// runs even if f ends its goroutine, as runtime.Goexit does.
func (s *Sequence) start(f func()) {
	s.Calls.Go(func() string { return s.Name }, func() {
		defer func() {
			if next := s.removeFirst(); next != nil {
				s.start(next)
			}
		}()
		f()
	})
}

// removeFirst removes the first function, which has returned, and returns the one after it; nil: there is none.
func (s *Sequence) removeFirst() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.waiting = s.waiting[1:]
	if len(s.waiting) == 0 {
		return nil
	}
	return s.waiting[0]
}
