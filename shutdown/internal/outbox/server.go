package outbox

import (
	"context"
	"sync"
	"time"
)

const (
	// answerPatience bounds the time since the last acknowledgement in Await.
	answerPatience = 2500 * time.Millisecond
	// lostCallsBorne is how many calls in a row a server may lose in Await if it is known to lose
	// some, and lostCallsCount is for how long that is known.
	lostCallsBorne, lostCallsCount = 3, time.Minute
)

// server is what is known of the API server from the calls so far: whether it answers, how fast,
// and whether it loses single calls. From that follow when and how long calls are made, and how
// long it is worth waiting for an acknowledgement.
type server struct {
	mu         sync.Mutex // guards all below
	pace       pace
	answers    uint64
	answered   chan struct{} // closed at the next acknowledgement; nil: nobody waits
	last       time.Time     // of the acknowledgements; zero: none yet
	newest     time.Time     // when the newest of the acknowledged calls began
	lost       time.Time     // when a call was found to be lost; zero: never, or a wait was in vain since
	bears      time.Duration // how long Await waits for an acknowledgement if the server loses calls
	unanswered time.Duration // how long Await has waited in vain since last
}

// acknowledged records an acknowledgement of a call that began at a time and made a number of
// requests.
func (s *server) acknowledged(begun time.Time, requests int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.answers++
	s.last, s.unanswered = time.Now(), 0
	if begun.After(s.newest) {
		s.newest = begun
	}
	s.pace.acknowledged(s.last.Sub(begun) / time.Duration(requests))
	s.bears = max(answerPatience, lostCallsBorne*(s.pace.limit(0)+2*pauseFirst))
	s.wakeLocked()
}

// failed records that a call has failed, and reports whether it is the first one since the last
// acknowledgement. A call that got no answer, while one that began no earlier did, was lost: that
// says nothing about the server's speed. If calls are lost, neither do the next few.
func (s *server) failed(f *flight) (first bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, silent := time.Now(), f.isUnanswered()
	if silent && !s.newest.Before(f.begun) {
		s.lost = now
	}
	if silent = silent && (!s.loses(now) || s.pace.failures+1 >= lostCallsBorne); silent {
		s.pace.slow(f.limit)
	}
	return s.pace.failed(f.begun, now, f.limited, silent)
}

// loses reports whether the server is known to lose single calls. The mutex is held.
func (s *server) loses(now time.Time) bool {
	return !s.lost.IsZero() && now.Sub(s.lost) < lostCallsCount
}

// count returns the number of acknowledgements so far.
func (s *server) count() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.answers
}

// limit returns how long the next call for a debt may take, for which this many calls were cut.
func (s *server) limit(cut uint8) time.Duration {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pace.limit(cut)
}

// mayStart returns the time before which no call starts.
func (s *server) mayStart() time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.pace.until
}

// starts records that a call starts.
func (s *server) starts(now time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.pace.starts(now)
}

// wake makes every await look again.
func (s *server) wake() {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.wakeLocked()
}

func (s *server) wakeLocked() {
	if s.answered != nil {
		close(s.answered)
		s.answered = nil
	}
}

// await is [Outbox.Await].
func (s *server) await(ctx context.Context, pending func() bool, until time.Time, reserve time.Duration) bool {
	start := time.Now()
	for {
		answered, giveUp := s.watch(start, reserve)
		if !pending() {
			return true
		}
		end := giveUp
		if until.Before(end) {
			end = until
		}
		timer := time.NewTimer(time.Until(end))
		select {
		case <-answered:
			timer.Stop()
		case <-ctx.Done():
			timer.Stop()
			return !pending()
		case <-timer.C:
			if s.givesUp(start, reserve, until) {
				return !pending()
			}
		}
	}
}

// watch returns a channel that the next acknowledgement closes, and when a wait that has begun at
// start is in vain without one.
func (s *server) watch(start time.Time, reserve time.Duration) (answered <-chan struct{}, giveUp time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.answered == nil {
		s.answered = make(chan struct{})
	}
	since, patience := s.patience(start)
	return s.answered, since.Add(max(patience-s.unanswered, reserve))
}

// givesUp reports whether a wait that has begun at start is over, and records it then. It is not
// if something was acknowledged at this moment, or a lost call has made the patience longer.
func (s *server) givesUp(start time.Time, reserve time.Duration, until time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	now := time.Now()
	since, patience := s.patience(start)
	inVain := !now.Before(since.Add(max(patience-s.unanswered, reserve)))
	if !inVain && now.Before(until) {
		return false
	}
	if inVain {
		s.lost = time.Time{}
	}
	s.unanswered = min(s.unanswered+max(now.Sub(since), 0), answerPatience)
	return true
}

// patience returns since when a wait that has begun at start is without an acknowledgement, and
// for how long that is borne. A server that is known to lose single calls gets the time of a few
// more. The mutex is held.
func (s *server) patience(start time.Time) (since time.Time, patience time.Duration) {
	since, patience = start, answerPatience
	if s.last.After(since) {
		since = s.last
	}
	if s.loses(time.Now()) {
		patience = s.bears
	}
	return since, patience
}
