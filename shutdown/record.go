package shutdown

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// podsStoredAtOnce is how many pods' reports are stored before the host is let go.
const podsStoredAtOnce = 1000

// record is what is stored of one drain, for an agent that is restarted within it, and
// its report.
type record struct {
	drainRequest
	ctx     context.Context // of Run, or of TerminateAll
	calls   *call.Group
	ledger  *ledger // not used by a local drain
	last    *lastReport
	halt    halt
	roster  *kills.Roster
	flushes bool // final statuses are told to somebody
	times   func(began, ended time.Time)

	header progress                 // how far the drain has come, without its report
	beside []*call.Future[struct{}] // writes that nobody waits for

	mu   sync.Mutex // guards errs
	errs []error    // what went wrong beside the pods
}

// fail logs an error and keeps it for the report; nil is none.
func (r *record) fail(err error) {
	if err == nil {
		return
	}
	klog.FromContext(r.ctx).Error(err, "Shutdown manager met a failure")
	r.keep(err)
}

// keep keeps an error for the report that was logged already.
func (r *record) keep(err error) {
	if err != nil {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.errs = append(r.errs, err)
	}
}

func (r *record) failures() []error {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.errs)
}

// begun shows and stores that a shutdown of the node has begun.
func (r *record) begun() { r.saveTimes(time.Time{}) }

// planned stores the timetable, beside the drain: a slow disk costs the pods nothing.
func (r *record) planned(table plan.Timetable) {
	r.header.Schedule, r.header.Late = table.Schedule(), !table.NotBefore().IsZero()
	if !r.local {
		r.header.Start, r.header.HostEnd = r.ledger.sinceBoot(table.First()), r.ledger.sinceBoot(table.Release())
	}
	r.saveBeside()
}

// bucketsDone is how many buckets a former agent has done.
func (r *record) bucketsDone() int { return r.header.Done }

// bucketDone stores, beside the drain, that bucket i is done.
func (r *record) bucketDone(i int) {
	r.header.Done = i + 1
	r.saveBeside()
}

// interrupted is the end of Run within the shutdown: what is stored stays as it is.
func (r *record) interrupted() { r.last.set(r.began, r.result(time.Time{})) }

// ended stores the report before the host is let go, and waits for that until a time. Of
// very many pods only the outline is stored: theirs is stored beside the release, for
// they would hold the host for longer than they took to end.
func (r *record) ended(ended, until time.Time) {
	report := r.result(ended)
	r.last.set(r.began, report)
	r.saveTimes(ended)
	if r.storesLater() {
		outline := r.outline(ended)
		report = func() Report { return outline }
	}
	_, err := r.save(0, report).Await(r.ctx, until)
	if err != nil && r.ctx.Err() == nil {
		r.fail(err)
	}
}

// endedBeside stores what ended has left for later.
func (r *record) endedBeside(ended time.Time) {
	if r.storesLater() {
		r.beside = append(r.beside, r.save(0, r.result(ended)))
	}
}

// conclude makes the report of a drain whose pods have all ended, and stores it
// if it says more than what is stored.
func (r *record) conclude(ended time.Time, straggled bool) (Report, error) {
	for _, write := range r.beside {
		r.awaitWrite(write)
	}
	report := r.result(ended)()
	r.last.set(report.Started, func() Report { return report })
	if straggled && !r.halt.interrupted() {
		r.awaitWrite(r.save(0, func() Report { return report }))
		report.Errors = texts(r.failures())
		r.last.set(report.Started, func() Report { return report })
	}
	return report, errors.Join(r.failures()...)
}

// awaitWrite waits for a write, and keeps its error. A disk that hangs is waited for as
// long as Run waits for others that do.
func (r *record) awaitWrite(write *call.Future[struct{}]) {
	_, err := write.Await(context.WithoutCancel(r.ctx), time.Now().Add(hangTime))
	r.fail(err)
}

// storesLater tells whether the pods' reports are stored beside the release.
func (r *record) storesLater() bool { return len(r.roster.All()) > podsStoredAtOnce }

// saveBeside stores how far the drain has come while it goes on. Of very many pods it
// stores the outline only: writing it must not cost those that follow.
func (r *record) saveBeside() {
	report := r.result(time.Time{})
	if r.storesLater() {
		outline := r.outline(time.Time{})
		report = func() Report { return outline }
	}
	r.beside = append(r.beside, r.save(storeLag, report))
}

// save stores how far the drain has come.
func (r *record) save(lag time.Duration, report func() Report) *call.Future[struct{}] {
	if r.local {
		return noWrite()
	}
	header := r.header
	return r.ledger.writeProgress(r.writing(lag), func() progress {
		p := header
		p.Report = report()
		return p
	})
}

// saveTimes stores the start and the end of a shutdown of the node, and shows them.
func (r *record) saveTimes(ended time.Time) {
	if r.local {
		return
	}
	r.times(r.began, ended)
	r.beside = append(r.beside, r.ledger.writeTimes(r.writing(storeLag), times{StartTime: r.began, EndTime: ended}))
}

func (r *record) writing(lag time.Duration) writing {
	return writing{ctx: r.ctx, calls: r.calls, shutdown: r.number, lag: lag}
}

// outline is the report without its pods.
func (r *record) outline(ended time.Time) Report {
	return Report{
		Kind:      r.event.Kind,
		Origin:    r.event.Origin,
		Started:   r.began,
		Ended:     ended,
		Cancelled: r.halt.retired(),
		Errors:    texts(r.failures()),
	}
}

// result gives the report as it will stand when it is asked for: a pod that has
// not ended by then has no end in it, and one that was never signalled is not in
// it. It may be asked by another goroutine while the drain goes on. A pod that a former
// agent has signalled too is in it once, as this one knows it.
func (r *record) result(ended time.Time) func() Report {
	outline, all := r.outline(ended), r.roster.All()
	var before []PodReport
	if r.resumed != nil {
		before = r.resumed.Report.Pods
	}
	return func() Report {
		report, again := outline, map[types.NamespacedName]bool{}
		pods := make([]PodReport, 0, len(all))
		for _, k := range all {
			if state := k.State(); state.Signalled {
				pods = append(pods, podReport(k, state, r.flushes))
				if len(before) > 0 {
					again[types.NamespacedName{Namespace: k.Pod.Namespace, Name: k.Pod.Name}] = true
				}
			}
		}
		for _, pod := range before {
			if !again[types.NamespacedName{Namespace: pod.Namespace, Name: pod.Name}] {
				report.Pods = append(report.Pods, pod)
			}
		}
		report.Pods = append(slices.Clip(report.Pods), pods...)
		return report
	}
}

// podReport is what became of one pod so far.
func podReport(k *kills.Kill, state kills.State, flushes bool) PodReport {
	r := PodReport{
		Namespace:      k.Pod.Namespace,
		Name:           k.Pod.Name,
		UID:            k.Pod.UID,
		Priority:       k.Priority,
		Bucket:         k.Bucket,
		GrantedSeconds: state.Seconds,
		Started:        state.Started,
		Ended:          state.Ended,
		Outcome:        state.Result.Outcome,
		Unflushed:      flushes && !state.Acknowledged,
	}
	if state.Err != nil {
		r.Error = state.Err.Error()
	}
	return r
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
