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

// stepAfterOpening passes an input to the core (package node), or keeps it for endOpening, if the opening is not over. It does not
// wait for that, because its caller still has to take the inhibitor lock.
func (s *shell) stepAfterOpening(in node.Input) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.isOpeningOver {
		s.stepLocked(in)
	} else {
		s.earlyInputs = append(s.earlyInputs, in)
	}
}

// endOpening ends the opening, in which inputs such as announcements wait for the state log, and passes those that have waited
// to the core (package node). Further calls do nothing.
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

// endSlowOpening is called openTime after the start of Run: announcements no longer wait for the log.
func (s *shell) endSlowOpening() {
	s.refuseUntilLogIsRead()
	s.endOpening()
}

// refuseUntilLogIsRead refuses all pods if the log is still being read, because it may have an unfinished shutdown. When the log
// has been read, updateAdmission ends that.
func (s *shell) refuseUntilLogIsRead() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node.State() != node.StateAwaitingLog {
		return
	}
	logger := klog.FromContext(s.ctx)
	s.logLines.Add(func() { logger.Info("Pods are refused until the state log has been read", "folder", s.opts.StateDir) })
	s.admission.Store(&admissionSnapshot{refuses: true})
}

// endFirstAttempt sets isOver, which is isLockAttemptOver or isFolderAttemptOver. Once the first attempt to get the inhibitor
// lock and the first attempt to lock the state folder are both over, the channel of Manager.Ready is closed.
func (s *shell) endFirstAttempt(isOver *bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	*isOver = true
	if s.isLockAttemptOver && s.isFolderAttemptOver {
		s.closeReady()
	}
}
