package store

import (
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// writer makes the writes of one file, one after the other. Of the writes that wait for their turn
// only the newest is made. Its goroutine runs while a write waits or is being made.
type writer struct {
	name   string // of its goroutine
	calls  *call.Group
	folder *folder

	mu      sync.Mutex // guards all below
	next    *write     // the write that waits; nil: none
	running bool       // the goroutine runs
	closed  bool       // nothing is written any more
	refusal error      // the result of what is saved then; nil: nothing was to be written ever
}

// write is a write that waits for its turn or is being made.
type write struct {
	*call.Future[struct{}]

	complete func(struct{}, error)
	store    func() error
	due      time.Time
	ready    chan struct{} // closed by fire
	fire     func()        // makes the write due now; a second call does nothing
	timer    *time.Timer   // calls fire; nil: fire was called
}

// dueIn makes the write due after a lag. Each lag has a timer of its own: Reset of a timer whose
// channel another goroutine receives from may spin for ever in a synctest bubble of Go 1.25.
func (w *write) dueIn(lag time.Duration) {
	w.stop()
	if w.due = time.Now().Add(lag); lag <= 0 {
		w.fire()
	} else {
		w.timer = time.AfterFunc(lag, w.fire)
	}
}

// stop stops the timer.
func (w *write) stop() {
	if w.timer != nil {
		w.timer.Stop()
		w.timer = nil
	}
}

// save has store called after a lag and after the write that is being made. If a write waits
// already, it calls this store in place of its own, and it is due at the earlier of both times.
func (w *writer) save(lag time.Duration, store func() error) *call.Future[struct{}] {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		future, complete := call.NewFuture[struct{}]()
		complete(struct{}{}, w.refusal)
		return future
	}
	if w.next == nil {
		ready := make(chan struct{})
		w.next = &write{ready: ready, fire: sync.OnceFunc(func() { close(ready) })}
		w.next.Future, w.next.complete = call.NewFuture[struct{}]()
		w.next.dueIn(lag)
	} else if time.Now().Add(lag).Before(w.next.due) {
		w.next.dueIn(lag)
	}
	w.next.store = store
	if !w.running {
		w.running = true
		w.calls.Go(func() string { return w.name }, w.run)
	}
	return w.next.Future
}

// run makes the writes until none waits. If the folder is not locked it drops them.
func (w *writer) run() {
	<-w.folder.decided
	locked := w.folder.decide(nil)
	for {
		w.mu.Lock()
		next := w.next
		w.running = next != nil
		w.mu.Unlock()
		if next == nil {
			return
		}
		<-next.ready
		if next = w.take(); next == nil { // dropped
			continue
		}
		var err error
		if locked {
			err = next.store()
		}
		next.complete(struct{}{}, err)
	}
}

// take ends the wait of a write and returns it; nil: none waits.
func (w *writer) take() *write {
	w.mu.Lock()
	defer w.mu.Unlock()
	taken := w.next
	w.next = nil
	if taken != nil {
		taken.stop()
		taken.fire() // run may wait for one that was dropped
	}
	return taken
}

// close makes the write that waits due. No other is accepted from now on.
func (w *writer) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed, w.refusal = true, errClosed
	if w.next != nil {
		w.next.fire()
	}
}

// drop gives the write that waits up, with an error.
func (w *writer) drop(err error) {
	if dropped := w.take(); dropped != nil {
		dropped.complete(struct{}{}, err)
	}
}
