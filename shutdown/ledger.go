package shutdown

import (
	"math"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

// ledger stores how far a shutdown has come: our file, and the kubelet's beside it.
type ledger struct {
	dir      string   // "": nothing is stored
	progress *journal // nil: nor is this, for want of a directory or a boot id
	times    *journal // nil: the kubelet's file is not kept
	bootID   string
	before   time.Duration // since the boot
	at       time.Time     // the moment that before is of

	refused func() uint64 // the admissions refused so far
	stored  *progress     // our file as it is; nil: there is none, or it cannot be read
}

// newLedger looks at the boot once. On a host where that cannot be done nothing
// can be resumed, and the error says so.
func newLedger(dir string, keepsTimes bool, refused func() uint64, boot func() (string, time.Duration, error)) (*ledger, error) {
	l := &ledger{dir: dir, refused: refused, at: time.Now()}
	if dir == "" {
		return l, nil
	}
	if keepsTimes {
		l.times = &journal{}
	}
	var err error
	if l.bootID, l.before, err = boot(); err == nil {
		l.progress = &journal{}
	}
	return l, err
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
		p := p()
		p.BootID = l.bootID
		return l.store(p)
	})
}

// store replaces our file. Writes come one after the other.
func (l *ledger) store(p progress) error {
	p.Refused = l.refused()
	if err := writeProgress(l.dir, p); err != nil {
		return err
	}
	l.stored = &p
	return nil
}

// close stores what was refused since the last write, once nobody writes any more.
func (l *ledger) close() error {
	if l.progress == nil || l.stored == nil || l.stored.Refused == l.refused() {
		return nil
	}
	return l.store(*l.stored)
}

// writeTimes stores the kubelet's file.
func (l *ledger) writeTimes(w writing, t times) *call.Future[struct{}] {
	return l.times.write(w, func() error { return writeTimes(l.dir, t) })
}
