package shutdown

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// outline returns the report without its pods. An overtaken drain counts as cancelled only after
// its end: until then the shutdown goes on, and an agent may resume it.
func (r *record) outline(ended time.Time) Report {
	errs := texts(r.failures())
	if r.resumed != nil {
		errs = append(slices.Clone(r.resumed.Report.Errors), errs...)
	}
	return Report{
		Kind:      r.event.Kind,
		Origin:    r.event.Origin,
		Started:   r.started,
		Ended:     ended,
		Cancelled: r.halt.cancelled() || !ended.IsZero() && r.halt.cancelledOrReplaced(),
		Errors:    errs,
	}
}

// reportLater returns a function that makes the report with the states of the pods at the time of
// the call. A pod that runs then has no end in it. Any goroutine may call it.
func (r *record) reportLater(ended time.Time) func() Report {
	outline := r.outline(ended)
	var before []PodReport
	if r.resumed != nil {
		before = r.resumed.Report.Pods
	}
	return func() Report {
		report := outline
		report.Pods = r.pods(before)
		return report
	}
}

// pods returns the reports of the pods. Complete reports are made only once: of very many pods
// they are a large part of the memory of a drain.
func (r *record) pods(before []PodReport) []PodReport {
	known := r.roster.All()
	if kept := r.completePods.Load(); kept != nil && kept.kills == len(known) {
		return kept.pods
	}
	pods, complete := podReports(before, known, r.flushes)
	if complete {
		r.completePods.Store(&completePodReports{kills: len(known), pods: pods})
	}
	return pods
}

// completePodReports holds the reports of all pods of a drain after the end of the last one.
type completePodReports struct {
	kills int
	pods  []PodReport
}

// resumedTable returns the timetable of the previous agent, converted to the clock of this
// process.
func (r *record) resumedTable(opts plan.Options) plan.Timetable {
	p := r.resumed
	return plan.ResumeTimetable(plan.Resumed{
		Schedule: p.Schedule,
		First:    r.ledger.timeOf(p.Start),
		Release:  r.ledger.timeOf(p.HostEnd),
		Late:     p.Late,
	}, opts)
}
