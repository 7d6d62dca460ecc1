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

// podsStoredAtOnce is how many pods' reports are stored before the host is let go.
const podsStoredAtOnce = 1000

const (
	// storeTries is how long the report of a shutdown is written again whose writing fails: no
	// later write makes up for it, and a disk that is full does not become empty.
	storeTries = time.Second
	// storePause is the time between two attempts.
	storePause = 100 * time.Millisecond
)

// record is what is stored of one drain, for an agent that is restarted within it, and
// its report.
type record struct {
	drainRequest
	made    time.Time       // which is after that of the drain before, whenever the event was received
	ctx     context.Context // of Run, or of TerminateAll
	calls   *call.Group
	ledger  *ledger // not used by a local drain
	last    *lastReport
	halt    halt
	roster  *kills.Roster
	flushes bool     // final statuses are told to somebody
	untold  []*drain // of this agent, before this one; see leftUntold
	times   func(number uint64, began, ended time.Time)
	// unacknowledged gives the final statuses that the next agent has to tell.
	unacknowledged func([]*kills.Kill) []finalStatus

	unsaved atomic.Bool                 // something is not stored, and mostly a write is due that has it
	settled atomic.Pointer[settledPods] // nil: the reports of the pods may change

	mu       sync.Mutex                // guards all below
	header   progress                  // how far the drain has come, without its report
	errs     []error                   // what went wrong beside the pods
	writes   [2]*call.Future[struct{}] // the last of either file; nil: none
	unstored bool                      // a write has failed
	over     time.Time                 // when the host was let go; zero: not yet
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
	r.mu.Lock()
	r.header.Schedule, r.header.Late = table.Schedule(), !table.NotBefore().IsZero()
	if !r.local {
		r.header.Start, r.header.HostEnd = r.ledger.sinceBoot(table.First()), r.ledger.sinceBoot(table.Release())
	}
	r.mu.Unlock()
	r.saveBeside(storeLag)
}

// bucketsDone is how many buckets a former agent has done.
func (r *record) bucketsDone() int {
	if r.resumed == nil {
		return 0
	}
	return r.resumed.Done
}

// bucketDone stores, beside the drain, that bucket i is done.
func (r *record) bucketDone(i int) {
	r.mu.Lock()
	r.header.Done = i + 1
	r.mu.Unlock()
	r.saveBeside(storeLag)
}

// calledOff stores, beside the drain, that the shutdown was cancelled: pods that it has
// signalled may take their time, and nobody is to take it up meanwhile. Of one that is over
// that counts where pods may run on that only a former agent has signalled.
func (r *record) calledOff() {
	if r.letGo().IsZero() || r.resumed != nil && len(r.resumed.Unacknowledged) > 0 {
		r.saveBeside(0)
	}
}

// interrupted is the end of Run within the shutdown: what is stored stays as it is.
func (r *record) interrupted() { r.last.set(r.made, r.result(time.Time{})) }

// ended stores the report before the host is let go, and waits for that until a time. A disk
// that fails is tried again for a second. Of very many pods only the outline is stored: theirs
// is stored beside the release, for they would hold the host for longer than they took to end.
func (r *record) ended(ended, until time.Time) {
	r.mu.Lock()
	r.over = ended
	r.mu.Unlock()
	r.last.set(r.made, r.result(ended))
	r.saveTimes(ended)
	for tries := time.Now().Add(storeTries); ; {
		report := r.result(ended)
		if r.storesLater() {
			outline := r.outline(ended)
			report = func() Report { return outline }
		}
		_, err := r.save(0, report).Await(r.ctx, until)
		if errors.Is(err, errTimeSpent) {
			r.fail(fmt.Errorf("failed to store the report before the host is let go: %w", err))
			return
		}
		if err == nil || !time.Now().Before(earlier(tries, until)) || !wait(r.ctx, storePause, nil) {
			return
		}
	}
}

// endedBeside stores what ended has left for later.
func (r *record) endedBeside(ended time.Time) {
	if r.storesLater() {
		r.save(0, r.result(ended))
	}
}

// conclude makes the report of a drain whose pods have all ended, and stores it
// if it says more than what is stored.
func (r *record) conclude(ended time.Time, straggled bool) (Report, error) {
	until := time.Now().Add(hangTime)
	r.awaitWrites(until)
	if straggled && !r.halt.interrupted() {
		r.save(0, r.result(ended))
		r.awaitWrites(until)
	}
	report := r.result(ended)()
	r.last.set(r.made, func() Report { return report })
	return report, errors.Join(r.failures()...)
}

// awaitWrites waits for the last write of either file, until a time: a disk that hangs is
// waited for as long as Run waits for others that do.
func (r *record) awaitWrites(until time.Time) {
	r.mu.Lock()
	writes := r.writes
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

// notStored reports the first write that fails; all that follow fail for the same reason.
func (r *record) notStored(err error) {
	r.mu.Lock()
	again := r.unstored
	r.unstored = true
	r.mu.Unlock()
	if !again {
		r.fail(err)
	}
}

// storesLater tells whether the pods' reports are stored beside the release.
func (r *record) storesLater() bool { return len(r.roster.All()) > podsStoredAtOnce }

// saveBeside stores how far the drain has come while it goes on. Of very many pods it
// stores the outline only: writing it must not cost those that follow.
func (r *record) saveBeside(lag time.Duration) { r.save(lag, r.soFar) }

// soFar is the report as it is now.
func (r *record) soFar() Report {
	over := r.letGo()
	if over.IsZero() && r.storesLater() {
		return r.outline(over)
	}
	return r.result(over)()
}

// letGo is when the host was let go; zero: it has not been yet.
func (r *record) letGo() time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.over
}

// save stores how far the drain has come, with the report as it is when its turn comes.
func (r *record) save(lag time.Duration, report func() Report) *call.Future[struct{}] {
	if r.local {
		return noWrite()
	}
	r.unsaved.Store(true)
	write := r.ledger.writeProgress(r.writing(lag), func() progress { return r.progress(report) })
	r.wrote(0, write)
	return write
}

// leftRunning are the final statuses of pods that a former agent has signalled, and of which
// nobody knows whether they have ended: they have when the host is down. Those that this drain
// has signalled too are its own, and of a cancelled shutdown they may run on.
func (r *record) leftRunning() []finalStatus {
	if r.resumed == nil || r.halt.cancelled() {
		return nil
	}
	return slices.DeleteFunc(slices.Clone(r.resumed.Unacknowledged), func(s finalStatus) bool {
		k := r.roster.Find(kills.Key(s.Pod))
		return s.Ended || k != nil && k.Signalled()
	})
}

// saveTimes stores the start and the end of a shutdown of the node, and shows them.
func (r *record) saveTimes(ended time.Time) {
	if r.local {
		return
	}
	r.times(r.number, r.began, ended)
	r.wrote(1, r.ledger.writeTimes(r.writing(storeLag), times{StartTime: r.began, EndTime: ended}))
}

func (r *record) wrote(file int, write *call.Future[struct{}]) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.writes[file] = write
}

func (r *record) writing(lag time.Duration) writing {
	return writing{ctx: r.ctx, calls: r.calls, shutdown: r.number, lag: lag, failed: r.notStored}
}
