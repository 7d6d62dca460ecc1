package shutdown

import (
	"context"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// onReportTime is how long TerminateAll waits for OnReport after its call.
const onReportTime = 10 * time.Second

// report makes the report of a shutdown the result of LastReport, and passes it to OnReport. TerminateAll may wait for
// the first OnReport of the shutdown, also if no OnReport is set. The mutex is held.
func (s *shell) report(e node.Effect) {
	of := e.Shutdown
	report := s.reportOf(of)
	s.showReport(of)
	logger := klog.FromContext(s.ctx).WithValues("pods", len(report.Pods), "notEnded", len(report.podErrs()), "errors", len(report.Errors), "cancelled", report.Cancelled)
	s.logLines.Add(func() { logger.Info("Shutdown manager completed processing shutdown event") })
	r := s.reportingOf(of.Number)
	time.AfterFunc(onReportTime, r.end)
	s.start(e, "Options.OnReport", func(ctx context.Context) error {
		if s.opts.OnReport != nil {
			s.opts.OnReport(ctx, report)
		}
		return nil
	}, func(answer) node.Input {
		r.end()
		return nil
	})
}

// reporting is the first call of OnReport for one shutdown.
type reporting struct {
	over chan struct{} // closed when it has returned, or onReportTime after it was called
	end  func()        // closes over; may be called again
}

// reportingOf returns the first call of OnReport for the shutdown with this number, even before that call is made. The
// mutex is held.
func (s *shell) reportingOf(number int) reporting {
	r, isKnown := s.reported[number]
	if !isKnown {
		over := make(chan struct{})
		r = reporting{over: over, end: sync.OnceFunc(func() { close(over) })}
		s.reported[number] = r
	}
	return r
}

// awaitReport waits until OnReport has returned for the shutdown with this number, or has had onReportTime, or ctx ends.
func (s *shell) awaitReport(ctx context.Context, number int) {
	s.mu.Lock()
	r := s.reportingOf(number)
	s.mu.Unlock()
	select {
	case <-r.over:
	case <-ctx.Done():
	}
}
