package shutdown

import (
	"time"
)

// ledger stores how far a shutdown has come: our file, and the kubelet's beside it.
type ledger struct {
	dir      string   // "": nothing is stored
	progress *journal // nil: nor is this, for want of a directory or a boot id
	times    *journal // nil: the kubelet's file is not kept
	bootID   string
	before   time.Duration // since the boot
	at       time.Time     // the moment that before is of
}

// newLedger looks at the boot once. On a host where that cannot be done nothing
// can be resumed, and the error says so.
func newLedger(dir string, keepsTimes bool, boot func() (string, time.Duration, error)) (*ledger, error) {
	l := &ledger{dir: dir, at: time.Now()}
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

// moment is the inverse of sinceBoot.
func (l *ledger) moment(since time.Duration) time.Time { return l.at.Add(since - l.before) }

// writeProgress stores our file. p is called when it is this write's turn.
func (l *ledger) writeProgress(w writing, p func() progress) *entry {
	return l.progress.write(w, func() error {
		p := p()
		p.BootID = l.bootID
		return writeProgress(l.dir, p)
	})
}

// writeTimes stores the kubelet's file.
func (l *ledger) writeTimes(w writing, t times) *entry {
	return l.times.write(w, func() error { return writeTimes(l.dir, t) })
}
