package shutdown

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// outline is the report without its pods. That it was overtaken counts when it has ended: until
// then the shutdown goes on, and may be taken up.
func (r *record) outline(ended time.Time) Report {
	errs := texts(r.failures())
	if r.resumed != nil {
		errs = append(slices.Clone(r.resumed.Report.Errors), errs...)
	}
	return Report{
		Kind:      r.event.Kind,
		Origin:    r.event.Origin,
		Started:   r.began,
		Ended:     ended,
		Cancelled: r.halt.cancelled() || !ended.IsZero() && r.halt.retired(),
		Errors:    errs,
	}
}

// result gives the report as it will stand when it is asked for: a pod that has
// not ended by then has no end in it, and one that was never signalled is not in
// it. It may be asked by another goroutine while the drain goes on.
func (r *record) result(ended time.Time) func() Report {
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

// pods gives the reports of the pods as they are now. Those that will not change are made
// once: of very many pods they are a large part of what the drain keeps in memory.
func (r *record) pods(before []PodReport) []PodReport {
	known := r.roster.All()
	if kept := r.settled.Load(); kept != nil && kept.kills == len(known) {
		return kept.pods
	}
	pods, settled := podReports(before, known, r.flushes)
	if settled {
		r.settled.Store(&settledPods{kills: len(known), pods: pods})
	}
	return pods
}

// settledPods are the reports of so many pods, all of which have ended.
type settledPods struct {
	kills int
	pods  []PodReport
}

// resumedTable is the timetable of the former agent, on this one's clock.
func (r *record) resumedTable(opts plan.Options) plan.Timetable {
	p := r.resumed
	return plan.ResumeTimetable(plan.Resumed{
		Schedule: p.Schedule,
		First:    r.ledger.moment(p.Start),
		Release:  r.ledger.moment(p.HostEnd),
		Late:     p.Late,
	}, opts)
}
