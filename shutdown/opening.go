package shutdown

import (
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// openTime is how long reading the log may take before pods are refused, because the log may have a
// shutdown.
const openTime = 100 * time.Millisecond

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

// refuseWhileOpening is called when the log has not been read within openTime. It refuses all pods until the log is
// read. Announcements stop waiting for the log.
func (s *shell) refuseWhileOpening() {
	defer s.opening.end()
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node.State() == node.StateOpening {
		logger := klog.FromContext(s.ctx)
		s.lines.Write(func() { logger.Info("Pods are refused until the state log has been read", "folder", s.opts.StateDir) })
		now := *s.admission.Load()
		now.refuses, now.until = true, time.Time{}
		s.admission.Store(&now)
	}
}
