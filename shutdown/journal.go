package shutdown

import (
	"context"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// storeLag delays a write that nobody waits for. On a node whose pods end at once a newer write
// replaces it, so that it need not be made at all.
const storeLag = 10 * time.Millisecond

// podLag delays a write about a pod. Many pods change at once, and a kill has to be on the disk
// within 100 ms.
const podLag = 50 * time.Millisecond

// manyLag is podLag for very many pods, whose file is large. If the agent is killed before the
// write, the next one sends acknowledged statuses again.
const manyLag = time.Second

// journal writes the states of one file, one after the other and the newest last. Each write has
// a goroutine, so that a disk that hangs blocks only those who wait for it. A nil journal writes
// nothing.
type journal struct {
	mu             sync.Mutex   // guards all below; never held while a file is written
	newest         *queuedWrite // nil: none yet
	newestShutdown uint64       // the highest number of a shutdown that has written
}

// writeRequest says for whom a state is written, and when.
type writeRequest struct {
	ctx      context.Context // its end cuts the lag short
	calls    *call.Group     // runs the goroutine of the write
	shutdown uint64          // the number of the shutdown; a write of a lower one is dropped
	lag      time.Duration   // how long the write may be replaced by a newer one
	failed   func(error)     // is called if the write fails; nil: nothing is
}

// queuedWrite is a write that waits for its turn, is being made, or is done.
type queuedWrite struct {
	*call.Future[struct{}]

	replaced chan struct{} // closed when a newer write is queued
}

// noWrite returns a future that is complete.
func noWrite() *call.Future[struct{}] {
	future, complete := call.NewFuture[struct{}]()
	complete(struct{}{}, nil)
	return future
}

// write calls store when the writes before it are done. It skips store if a newer write comes
// first.
func (j *journal) write(w writeRequest, store func() error) *call.Future[struct{}] {
	future, complete := call.NewFuture[struct{}]()
	e := &queuedWrite{Future: future, replaced: make(chan struct{})}
	before, ok := j.enqueue(e, w.shutdown)
	if !ok {
		return noWrite()
	}
	w.calls.Go(func() string { return "the writing of the shutdown state" }, func() {
		if before != nil {
			<-before.Done()
		}
		var err error
		if e.awaitTurn(w) {
			err = store()
		}
		if err != nil && w.failed != nil {
			w.failed(err)
		}
		complete(struct{}{}, err)
	})
	return future
}

// enqueue makes e the newest write and returns the one before it. It returns false if e is to be
// dropped.
func (j *journal) enqueue(e *queuedWrite, shutdown uint64) (before *queuedWrite, ok bool) {
	if j == nil {
		return nil, false
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	if shutdown < j.newestShutdown {
		return nil, false
	}
	before = j.newest
	if before != nil {
		close(before.replaced)
	}
	j.newest, j.newestShutdown = e, shutdown
	return before, true
}

// awaitTurn waits for the lag. It returns false if a newer write has replaced this one.
func (e *queuedWrite) awaitTurn(w writeRequest) bool {
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
