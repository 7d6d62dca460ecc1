package call

import "sync"

// Sequence calls functions one after another, in a goroutine of Calls that ends when none is waiting. It is for code that
// may block and whose calls must keep their order: a logger blocks if nobody reads stderr, and a drain must not wait for it.
type Sequence struct {
	Calls *Group // required
	Name  string // under which Calls reports a function that hangs

	mu      sync.Mutex // guards waiting
	waiting []func()   // the first one is being called
}

// Add calls f when the functions of earlier calls have returned. It does not block.
func (s *Sequence) Add(f func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting = append(s.waiting, f); len(s.waiting) > 1 {
		return // the goroutine that calls the first function goes on with this one
	}
	s.start(f)
}

// start calls f and then the functions that wait, in a goroutine. If one of them ends the goroutine, as runtime.Goexit does,
// another one goes on with the next function.
func (s *Sequence) start(f func()) {
	next := f
	s.Calls.Go(func() string { return s.Name }, func() {
		defer func() {
			if next == nil {
				return
			}
			if next = s.removeFirst(); next != nil {
				s.start(next)
			}
		}()
		for next != nil {
			next()
			next = s.removeFirst()
		}
	})
}

// removeFirst removes the first function, which has returned, and returns the one after it; nil: there is none.
func (s *Sequence) removeFirst() func() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.waiting = s.waiting[1:]; len(s.waiting) == 0 {
		return nil
	}
	return s.waiting[0]
}
