package shutdown

import (
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// The opening is the first part of Run. It ends when the state log is read, or after openTime. Announcements wait for its
// end: they may be about the shutdown in the log, and must not begin another shutdown with later deadlines.

// openTime is how long the opening waits for the state log to be read.
const openTime = 100 * time.Millisecond

// stepAfterOpening passes an input to the core (package node), once the opening is over: once the state log has been read, or
// openTime has passed. It returns at once, even if the input has to wait for that, because its caller still has to take the
// inhibitor lock.
func (s *shell) stepAfterOpening(in node.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOpeningOver {
		s.stepLocked(in)
	} else {
		s.earlyInputs = append(s.earlyInputs, in)
	}
}

// endOpening ends the opening, in which announcements wait for the state log, and passes those that have waited to the core
// (package node). Further calls do nothing.
func (s *shell) endOpening() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOpeningOver {
		return
	}
	s.isOpeningOver = true
	for _, in := range s.earlyInputs {
		s.stepLocked(in)
	}
	s.earlyInputs = nil
	close(s.openingOver)
}

// endSlowOpening is called openTime after the start of Run, and ends the opening: announcements no longer wait for the log. If
// the log is still being read, all pods are refused until it has been read, because it may have an unfinished shutdown.
func (s *shell) endSlowOpening() {
	defer s.endOpening()
	s.mu.Lock()
	defer s.mu.Unlock()
	if isStillReading := s.node.State() == node.StateAwaitingLog; isStillReading {
		logger := klog.FromContext(s.ctx)
		s.logLines.Add(func() { logger.Info("Pods are refused until the state log has been read", "folder", s.opts.StateDir) })
		refusing := *s.admission.Load()
		refusing.refuses, refusing.until = true, time.Time{} // zero: updateAdmission ends it
		s.admission.Store(&refusing)
	}
}

// noteTried notes that one of the two first attempts is over: the one to get the inhibitor lock (hostTried) or the one to
// lock the state folder (folderTried). tried is that field. Once both are over, the channel of Manager.Ready is closed.
func (s *shell) noteTried(tried *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*tried = true
	if s.hostTried && s.folderTried {
		s.closeReady()
	}
}
