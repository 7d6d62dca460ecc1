package shutdown

import (
	"cmp"
	"errors"
	"maps"
	"math"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/atomicfile"
	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// ledger writes the state files: the progress of a shutdown, and the kubelet's file with its
// times.
type ledger struct {
	dir             string   // "": nothing is stored
	progress        *journal // nil: progress is not stored, because there is no folder or no boot ID
	times           *journal // nil: the kubelet's file is not written
	bootID          string
	openedSinceBoot time.Duration // openedAt, as time since the boot
	openedAt        time.Time     // when this process opened the ledger
	err             error         // why the boot cannot be identified; nil: it can
	write           writeFile

	refused func() uint64          // returns the number of refused admissions
	stored  *progress              // the progress as it is on disk; nil: none, or it cannot be read
	newest  atomic.Pointer[record] // of the newest drain, whose state the file has or will have; nil: no drain yet

	mu             sync.Mutex                // guards all below
	carried        map[types.UID]finalStatus // final statuses of previous agents that are not acknowledged
	carriedChanged bool                      // since the last write
	onStored       []func()                  // are called after the next write
}

// newLedger identifies the boot. If that fails nothing can be resumed, and err says why.
func newLedger(dir string, keepsTimes bool, refused func() uint64, boot func() (string, time.Duration, error)) *ledger {
	l := &ledger{dir: dir, refused: refused, openedAt: time.Now(), write: atomicfile.WriteFrom}
	if dir == "" {
		return l
	}
	if keepsTimes {
		l.times = &journal{}
	}
	if l.bootID, l.openedSinceBoot, l.err = boot(); l.err == nil {
		l.progress = &journal{}
	}
	return l
}

// sinceBoot converts a time of this process to the monotonic time since the boot, which is the
// same for the next agent. It saturates, because the end of a host without a limit lies in three
// hundred years.
func (l *ledger) sinceBoot(t time.Time) time.Duration {
	since := t.Sub(l.openedAt)
	if since < 0 {
		return l.openedSinceBoot + since
	}
	return saturatingAdd(l.openedSinceBoot, since)
}

// saturatingAdd adds two durations that are not negative.
func saturatingAdd(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// timeOf is the inverse of sinceBoot.
func (l *ledger) timeOf(since time.Duration) time.Time {
	return l.openedAt.Add(since - l.openedSinceBoot)
}

// writeProgress queues a write of the progress file. It calls p when the write's turn comes.
func (l *ledger) writeProgress(w writeRequest, p func() progress) *call.Future[struct{}] {
	return l.progress.write(w, func() error {
		for _, stored := range l.takeOnStored() {
			defer stored() // also if the write fails: a full disk must not keep a pod from its start
		}
		err := l.store(p())
		if r := l.newest.Load(); r != nil && l.awaitsWrite() {
			r.saveChange() // for what was acknowledged while this write began
		}
		return err
	})
}

// onceStored calls a function after a write that begins from now on, or at once if nothing is
// stored.
func (l *ledger) onceStored(stored func()) {
	if l.progress == nil {
		stored()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.onStored = append(l.onStored, stored)
}

func (l *ledger) takeOnStored() []func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	taken := l.onStored
	l.onStored = nil
	return taken
}

// awaitsWrite reports whether a function waits for the next write.
func (l *ledger) awaitsWrite() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.onStored) > 0
}

// store replaces the progress file. The journal makes one call at a time. Progress without a boot
// ID gets that of this boot.
func (l *ledger) store(p progress) error {
	if p.BootID == "" {
		p.BootID = l.bootID
	}
	p.Refused = l.refused()
	carried := l.takeCarried()
	stored := p
	p.Unacknowledged = append(slices.Clip(p.Unacknowledged), carried...)
	p.Unacknowledged = p.Unacknowledged[:min(len(p.Unacknowledged), mostUnacknowledged)]
	if err := writeProgress(l.write, l.dir, p); err != nil {
		if p.Report.Cancelled { // the old file may say that the shutdown goes on
			err = errors.Join(err, removeProgress(l.dir))
		}
		return err
	}
	l.stored = &stored
	return nil
}

// setCarried keeps final statuses of previous agents in the file until removeCarried.
func (l *ledger) setCarried(statuses []finalStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carried = make(map[types.UID]finalStatus, len(statuses))
	for _, s := range statuses {
		l.carried[kills.Key(s.Pod)] = s
	}
}

// removeCarried removes the acknowledged final status of a pod.
func (l *ledger) removeCarried(key types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.carried, key)
	l.carriedChanged = true
}

// takeCarried returns the carried final statuses for a write, sorted by the pods' names.
func (l *ledger) takeCarried() []finalStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carriedChanged = false
	return slices.SortedFunc(maps.Values(l.carried), func(a, b finalStatus) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
}

// needsWrite reports whether the progress file lacks a change.
func (l *ledger) needsWrite() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored != nil && (l.carriedChanged || l.stored.Refused != l.refused())
}

// close writes what has changed since the last write. No other write may be under way.
func (l *ledger) close() error {
	if l.progress == nil {
		return nil
	}
	if r := l.newest.Load(); r != nil && r.unsaved.Load() && r.storable() {
		return l.store(r.progress(r.reportNow))
	}
	if !l.needsWrite() {
		return nil
	}
	return l.store(*l.stored)
}

// writeTimes queues a write of the kubelet's file.
func (l *ledger) writeTimes(w writeRequest, t times) *call.Future[struct{}] {
	return l.times.write(w, func() error { return writeTimes(l.write, l.dir, t) })
}
