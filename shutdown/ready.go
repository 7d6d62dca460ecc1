package shutdown

import (
	"sync"
	"sync/atomic"
)

// readySignal has the channel that Ready returns. It is closed once both the inhibitor lock and the lock of
// the state folder have been tried for the first time, whether or not that succeeded.
type readySignal struct {
	closed    chan struct{} // the channel
	close     func()        // closes it; may be called again
	host      sync.Once     // the inhibitor lock has been tried
	folder    sync.Once     // the lock of the folder has been tried
	remaining atomic.Int32  // how many of these two have not
}

// init makes the channel, to be closed after two attempts.
func (r *readySignal) init() {
	r.closed = make(chan struct{})
	r.close = sync.OnceFunc(func() { close(r.closed) })
	r.remaining.Store(2)
}

// hostTried is called after each attempt to get the lock, folderTried after each attempt to lock the state folder.
// Only the first call of each counts.
func (r *readySignal) hostTried()   { r.host.Do(r.tried) }
func (r *readySignal) folderTried() { r.folder.Do(r.tried) }

// tried counts one of the two attempts, and closes the channel after the second one.
func (r *readySignal) tried() {
	if r.remaining.Add(-1) == 0 {
		r.close()
	}
}

// opening is the first part of Run, in which the state log is read, openTime at most. Announcements wait for
// its end: they may be about the shutdown in the log, and must not begin another one with later deadlines.
type opening struct {
	over chan struct{} // closed at the end

	mu      sync.Mutex // guards all below
	waiting []func()   // called at the end, in order
	isOver  bool
}

// then calls f now if the opening is over; otherwise end will call it. It does not wait for that, because its
// caller still has to take the inhibitor lock.
func (o *opening) then(f func()) {
	o.mu.Lock()
	isOver := o.isOver
	if !isOver {
		o.waiting = append(o.waiting, f)
	}
	o.mu.Unlock()
	if isOver {
		f()
	}
}

// end ends the opening and calls the functions that have waited for that. Further calls do nothing.
func (o *opening) end() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.isOver {
		return
	}
	for _, f := range o.waiting {
		f()
	}
	o.waiting, o.isOver = nil, true
	close(o.over)
}
