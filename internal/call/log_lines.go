package call

import "sync"

// LogLines writes log lines one after another, in a goroutine of Calls. A logger may block, for example if nobody
// reads stderr, and a drain must not wait for it.
type LogLines struct {
	Calls *Group // required

	mu      sync.Mutex // guards waiting
	waiting []func()   // each writes a line; the first one is being called
}

// Write calls line, which writes one line, when the lines of earlier calls have been written. It does not block.
func (l *LogLines) Write(line func()) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting = append(l.waiting, line); len(l.waiting) > 1 {
		return // the goroutine that writes the first line goes on with this one
	}
	nameOfCall := func() string { return "the logger" }
	l.Calls.Go(nameOfCall, func() {
		for write := line; write != nil; write = l.removeFirst() {
			write()
		}
	})
}

// removeFirst removes the first line, which has been written, and returns the one after it; nil: there is none.
func (l *LogLines) removeFirst() func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.waiting = l.waiting[1:]; len(l.waiting) == 0 {
		return nil
	}
	return l.waiting[0]
}
