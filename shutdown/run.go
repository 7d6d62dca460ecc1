package shutdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// hangTime is how long Run and TerminateAll wait for calls that ignore their contexts.
const hangTime = 10 * time.Second

// runTime is how long after NewManager a missing Run is logged.
const runTime = 10 * time.Second

// logMissingRun logs, once, that pods are admitted but nobody watches the host, because Run has not been called within runTime.
func (s *shell) logMissingRun() {
	if isNew := time.Since(s.madeAt) < runTime; isNew || !s.watches() {
		return
	}
	s.runLogged.Do(func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		if s.phase == phaseIdle {
			logger := klog.FromContext(s.ctx)
			s.logLines.Add(func() {
				logger.Info("Pods are admitted, but Manager.Run has not been called: nothing notices a shutdown of the host")
			})
		}
	})
}

// run implements [Manager.Run]. It watches the host and drains the pods in shutdowns until ctx ends, or ends at once if
// Options.RequireStateDir is set and the state folder cannot be used. At the end it releases the lock, waits for the calls in
// progress, and closes the state log (finishRun).
func (s *shell) run(ctx context.Context) error {
	if isFirst := s.beginRun(); !isFirst {
		return errAlreadyRun
	}
	defer s.closeReady() // Ready is closed even if ctx ends early
	s.setUpCalls(ctx)
	if ctx.Err() != nil {
		s.logLines.Add(func() {
			klog.FromContext(ctx).Info("Manager.Run ends at once: its context had already ended")
		})
	}
	// Announcements wait until the state log has been read, but at most openTime (stepAfterOpening).
	s.step(node.LogOpening{})
	slowRead := time.AfterFunc(openTime, s.endSlowOpening)
	defer slowRead.Stop()
	runCtx, stop := context.WithCancelCause(ctx)
	defer stop(nil)
	s.logBucketsWithoutTime(runCtx)
	h, hostEnded := s.startHost(runCtx)
	openErr := s.open(runCtx)
	isFolderUnusable := openErr != nil && ctx.Err() == nil // the end of ctx says nothing about the folder
	var folderErr error                                    // ends Run
	if isFolderUnusable && s.opts.RequireStateDir {
		folderErr = fmt.Errorf("Options.RequireStateDir is set: %w", openErr)
		stop(folderErr)
	}
	<-runCtx.Done()
	return errors.Join(folderErr, s.finishRun(ctx, h, hostEnded))
}

// finishRun ends Run after the end of its context: it releases the lock, waits for the watch of the host and, at most until the time
// that endRun returns, for the calls in progress, and closes the state log. h and hostEnded are the results of startHost.
func (s *shell) finishRun(ctx context.Context, h *host.Host, hostEnded <-chan error) error {
	until := s.endRun()
	var closeErr, hostErr error
	if hasHost := h != nil; hasHost {
		closeErr = h.Close(context.WithoutCancel(ctx)) // before endCalls, so that the host does not wait for calls that hang
		hostErr = <-hostEnded
	}
	hangingErr := s.endCalls(until)
	return errors.Join(s.interruptedErr(), closeErr, hostErr, hangingErr, s.closeLog(until))
}

// beginRun begins the running phase. isFirst is false, and nothing changes, if Run was called before.
func (s *shell) beginRun() (isFirst bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.phase != phaseIdle {
		return false
	}
	s.phase = phaseRunning
	return true
}

// endRun tells the core (package node) that the context of Run has ended. It returns until when Run waits for calls that ignore
// their contexts: hangTime after now or, if a drain was interrupted, hangTime after the time at which that drain would have
// stopped waiting.
func (s *shell) endRun() (until time.Time) {
	s.step(node.RunEnds{})
	s.mu.Lock()
	defer s.mu.Unlock()
	s.phase = phaseOver
	giveUpFrom := time.Now()
	if interrupted := s.node.Shutdown(); interrupted != nil && s.node.State() == node.StateDraining {
		giveUpFrom = times.Later(giveUpFrom, s.log.TimeOf(interrupted.WaitEnd()))
	}
	return giveUpFrom.Add(hangTime)
}

// interruptedErr returns the error of a Run that ended during a drain; nil if there was no drain. It names the pods that are
// not known to have ended: those that were killed, and those that the drain would still have killed.
func (s *shell) interruptedErr() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.node.State() != node.StateDraining {
		return nil
	}
	errs := append([]error{ErrInterrupted}, s.reportOf(s.node.Shutdown()).podErrs()...)
	for _, p := range s.node.PodsToKill() {
		if p.Signalled.IsZero() {
			errs = append(errs, fmt.Errorf("pod %s/%s: not killed", p.Namespace, p.Name))
		}
	}
	return errors.Join(errs...)
}

// setUpCalls is called by Run and TerminateAll when they begin. The first of those that are under way sets up the context of the
// calls to embedder code, which has the values of its ctx, but does not end with it. It also starts the timer and asks for the
// pod policies.
func (s *shell) setUpCalls(ctx context.Context) {
	s.mu.Lock()
	s.users++
	if isFirst := s.users == 1; !isFirst {
		s.mu.Unlock()
		return
	}
	callCtx, cancel := context.WithCancel(context.WithoutCancel(ctx))
	stepped := make(chan struct{}, 1)
	s.ctx, s.cancel, s.stepped = callCtx, cancel, stepped
	s.mu.Unlock()
	s.calls.Go(func() string { return "the timer of the drain" }, func() { s.runTimer(callCtx, stepped) })
	if s.opts.Policy != nil {
		s.askPolicies(callCtx)
	}
}

// endCalls is called by Run and TerminateAll when they end. The last of them cancels the calls to embedder code, and waits for
// them to return, until the given time. The error names those that have not returned.
func (s *shell) endCalls(until time.Time) error {
	s.mu.Lock()
	s.users--
	if isLast := s.users == 0; !isLast {
		s.mu.Unlock()
		return nil
	}
	s.cancel()
	s.mu.Unlock()
	return s.calls.WaitUntil(until)
}
