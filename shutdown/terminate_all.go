package shutdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// terminateAll implements TerminateAll. All calls wait for the same drain, the first one begins it:
//
//   - If ctx has ended before the first call, nothing is drained. The next call then counts as the first.
//   - If the drain ends, the call waits for OnReport, and returns the drain's report.
//   - If ctx ends first, the call returns the report as it is then, or an empty one if the drain has not begun. If no
//     other call waits, the drain stops.
func (s *shell) terminateAll(ctx context.Context) (Report, error) {
	s.enter(ctx)
	s.mu.Lock()
	begun, _ := s.node.Terminated() // nil: TerminateAll waits for no drain yet
	isFirst := begun == nil && s.waiting == 0
	if err := context.Cause(ctx); err != nil && isFirst {
		s.mu.Unlock()
		return Report{}, errors.Join(fmt.Errorf("TerminateAll has signalled no pod, because its context had ended: %w", err), s.leave(time.Now()))
	}
	s.waiting++
	s.stepLocked(node.TerminateAll{Wall: s.opts.Clock.Now()})
	s.mu.Unlock()
	select {
	case <-s.terminated:
	case <-ctx.Done():
	}
	s.mu.Lock()
	s.waiting--
	if s.waiting == 0 && ctx.Err() != nil {
		s.stepLocked(node.StopTerminateAll{})
	}
	drained, isOver := s.node.Terminated()
	s.mu.Unlock()
	var report Report
	if drained != nil { // otherwise ctx has ended before a drain has begun
		if isOver { // its report is passed to OnReport first, as TerminateAll promises
			s.awaitReport(ctx, drained.Number)
		}
		s.mu.Lock()
		report = s.reportOf(drained)
		s.mu.Unlock()
	}
	return report, errors.Join(report.Err(), context.Cause(ctx), s.leave(time.Now().Add(hangTime)))
}
