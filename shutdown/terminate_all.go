package shutdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// terminateAll implements TerminateAll. The first call begins the drain, and all calls wait for it:
//
//   - If ctx has ended before the first call, nothing is drained. The next call then counts as the first.
//   - If the drain ends, the call waits for OnReport, and returns the drain's report.
//   - If ctx ends before the drain does, the call returns the current report, or an empty one if the drain has not begun.
//     If no other call waits, the drain stops.
func (s *shell) terminateAll(ctx context.Context) (Report, error) {
	s.setUpCalls(ctx)
	if err := s.beginTerminateAll(ctx); err != nil {
		return Report{}, errors.Join(fmt.Errorf("TerminateAll has signalled no pod, because its context had ended: %w", err), s.endCalls(time.Now()))
	}
	select {
	case <-s.terminated:
	case <-ctx.Done():
	}
	report := s.endTerminateAll(ctx)
	return report, errors.Join(report.Err(), context.Cause(ctx), s.endCalls(time.Now().Add(hangTime)))
}

// beginTerminateAll counts a call, and begins the drain if it is the first one. If ctx has ended before the first call, it only
// returns the cause of that.
func (s *shell) beginTerminateAll(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	drain, _ := s.node.TerminateAllDrain() // nil: none has begun yet
	isFirstCall := drain == nil && s.terminateAllCalls == 0
	if err := context.Cause(ctx); err != nil && isFirstCall {
		return err
	}
	s.terminateAllCalls++
	s.stepLocked(node.TerminateAll{WallTime: s.opts.Clock.Now()})
	return nil
}

// endTerminateAll counts a call that no longer waits for the drain, and stops the drain if ctx has ended and no other call waits.
// It returns the drain's report: after OnReport if the drain is over, and an empty one if the drain has not begun.
func (s *shell) endTerminateAll(ctx context.Context) Report {
	s.mu.Lock()
	s.terminateAllCalls--
	if isLastCall := s.terminateAllCalls == 0; isLastCall && ctx.Err() != nil {
		s.stepLocked(node.StopTerminateAll{})
	}
	drain, isOver := s.node.TerminateAllDrain()
	s.mu.Unlock()
	if drain == nil {
		return Report{}
	}
	if isOver {
		s.awaitReport(ctx, drain.Number)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.reportOf(drain)
}
