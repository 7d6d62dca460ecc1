package shutdown

import (
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// openTime is how long the opening waits for the state log to be read.
const openTime = 100 * time.Millisecond

// opening is the first part of Run. It ends when the state log is read, or after openTime. Announcements wait for its
// end: they may be about the shutdown in the log, and must not begin another shutdown with later deadlines.
type opening struct {
	over chan struct{} // closed at the end

	mu      sync.Mutex // guards all below
	waiting []func()   // called at the end, in order
	isOver  bool
}

// whenOver calls f now if the opening is over; otherwise it returns at once, and [opening.end] calls f later. It must not
// wait, because its caller still has to take the inhibitor lock.
func (o *opening) whenOver(f func()) {
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

// end ends the opening. It calls the functions that were passed to whenOver, in order. It holds the mutex in the
// meantime, so that a function that is passed to whenOver now is called after them. Further calls do nothing.
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

// endSlowOpening ends the opening if reading the log takes longer than openTime: announcements no longer wait for the log.
// All pods are refused from now on until the log has been read, because it may have an unfinished shutdown.
func (s *shell) endSlowOpening() {
	defer s.opening.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if isStillReading := s.node.State() == node.StateOpening; isStillReading {
		logger := klog.FromContext(s.ctx)
		s.logLines.Add(func() { logger.Info("Pods are refused until the state log has been read", "folder", s.opts.StateDir) })
		snapshot := *s.admission.Load()
		snapshot.refuses, snapshot.until = true, time.Time{}
		s.admission.Store(&snapshot)
	}
}

// readySignal has the channel that Ready returns. The channel is closed after the first attempt to get the inhibitor lock
// and the first attempt to lock the state folder, whether or not they succeeded.
type readySignal struct {
	closed chan struct{} // the channel
	close  func()        // closes it; may be called again
	// Call hostTried after an attempt to get the inhibitor lock, and folderTried after an attempt to lock the state
	// folder. Only the first call of each counts.
	hostTried, folderTried func()
}

// newReadySignal returns a signal whose channel is closed when both hostTried and folderTried have been called.
func newReadySignal() readySignal {
	closed := make(chan struct{})
	closeOnce := sync.OnceFunc(func() { close(closed) })
	var tried atomic.Int32
	count := func() {
		if tried.Add(1) == 2 {
			closeOnce()
		}
	}
	return readySignal{closed: closed, close: closeOnce, hostTried: sync.OnceFunc(count), folderTried: sync.OnceFunc(count)}
}
