package host

import (
	"errors"
	"sync"
	"time"
)

// State is what a [Host] does with the lock.
type State string

// The states of the lock.
const (
	StateTrying  State = "Trying"  // the lock is wanted and not held
	StateHeld    State = "Held"    // the lock is held
	StateAdopted State = "Adopted" // the lock is held, and is that of a former agent
	StateLetGo   State = "LetGo"   // no lock is held, because a shutdown is under way or Run is over
)

// Status is what is known of the lock and of the host.
type Status struct {
	State     State
	Requested time.Duration // what the host was asked for; 0 before that
	Granted   time.Duration // how long the host waits; 0 before it has answered
	// Err is the reason why the lock is not held as wanted: the host cannot be reached, it
	// refuses, it waits for so much less than asked that pods lose time (a
	// *[source.DelayCappedError]), or the lock may have been lost together with its session. Nil:
	// all is well.
	Err error
}

// Held reports whether a lock is held.
func (s Status) Held() bool { return s.State == StateHeld || s.State == StateAdopted }

// errSilent is the error of a host that has not answered in time.
var errSilent = errors.New("the host does not answer")

// trouble keeps the errors that the status shows.
type trouble struct {
	mu   sync.Mutex // guards all below
	err  error      // of the last attempt
	lost error      // why the last session ended, or did not begin
}

// set replaces the error of the last attempt; nil: it went well.
func (t *trouble) set(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err = err
}

// lose records why a session ended or did not begin.
func (t *trouble) lose(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.err, t.lost = err, err
}

// silent records that the host does not answer, unless something else is known.
func (t *trouble) silent() {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil {
		t.err = errSilent
	}
}

// shown returns the error for the status. If the lock is in doubt, it is at least that of the
// session that was lost.
func (t *trouble) shown(inDoubt bool) error {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.err == nil && inDoubt {
		return t.lost
	}
	return t.err
}
