package shutdown

import (
	"context"
	"sync"
	"time"
)

// storeLag is how long a write waits that nobody waits for: on a node whose pods
// end at once the next one replaces it, and it need not be written at all.
const storeLag = 10 * time.Millisecond

// journal writes one file, one state after the other, each in a goroutine of those
// who want it written: a disk that hangs holds nobody but those who want to wait.
// A nil journal writes nothing.
type journal struct {
	mu     sync.Mutex // guards all below; never held while a file is written
	last   *entry     // the newest write; nil: none yet
	writer uint64     // the number of the newest shutdown that has written
}

// writing says on whose behalf something is written.
type writing struct {
	ctx      context.Context // its end cuts the lag short
	work     *sync.WaitGroup // has the goroutine
	shutdown uint64          // what an earlier one wants written is dropped
	lag      time.Duration   // how long the write waits for one that replaces it
}

// entry is one write, or another thing that is done beside a drain.
type entry struct {
	replaced chan struct{} // closed when a newer write has come; nil: none can
	done     chan struct{}
	err      error // read once done is closed
}

// noEntry is a write of nothing.
func noEntry() *entry {
	e := &entry{done: make(chan struct{})}
	close(e.done)
	return e
}

// write has store called after all that is being written already, unless a newer
// write comes before its turn.
func (j *journal) write(w writing, store func() error) *entry {
	e := &entry{replaced: make(chan struct{}), done: make(chan struct{})}
	before, ok := j.enter(e, w.shutdown)
	if !ok {
		return noEntry()
	}
	w.work.Go(func() {
		defer close(e.done)
		if before != nil {
			<-before.done
		}
		if e.isDue(w) {
			e.err = store()
		}
	})
	return e
}

// enter makes e the newest write and gives the one before it; false: there is
// nothing to write.
func (j *journal) enter(e *entry, shutdown uint64) (before *entry, ok bool) {
	if j == nil {
		return nil, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if shutdown < j.writer {
		return nil, false
	}
	before = j.last
	if before != nil {
		close(before.replaced)
	}
	j.last, j.writer = e, shutdown
	return before, true
}

// isDue waits for the lag and tells whether the write has not been replaced.
func (e *entry) isDue(w writing) bool {
	timer := time.NewTimer(w.lag)
	defer timer.Stop()
	select {
	case <-e.replaced:
	case <-timer.C:
	case <-w.ctx.Done():
	}
	select {
	case <-e.replaced:
		return false
	default:
		return true
	}
}
