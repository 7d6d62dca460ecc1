package shutdown

import (
	"sync"
	"sync/atomic"
)

// readiness is what Ready returns. It is closed when the host and the state folder were tried.
type readiness struct {
	closed chan struct{}
	close  func()
	host   sync.Once
	folder sync.Once
	left   atomic.Int32
}

// init makes the channel.
func (r *readiness) init() {
	r.closed = make(chan struct{})
	r.close = sync.OnceFunc(func() { close(r.closed) })
	r.left.Store(2)
}

// hostTried says that the first attempt to take the inhibitor lock is over, and folderTried that to lock the folder.
func (r *readiness) hostTried()   { r.host.Do(r.one) }
func (r *readiness) folderTried() { r.folder.Do(r.one) }

func (r *readiness) one() {
	if r.left.Add(-1) == 0 {
		r.close()
	}
}

// opening is the reading of the log. What the host and Trigger announce waits for it, for openTime at
// most: it may be about the shutdown of the log, whose pods have their times.
type opening struct {
	over chan struct{} // closed when nothing waits any more

	mu      sync.Mutex // guards all below
	waiting []func()   // what the host has said, in order
	isOver  bool
}

// then calls f once nothing waits for the log, and does not wait for that: the host has a lock to take.
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

// end says that nothing waits for the log any more.
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
