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
	s.mu.Lock()
	drain, _ := s.node.TerminateAllDrain() // nil: none has begun yet
	isFirstCall := drain == nil && s.terminateAllCalls == 0
	if err := context.Cause(ctx); err != nil && isFirstCall {
		s.mu.Unlock()
		return Report{}, errors.Join(fmt.Errorf("TerminateAll has signalled no pod, because its context had ended: %w", err), s.endCalls(time.Now()))
	}
	s.terminateAllCalls++
	s.stepLocked(node.TerminateAll{WallTime: s.opts.Clock.Now()})
	s.mu.Unlock()
	select {
	case <-s.terminated:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.terminateAllCalls--
	if wasLastCall := s.terminateAllCalls == 0; wasLastCall && ctx.Err() != nil {
		s.stepLocked(node.StopTerminateAll{})
	}
	drain, isOver := s.node.TerminateAllDrain()
	s.mu.Unlock()
	var report Report
	if drain != nil { // nil: ctx has ended before any drain has begun
		if isOver { // the drain is over: TerminateAll returns after OnReport
			s.awaitReport(ctx, drain.Number)
		}
		s.mu.Lock()
		report = s.reportOf(drain)
		s.mu.Unlock()
	}
	return report, errors.Join(report.Err(), context.Cause(ctx), s.endCalls(time.Now().Add(hangTime)))
}
