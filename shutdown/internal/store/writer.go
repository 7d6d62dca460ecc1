package store

import (
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// writer makes the writes of one file, one after the other. Of the writes that wait for their turn
// only the newest is made. Its goroutine runs while a write waits or is being made. A nil writer
// writes nothing.
type writer struct {
	name   string // of its goroutine
	calls  *call.Group
	folder *folder

	mu      sync.Mutex // guards all below
	next    *write     // the write that waits; nil: none
	running bool       // the goroutine runs
	closed  bool
}

// write is a write that waits for its turn or is being made.
type write struct {
	*call.Future[struct{}]

	complete func(struct{}, error)
	store    func() error
	due      time.Time
	timer    *time.Timer // fires when the write is due
}

// noWrite returns a future that is complete.
func noWrite(err error) *call.Future[struct{}] {
	future, complete := call.NewFuture[struct{}]()
	complete(struct{}{}, err)
	return future
}

// save has store called after a lag and after the write that is being made. If a write waits
// already, it calls this store in place of its own, and it is due at the earlier of both times.
func (w *writer) save(lag time.Duration, store func() error) *call.Future[struct{}] {
	if w == nil {
		return noWrite(nil)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return noWrite(errClosed)
	}
	due := time.Now().Add(lag)
	if w.next == nil {
		w.next = &write{due: due, timer: time.NewTimer(lag)}
		w.next.Future, w.next.complete = call.NewFuture[struct{}]()
	}
	w.next.store = store
	if due.Before(w.next.due) {
		w.next.due = due
		w.next.timer.Reset(lag)
	}
	if !w.running {
		w.running = true
		w.calls.Go(func() string { return w.name }, w.run)
	}
	return w.next.Future
}

// run makes the writes until none waits. If the folder is not locked it drops them.
func (w *writer) run() {
	locked := w.folder.awaitLock()
	for next := w.waiting(); next != nil; next = w.waiting() {
		<-next.timer.C
		if !w.take(next) {
			continue
		}
		var err error
		if locked {
			err = next.store()
		}
		next.complete(struct{}{}, err)
	}
}

// waiting returns the write that waits. If there is none it returns nil, and run has to end.
func (w *writer) waiting() *write {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.running = w.next != nil
	return w.next
}

// take ends the wait of a write. It returns false if the write was dropped.
func (w *writer) take(waited *write) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.next != waited {
		return false
	}
	w.next = nil
	return true
}

// close makes the write that waits due. No other is accepted from now on.
func (w *writer) close() {
	if w == nil {
		return
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	if w.next != nil {
		w.next.timer.Reset(0)
	}
}

// drop gives the write that waits up, with an error.
func (w *writer) drop(err error) {
	if w == nil {
		return
	}
	w.mu.Lock()
	dropped := w.next
	w.next = nil
	w.mu.Unlock()
	if dropped != nil {
		dropped.complete(struct{}{}, err)
	}
}
