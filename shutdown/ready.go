package shutdown

import (
	"sync"
	"sync/atomic"
)

// readiness is the channel that Ready returns. It is closed after the first attempts to take the inhibitor
// lock and to lock the state folder.
type readiness struct {
	closed    chan struct{}
	close     func()
	host      sync.Once
	folder    sync.Once
	remaining atomic.Int32 // attempts
}

func (r *readiness) init() {
	r.closed = make(chan struct{})
	r.close = sync.OnceFunc(func() { close(r.closed) })
	r.remaining.Store(2)
}

// hostTried and folderTried are called after every attempt; the first call of each counts.
func (r *readiness) hostTried()   { r.host.Do(r.tried) }
func (r *readiness) folderTried() { r.folder.Do(r.tried) }

func (r *readiness) tried() {
	if r.remaining.Add(-1) == 0 {
		r.close()
	}
}

// opening is the time in which the state log is read, openTime at most. Announcements wait for its end,
// because they may be about the shutdown in the log, whose deadlines then apply.
type opening struct {
	over chan struct{} // closed at the end

	mu      sync.Mutex // guards all below
	waiting []func()   // called at the end, in order
	isOver  bool
}

// then calls f at the end of the opening, or now if it is over. It never blocks, because its caller still
// has to take the inhibitor lock.
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

// end ends the opening. Further calls do nothing.
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
