package shutdown

import (
	"context"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
)

const (
	// folderTime is how long Run waits for the lock of the state folder: the previous agent may still be ending.
	folderTime = 10 * time.Second
	// readTime is the timeout for reading the state files.
	readTime = 5 * time.Second
)

// open locks the state folder, reads the log and passes it to the core (package node). It then ends the opening, if it has not
// ended yet. If the folder cannot be locked, or the log cannot be read in time, open returns that error, the core gets an empty
// log, and nothing is stored. All other problems are only reported to the core.
func (s *shell) open(ctx context.Context) error {
	defer close(s.logOpened)
	defer s.endOpening()
	contents, warning, err := s.lockAndRead(ctx)
	for _, problem := range append([]error{s.log.BootErr(), warning, err}, contents.Errs...) {
		if problem != nil {
			s.step(node.Failed{Text: problem.Error()})
		}
	}
	s.restoreLastReport(contents)
	isStoring := err == nil && s.opts.StateDir != ""
	s.useLog(contents, isStoring)
	if !s.watches() && err == nil { // no host will say whether the previous agent's shutdown is still pending: the log decides
		unknown := node.HostAnswered{Known: false, WallTime: s.opts.Clock.Now()}
		s.step(unknown)
	}
	s.endFirstAttempt(&s.isFolderAttemptOver) // for Ready
	return err
}

// lockAndRead locks the state folder and reads the log. The warning is about a folder that is locked nevertheless.
func (s *shell) lockAndRead(ctx context.Context) (contents statelog.Contents, warning, err error) {
	lockCtx, cancelLock := context.WithTimeout(ctx, folderTime)
	defer cancelLock()
	if warning, err = s.log.Lock(lockCtx); err != nil {
		return statelog.Contents{}, warning, err
	}
	readCtx, cancelRead := context.WithTimeout(ctx, readTime)
	defer cancelRead()
	contents, err = s.log.Read(readCtx)
	return contents, warning, err
}

// useLog passes the log to the core (package node). isStoring says whether this agent writes the log from then on: if it replaced
// the log earlier, the final statuses that are pending in the old log would be lost.
func (s *shell) useLog(contents statelog.Contents, isStoring bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.isStoring = isStoring
	s.stepLocked(node.LogRead{Entries: contents.Entries, SameBoot: contents.SameBoot})
	hasReport := s.storedReport != nil || s.lastShutdown != nil
	if newest := s.node.Shutdown(); hasReport && newest != nil {
		s.lastShutdown = newest // storedReport does not change any more, but the shutdown may resume and its pods may end
	}
}

// store appends the effect's shutdown and pods to the log. NewLog replaces the log by them. The mutex is held.
func (s *shell) store(e node.Effect) {
	if !s.isStoring {
		return
	}
	entries := node.Entries{Shutdown: e.Shutdown, Pods: e.Pods}
	if e.Do == node.NewLog {
		s.newestWrite = s.log.Begin(entries)
	} else {
		s.newestWrite = s.log.Append(entries)
	}
	s.logWait = nil
}

// logWritten is called after each write to the log, with its error or nil. The log repeats a failed write by itself.
func (s *shell) logWritten(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil && s.isStoring {
		s.stepLocked(node.Failed{Text: err.Error()})
	}
	s.updateAdmission() // it depends on whether a write is under way
}

// isWriting reports whether a write to the log is under way. The mutex is held.
func (s *shell) isWriting() bool { return s.newestWrite != nil && !s.newestWrite.IsDone() }

// sync syncs the log, and then tells the core (package node). It first waits until Run has read the log, because nothing is
// written earlier. A failure goes into the drain's report.
func (s *shell) sync(e node.Effect) {
	ctx := s.ctx
	s.calls.Go(func() string { return "the sync of the state log" }, func() {
		select {
		case <-s.logOpened:
		case <-ctx.Done():
		}
		if _, err := s.log.Sync().Wait(ctx); err != nil && ctx.Err() == nil {
			s.step(node.Failed{Text: err.Error()})
		}
		s.step(node.CallReturned{Call: e.Call})
	})
}

// closeLog closes the log, and waits for that at most until the given time. A TerminateAll that is still under way stores
// nothing from then on.
func (s *shell) closeLog(until time.Time) error {
	s.mu.Lock()
	s.isStoring = false
	s.mu.Unlock()
	return s.log.Close(until)
}

// showTimes writes the times of the newest shutdown to the metrics and the kubelet's state file, but, like the kubelet,
// only if the gate GracefulNodeShutdownBasedOnPodPriority is on. The mutex is held.
func (s *shell) showTimes() {
	if newest := s.node.Shutdown(); newest != nil && s.byPriority {
		started, ended := wallTimes(newest)
		s.setTimes(started, ended)
	}
}

// setTimes updates the metrics and, during Run, the kubelet's state file, if the times have changed. SaveTimes does nothing if
// another agent uses the folder. The mutex is held.
func (s *shell) setTimes(started, ended time.Time) {
	if times := [2]time.Time{started, ended}; times != s.shownTimes {
		s.shownTimes = times
		s.opts.Metrics.Times(started, ended)
		if s.phase == phaseRunning {
			s.log.SaveTimes(statelog.Times{StartTime: started, EndTime: ended})
		}
	}
}
