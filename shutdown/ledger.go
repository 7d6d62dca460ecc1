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

// ledger stores how far a shutdown has come: our file, and the kubelet's beside it.
type ledger struct {
	dir      string   // "": nothing is stored
	progress *journal // nil: nor is this, for want of a directory or a boot id
	times    *journal // nil: the kubelet's file is not kept
	bootID   string
	before   time.Duration // since the boot
	at       time.Time     // the moment that before is of
	err      error         // why one boot cannot be told from another; nil: it can
	write    writeFile

	refused func() uint64          // the admissions refused so far
	stored  *progress              // our file as it is; nil: there is none, or it cannot be read
	newest  atomic.Pointer[record] // whose state our file has, or will have; nil: no drain has begun

	mu      sync.Mutex                // guards all below
	carried map[types.UID]finalStatus // of former agents, that are not acknowledged yet
	changed bool                      // carried is not what is stored
	waiting []func()                  // are called after the next write
}

// newLedger looks at the boot once. On a host where that cannot be done nothing
// can be resumed, and err says so.
func newLedger(dir string, keepsTimes bool, refused func() uint64, boot func() (string, time.Duration, error)) *ledger {
	l := &ledger{dir: dir, refused: refused, at: time.Now(), write: atomicfile.WriteFrom}
	if dir == "" {
		return l
	}
	if keepsTimes {
		l.times = &journal{}
	}
	if l.bootID, l.before, l.err = boot(); l.err == nil {
		l.progress = &journal{}
	}
	return l
}

// sinceBoot is a moment of this process on the clock that a restart leaves alone.
// It saturates: a host without a limit goes on in three hundred years.
func (l *ledger) sinceBoot(t time.Time) time.Duration {
	since := t.Sub(l.at)
	if since < 0 {
		return l.before + since
	}
	return saturatingAdd(l.before, since)
}

// saturatingAdd adds two spans that are not negative.
func saturatingAdd(a, b time.Duration) time.Duration {
	if a > math.MaxInt64-b {
		return math.MaxInt64
	}
	return a + b
}

// moment is the inverse of sinceBoot.
func (l *ledger) moment(since time.Duration) time.Time { return l.at.Add(since - l.before) }

// writeProgress stores our file. p is called when it is this write's turn.
func (l *ledger) writeProgress(w writing, p func() progress) *call.Future[struct{}] {
	return l.progress.write(w, func() error {
		for _, stored := range l.takeWaiting() {
			defer stored() // also where it fails: a full disk keeps no pod from its start
		}
		err := l.store(p())
		if r := l.newest.Load(); r != nil && l.awaited() {
			r.saveChange() // what has come while this write began
		}
		return err
	})
}

// onceStored has something done after a write that begins from now on, or at once where
// nothing is stored.
func (l *ledger) onceStored(stored func()) {
	if l.progress == nil {
		stored()
		return
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	l.waiting = append(l.waiting, stored)
}

func (l *ledger) takeWaiting() []func() {
	l.mu.Lock()
	defer l.mu.Unlock()
	waiting := l.waiting
	l.waiting = nil
	return waiting
}

// awaited tells whether something is to be done after the next write.
func (l *ledger) awaited() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.waiting) > 0
}

// store replaces our file. Writes come one after the other. What names no boot is of this one.
func (l *ledger) store(p progress) error {
	if p.BootID == "" {
		p.BootID = l.bootID
	}
	p.Refused = l.refused()
	carried := l.carriedOver()
	own := p
	p.Unacknowledged = append(slices.Clip(p.Unacknowledged), carried...)
	p.Unacknowledged = p.Unacknowledged[:min(len(p.Unacknowledged), mostUnacknowledged)]
	if err := writeProgress(l.write, l.dir, p); err != nil {
		if p.Report.Cancelled { // what is there may say that it goes on
			err = errors.Join(err, removeProgress(l.dir))
		}
		return err
	}
	l.stored = &own
	return nil
}

// carry keeps final statuses of former agents in the file until they are acknowledged.
func (l *ledger) carry(statuses []finalStatus) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.carried = make(map[types.UID]finalStatus, len(statuses))
	for _, s := range statuses {
		l.carried[kills.Key(s.Pod)] = s
	}
}

// acknowledged removes what carry has kept of a pod.
func (l *ledger) acknowledged(key types.UID) {
	l.mu.Lock()
	defer l.mu.Unlock()
	delete(l.carried, key)
	l.changed = true
}

// carriedOver is what is kept, by the pods' names, for a file that has all of it.
func (l *ledger) carriedOver() []finalStatus {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.changed = false
	return slices.SortedFunc(maps.Values(l.carried), func(a, b finalStatus) int {
		return cmp.Or(cmp.Compare(a.Pod.Namespace, b.Pod.Namespace), cmp.Compare(a.Pod.Name, b.Pod.Name))
	})
}

// differs tells whether the file lacks something that is known.
func (l *ledger) differs() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.stored != nil && (l.changed || l.stored.Refused != l.refused())
}

// close stores what has changed since the last write, once nobody writes any more.
func (l *ledger) close() error {
	if l.progress == nil {
		return nil
	}
	if r := l.newest.Load(); r != nil && r.unsaved.Load() && r.storable() {
		return l.store(r.progress(r.soFar))
	}
	if !l.differs() {
		return nil
	}
	return l.store(*l.stored)
}

// writeTimes stores the kubelet's file.
func (l *ledger) writeTimes(w writing, t times) *call.Future[struct{}] {
	return l.times.write(w, func() error { return writeTimes(l.write, l.dir, t) })
}
