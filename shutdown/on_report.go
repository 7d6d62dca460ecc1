package shutdown

import (
	"context"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// onReportTime is how long TerminateAll waits for OnReport.
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
	isFirst := !r.isCalled
	if isFirst {
		r.isCalled = true
		close(r.called)
	}
	s.start(e, "Options.OnReport", func(ctx context.Context) error {
		if s.opts.OnReport != nil {
			s.opts.OnReport(ctx, report)
		}
		return nil
	}, func(answer) node.Input {
		if isFirst {
			close(r.returned)
		}
		return nil
	})
}

// reporting is the first call of OnReport for one shutdown.
type reporting struct {
	isCalled bool
	called   chan struct{} // closed when it is called
	returned chan struct{} // closed when it has returned
}

// reportingOf returns the first call of OnReport for the shutdown with this number, even before that call is made. The
// mutex is held.
func (s *shell) reportingOf(number int) *reporting {
	if s.reported[number] == nil {
		s.reported[number] = &reporting{called: make(chan struct{}), returned: make(chan struct{})}
	}
	return s.reported[number]
}

// awaitReport waits until OnReport is called for the shutdown with this number, and then for at most onReportTime until
// OnReport returns. The end of ctx ends both waits.
func (s *shell) awaitReport(ctx context.Context, number int) {
	s.mu.Lock()
	r := s.reportingOf(number)
	s.mu.Unlock()
	select {
	case <-r.called:
	case <-ctx.Done():
		return
	}
	select {
	case <-r.returned:
	case <-time.After(onReportTime):
	case <-ctx.Done():
	}
}
