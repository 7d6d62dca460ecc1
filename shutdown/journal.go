package shutdown

import (
	"context"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// storeLag is how long a write waits that nobody waits for: on a node whose pods
// end at once the next one replaces it, and it need not be written at all.
const storeLag = 10 * time.Millisecond

// podLag is the same for what has become of a pod: many of them change at once, and a
// kill is on the disk within 100 ms.
const podLag = 50 * time.Millisecond

// manyLag is the same for very many pods, whose file is large: an agent that is killed
// meanwhile has its successor tell again what was acknowledged.
const manyLag = time.Second

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
	calls    *call.Group     // has the goroutine
	shutdown uint64          // what an earlier one wants written is dropped
	lag      time.Duration   // how long the write waits for one that replaces it
	failed   func(error)     // is told why a write has failed
}

// entry is one write.
type entry struct {
	*call.Future[struct{}]

	replaced chan struct{} // closed when a newer write has come
}

// noWrite is a write of nothing.
func noWrite() *call.Future[struct{}] {
	future, complete := call.NewFuture[struct{}]()
	complete(struct{}{}, nil)
	return future
}

// write has store called after all that is being written already, unless a newer
// write comes before its turn.
func (j *journal) write(w writing, store func() error) *call.Future[struct{}] {
	future, complete := call.NewFuture[struct{}]()
	e := &entry{Future: future, replaced: make(chan struct{})}
	before, ok := j.queue(e, w.shutdown)
	if !ok {
		return noWrite()
	}
	w.calls.Go(func() string { return "the writing of the shutdown state" }, func() {
		if before != nil {
			<-before.Done()
		}
		var err error
		if e.isDue(w) {
			err = store()
		}
		if err != nil && w.failed != nil {
			w.failed(err)
		}
		complete(struct{}{}, err)
	})
	return future
}

// queue makes e the newest write and gives the one before it; false: there is
// nothing to write.
func (j *journal) queue(e *entry, shutdown uint64) (before *entry, ok bool) {
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
