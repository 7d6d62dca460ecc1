package shutdown

import (
	"context"
	"fmt"
	"os"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/statelog"
)

// onReportTime is how long TerminateAll waits for OnReport.
const onReportTime = 10 * time.Second

// report makes the report of a shutdown the result of LastReport, and passes it to OnReport. A call of TerminateAll may
// wait for the return of the shutdown's first OnReport, even if that is not set. The mutex is held.
func (s *shell) report(e node.Effect) {
	of := e.Shutdown
	report := s.reportOf(of)
	s.last = of // not the report: a pod that outlives the shutdown gets its Ended later
	logger := klog.FromContext(s.ctx).WithValues("pods", len(report.Pods), "notEnded", len(report.podErrs()), "errors", len(report.Errors), "cancelled", report.Cancelled)
	s.lines.write(func() { logger.Info("Shutdown manager completed processing shutdown event") })
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

// reportingOf returns the first call of OnReport for the shutdown with this number, which may not have been made yet. The
// mutex is held.
func (s *shell) reportingOf(number int) *reporting {
	if s.reported[number] == nil {
		s.reported[number] = &reporting{called: make(chan struct{}), returned: make(chan struct{})}
	}
	return s.reported[number]
}

// awaitReport waits until OnReport has been called for the shutdown with this number, and then at most onReportTime until
// it returns. The end of ctx ends both waits. It returns nothing, because TerminateAll returns the report in any case.
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

// reportOf returns the current report of a shutdown. The mutex is held.
func (s *shell) reportOf(of *node.Shutdown) Report {
	return reportOf(of, s.node.PodsOf(of))
}

// lastReport implements LastReport.
func (s *shell) lastReport() (Report, bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.last != nil:
		return s.reportOf(s.last), true
	case s.stored != nil:
		return *s.stored, true
	default:
		return Report{}, false
	}
}

// showStoredShutdown makes the shutdown in the log the result of LastReport, unless this agent has had one already, and
// shows the times in the kubelet's state file in the metrics.
func (s *shell) showStoredShutdown(c statelog.Contents) {
	stored := c.Entries
	s.mu.Lock()
	defer s.mu.Unlock()
	if stored.Shutdown != nil && s.node.Shutdown() == nil {
		report := reportOf(stored.Shutdown, node.PodsOf(stored.Shutdown, stored.Pods))
		s.stored = &report
	}
	if times := c.Times; times != (statelog.Times{}) {
		s.setTimes(times.StartTime, times.EndTime)
	}
}

// StoredReport reads the report of the last shutdown from a state folder ([Options.StateDir]), for programs
// other than the agent. found is false if no report is stored. The error names a file that is not usable.
// The report has no end if the shutdown has not ended. StoredReport neither locks nor changes the folder.
func StoredReport(dir string) (report Report, found bool, err error) {
	if info, err := os.Stat(dir); err != nil {
		return Report{}, false, fmt.Errorf("failed to read the state folder: %w", err)
	} else if !info.IsDir() {
		return Report{}, false, fmt.Errorf("the state folder %q is no directory", dir)
	}
	contents, err := statelog.ReadFile(dir)
	stored := contents.Entries
	if stored.Shutdown == nil || err != nil {
		return Report{}, false, err
	}
	return reportOf(stored.Shutdown, node.PodsOf(stored.Shutdown, stored.Pods)), true, nil
}
