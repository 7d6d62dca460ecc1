package shutdown

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// podsStoredAtOnce is the largest number of pods whose reports are stored while the drain goes
// on.
const podsStoredAtOnce = 1000

const (
	// storeTries bounds the repeated attempts to write the final report, which no later write
	// replaces. A full disk may be full for a moment only.
	storeTries = time.Second
	// storePause is the time between two attempts.
	storePause = 100 * time.Millisecond
)

// record is the state of one drain that is stored, for an agent that resumes it, and the report
// of the drain.
type record struct {
	drainRequest
	createdAt     time.Time       // orders the reports of drains; the times of their events may not
	ctx           context.Context // of Run, or of TerminateAll
	calls         *call.Group
	ledger        *ledger // unused in a local drain
	last          *lastReport
	halt          halt
	roster        *kills.Roster
	flushes       bool      // final statuses are sent to the API server
	recordsBefore []*record // of earlier drains of this agent, the oldest first; see unacknowledgedBefore
	showTimes     func(number uint64, started, ended time.Time)
	// unacknowledged returns the final statuses that the next agent has to send.
	unacknowledged func([]*kills.Kill) []finalStatus

	unsaved      atomic.Bool                        // something is not stored; mostly a queued write will store it
	completePods atomic.Pointer[completePodReports] // nil: some report of a pod may still change

	mu             sync.Mutex                // guards all below
	header         progress                  // the progress without its report
	errs           []error                   // for the report
	lastWrites     [2]*call.Future[struct{}] // of the progress file and of the kubelet's file; nil: none
	writeHasFailed bool                      // a failed write was reported
	releasedAt     time.Time                 // when the host was released; zero: not yet
}

// fail logs an error and adds it to the report; it ignores nil.
func (r *record) fail(err error) {
	if err == nil {
		return
	}
	klog.FromContext(r.ctx).Error(err, "Shutdown manager met a failure")
	r.addErr(err)
}

// addErr adds an error to the report that is logged elsewhere; it ignores nil.
func (r *record) addErr(err error) {
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

// storeBegin stores and shows the start of a shutdown of the node.
func (r *record) storeBegin() { r.saveTimes(time.Time{}) }

// storeTimetable starts to store the timetable. It does not wait: a slow disk must not cost the
// pods any time.
func (r *record) storeTimetable(table plan.Timetable) {
	r.mu.Lock()
	r.header.Schedule, r.header.Late = table.Schedule(), !table.NotBefore().IsZero()
	if !r.local {
		r.header.Start, r.header.HostEnd = r.ledger.sinceBoot(table.First()), r.ledger.sinceBoot(table.Release())
	}
	r.mu.Unlock()
	r.saveProgress(storeLag)
}

// bucketsDone returns how many buckets the previous agent has finished.
func (r *record) bucketsDone() int {
	if r.resumed == nil {
		return 0
	}
	return r.resumed.Done
}

// storeBucketDone starts to store that bucket i is finished.
func (r *record) storeBucketDone(i int) {
	r.mu.Lock()
	r.header.Done = i + 1
	r.mu.Unlock()
	r.saveProgress(storeLag)
}

// storeCancelled starts to store that the shutdown was cancelled, so that no agent resumes it
// while signalled pods use their grace period. If the drain has ended before, this matters only
// for pods that a previous agent signalled and that may still run.
func (r *record) storeCancelled() {
	if r.hostReleased().IsZero() || r.resumed != nil && len(r.resumed.Unacknowledged) > 0 {
		r.saveProgress(0)
	}
}

// keepUnfinished leaves the stored state as it is, so that the next agent resumes the drain.
func (r *record) keepUnfinished() { r.last.set(r.createdAt, r.reportLater(time.Time{})) }

// storeEnd stores the report before the host is released, and waits for that at most until a
// time. It tries again for a second if the disk fails. With very many pods it stores the outline
// of the report only, and storePods the rest: writing all reports would hold the host longer than
// the pods took to end.
func (r *record) storeEnd(ended, until time.Time) {
	r.mu.Lock()
	r.releasedAt = ended
	r.mu.Unlock()
	r.last.set(r.createdAt, r.reportLater(ended))
	r.saveTimes(ended)
	for tries := time.Now().Add(storeTries); ; {
		report := r.reportLater(ended)
		if r.hasManyPods() {
			outline := r.outline(ended)
			report = func() Report { return outline }
		}
		_, err := r.save(0, report).Await(r.ctx, until)
		if errors.Is(err, errTimeSpent) {
			r.fail(fmt.Errorf("failed to store the report before the host is let go: %w", err))
			return
		}
		if err == nil || !time.Now().Before(minTime(tries, until)) || !wait(r.ctx, storePause, nil) {
			return
		}
	}
}

// storePods starts to store the reports of the pods that storeEnd left out.
func (r *record) storePods(ended time.Time) {
	if r.hasManyPods() {
		r.save(0, r.reportLater(ended))
	}
}

// finish returns the final report, when all pods have ended. If some have ended after storeEnd,
// it stores the report again.
func (r *record) finish(ended time.Time, straggled bool) (Report, error) {
	until := time.Now().Add(hangTime)
	r.awaitWrites(until)
	if straggled && !r.halt.interrupted() {
		r.save(0, r.reportLater(ended))
		r.awaitWrites(until)
	}
	report := r.reportLater(ended)()
	r.last.set(r.createdAt, func() Report { return report })
	return report, errors.Join(r.failures()...)
}

// awaitWrites waits for the last write of each file until a time. A disk that hangs is waited for
// as long as other calls that hang.
func (r *record) awaitWrites(until time.Time) {
	r.mu.Lock()
	writes := r.lastWrites
	r.mu.Unlock()
	for _, write := range writes {
		if write == nil {
			continue
		}
		if _, err := write.Await(context.WithoutCancel(r.ctx), until); errors.Is(err, errTimeSpent) {
			r.fail(fmt.Errorf("failed to store the shutdown state: %w", err))
		}
	}
}

// failWrite reports the first write that fails. Later ones fail for the same reason.
func (r *record) failWrite(err error) {
	r.mu.Lock()
	again := r.writeHasFailed
	r.writeHasFailed = true
	r.mu.Unlock()
	if !again {
		r.fail(err)
	}
}

// hasManyPods reports whether the reports of the pods are stored only after the release.
func (r *record) hasManyPods() bool { return len(r.roster.All()) > podsStoredAtOnce }

// saveProgress starts to store the progress while the drain goes on. With very many pods it stores
// the outline only, because the write would slow down the pods that follow.
func (r *record) saveProgress(lag time.Duration) { r.save(lag, r.reportNow) }

// reportNow returns the report as it is now.
func (r *record) reportNow() Report {
	over := r.hostReleased()
	if over.IsZero() && r.hasManyPods() {
		return r.outline(over)
	}
	return r.reportLater(over)()
}

// hostReleased returns when the host was released; zero if it was not yet.
func (r *record) hostReleased() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.releasedAt
}

// save queues a write of the progress. It calls report when the turn of the write comes.
func (r *record) save(lag time.Duration, report func() Report) *call.Future[struct{}] {
	if r.local {
		return noWrite()
	}
	r.unsaved.Store(true)
	write := r.ledger.writeProgress(r.writeRequest(lag), func() progress { return r.progress(report) })
	r.setLastWrite(0, write)
	return write
}

// unacknowledgedOfPrevious returns the final statuses of pods that a previous agent has signalled
// and that may still run: they have ended when the next boot reads the file. Pods that this drain
// has signalled too are in its own list. After a cancellation nothing is returned, because such
// pods may keep running.
func (r *record) unacknowledgedOfPrevious() []finalStatus {
	if r.resumed == nil || r.halt.cancelled() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.resumed.Unacknowledged), func(s finalStatus) bool {
		k := r.roster.Find(kills.Key(s.Pod))
		return s.Ended || k != nil && k.Signalled()
	})
}

// saveTimes stores and shows the start and the end of a shutdown of the node.
func (r *record) saveTimes(ended time.Time) {
	if r.local {
		return
	}
	r.showTimes(r.number, r.started, ended)
	r.setLastWrite(1, r.ledger.writeTimes(r.writeRequest(storeLag), times{StartTime: r.started, EndTime: ended}))
}

func (r *record) setLastWrite(file int, write *call.Future[struct{}]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.lastWrites[file] = write
}

func (r *record) writeRequest(lag time.Duration) writeRequest {
	return writeRequest{ctx: r.ctx, calls: r.calls, shutdown: r.number, lag: lag, failed: r.failWrite}
}
