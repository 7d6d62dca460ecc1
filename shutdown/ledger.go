package shutdown

import (
	"errors"
	"sync"
	"time"
)

// ledger stores how far a shutdown has come, one write after the other, each in a
// goroutine of the drain that asks for it: a disk that hangs holds nobody but
// those who want to wait.
type ledger struct {
	dir        string // "": nothing is stored
	keepsTimes bool   // the kubelet's file is written too
	bootID     string // "": not known, and then progress is not stored
	before     time.Duration
	at         time.Time // the moment before is of

	mu     sync.Mutex // guards all below; never held while a file is written
	last   *entry     // the newest write; nil: none yet
	writer uint64     // the number of the newest shutdown that has written
}

// entry is one write.
type entry struct {
	done chan struct{}
	err  error // read once done is closed
}

// noEntry is a write of nothing.
func noEntry() *entry {
	e := &entry{done: make(chan struct{})}
	close(e.done)
	return e
}

// newLedger looks at the boot once. On a host where that cannot be done nothing
// can be resumed, and the error says so.
func newLedger(dir string, keepsTimes bool, boot func() (string, time.Duration, error)) (*ledger, error) {
	l := &ledger{dir: dir, keepsTimes: keepsTimes, at: time.Now()}
	if dir == "" {
		return l, nil
	}
	var err error
	l.bootID, l.before, err = boot()
	return l, err
}

// sinceBoot is a moment of this process on the clock that a restart leaves alone.
func (l *ledger) sinceBoot(t time.Time) time.Duration { return l.before + t.Sub(l.at) }

// moment is the inverse of sinceBoot.
func (l *ledger) moment(since time.Duration) time.Time { return l.at.Add(since - l.before) }

// write stores what is known of a shutdown, after all that is being stored
// already. What a later write replaces before its turn is not written at all, and
// neither is what an earlier shutdown has to say. state is called when it is this
// write's turn.
func (l *ledger) write(work *sync.WaitGroup, shutdown uint64, state func() progress) *entry {
	e := &entry{done: make(chan struct{})}
	before, ok := l.enter(e, shutdown)
	if !ok {
		return noEntry()
	}
	work.Go(func() {
		defer close(e.done)
		if before != nil {
			<-before.done
		}
		if l.isLast(e) {
			e.err = l.store(state())
		}
	})
	return e
}

// enter makes e the newest write and gives the one before it; false: there is
// nothing to write.
func (l *ledger) enter(e *entry, shutdown uint64) (before *entry, ok bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dir == "" || shutdown < l.writer {
		return nil, false
	}
	before = l.last
	l.last, l.writer = e, shutdown
	return before, true
}

func (l *ledger) isLast(e *entry) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.last == e
}

// store writes both files.
func (l *ledger) store(p progress) error {
	var errs []error
	if p.BootID = l.bootID; p.BootID != "" {
		errs = append(errs, writeProgress(l.dir, p))
	}
	if l.keepsTimes {
		errs = append(errs, writeTimes(l.dir, times{StartTime: p.Report.Started, EndTime: p.Report.Ended}))
	}
	return errors.Join(errs...)
}
