package outbox

import (
	"cmp"
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
)

const (
	// answerPatience bounds the time since the last acknowledgement in Await.
	answerPatience = 2500 * time.Millisecond
	// lostCallsBorne is how many calls in a row a server may lose in Await if it is known to lose
	// some, and lostCallsCount is for how long that is known.
	lostCallsBorne, lostCallsCount = 3, time.Minute
	// pauseFirst and pauseMost bound the pause after a failed call.
	pauseFirst, pauseMost = 100 * time.Millisecond, time.Second
	// attemptFirst bounds a request until it is known how long answers take. It is shorter than
	// answerPatience, so that a lost call is made again before a wait is given up. attemptLeast
	// bounds what quick answers make of it.
	attemptFirst, attemptLeast = 2250 * time.Millisecond, time.Second
	// attemptSlowest bounds what calls without an answer make of attemptFirst, and attemptMost
	// what those for one pod make of it.
	attemptSlowest, attemptMost = 9 * time.Second, 72 * time.Second
	// cutBeforeGrowth is how many calls for a pod are cut before the next ones get twice the time:
	// they may have been lost.
	cutBeforeGrowth = 7
)

// server is what is known of the API server from the calls so far: whether it answers, how fast,
// and whether it loses single calls. From that follow when and how long calls are made, and how
// long it is worth waiting for an acknowledgement. As long as the server answers, calls start at
// once. Otherwise one call starts at a time, with a pause between two.
type server struct {
	answers atomic.Uint64 // acknowledgements so far

	mu       *sync.Mutex   // of the outbox, guards all below
	answered chan struct{} // closed at the next acknowledgement
	last     time.Time     // of the acknowledgements; zero: none yet
	newest   time.Time     // when the newest of the acknowledged calls began
	lost     time.Time     // when a call was found to be lost; zero: never, or a wait was in vain since
	bears    time.Duration // how long Await waits for an acknowledgement if the server loses calls
	inVain   time.Duration // how long Await has waited in vain since last
	slowest  time.Duration // request of late
	longest  time.Duration // that a request may take; 0: attemptFirst
	failures int           // since the last acknowledgement
	pause    time.Duration // between the starts of two calls; 0: none
	paused   time.Time     // when the pause became as long as it is
	until    time.Time     // no call starts before
}

// limit returns how long a request may take, for a debt that this many calls were cut for.
func (s *server) limit(cut uint8) time.Duration {
	grown := cmp.Or(s.longest, attemptFirst)
	for ; cut >= cutBeforeGrowth && grown < attemptMost; cut-- {
		grown *= 2
	}
	return grown
}

// starts records that a call starts. If calls hang, the pause is so long that one more can start
// while they do, which finds out when the server answers again.
func (s *server) starts(now time.Time) {
	if s.pause > 0 {
		s.until = now.Add(max(s.pause, s.limit(0)/callsAtOnce))
	}
}

// acknowledged records an acknowledgement of a call that began at a time and made a number of
// requests, and returns to full speed. Slower requests before it count for a while.
func (s *server) acknowledged(begun time.Time, requests int) {
	s.answers.Add(1)
	s.last, s.inVain = time.Now(), 0
	if begun.After(s.newest) {
		s.newest = begun
	}
	s.failures, s.pause, s.until = 0, 0, time.Time{}
	s.slowest = max(s.last.Sub(begun)/time.Duration(requests), s.slowest-s.slowest/8)
	s.longest = max(attemptLeast, min(3*s.slowest, attemptFirst), s.slowest+s.slowest/2)
	s.bears = max(answerPatience, lostCallsBorne*(s.longest+2*pauseFirst))
	s.wake()
}

// failed records that a call has failed, and reports whether it is the first one since the last
// acknowledgement. A call that got no answer, while one that began no earlier did, was lost: that
// says nothing about the server's speed. If calls are lost, neither do the next few. Otherwise the
// server may be slow, and the next calls get twice the time. The pause grows only by failures of
// calls that began after it had grown before.
func (s *server) failed(f *flight) (first bool) {
	s.failures++
	now, silent := time.Now(), f.unanswered
	if silent && !s.newest.Before(f.begun) {
		s.lost = now
	}
	if silent = silent && (!s.loses(now) || s.failures >= lostCallsBorne); silent {
		limit := min(f.limit, s.limit(0)) // a pod of its own may have had more
		s.longest = max(s.limit(0), min(2*limit, attemptSlowest))
	}
	if f.limited > 0 || silent || s.failures >= callsAtOnce {
		if s.pause == 0 || !f.begun.Before(s.paused) {
			s.pause, s.paused = min(max(2*s.pause, pauseFirst), pauseMost), now
		}
		s.pause = max(s.pause, f.limited)
		if until := now.Add(s.pause); until.After(s.until) {
			s.until = until
		}
	}
	return s.failures == 1
}

// loses reports whether the server is known to lose single calls.
func (s *server) loses(now time.Time) bool {
	return !s.lost.IsZero() && now.Sub(s.lost) < lostCallsCount
}

// wake makes every await look again.
func (s *server) wake() {
	close(s.answered)
	s.answered = make(chan struct{})
}

// await is [Outbox.Await].
func (s *server) await(ctx context.Context, pending func() bool, until time.Time, reserve time.Duration) bool {
	for start, over := time.Now(), false; ; {
		answered, end := s.watch(start, reserve, until)
		over = over || end.IsZero()
		if !pending() {
			return true
		}
		if over {
			return false
		}
		timer := time.NewTimer(time.Until(end))
		select {
		case <-answered:
		case <-timer.C:
		case <-ctx.Done():
			over = true
		}
		timer.Stop()
	}
}

// watch returns a channel that the next acknowledgement closes, and when a wait that has begun at
// start is over without one; zero if it is over, which it records. A server that is known to lose
// single calls gets the time of a few more.
func (s *server) watch(start time.Time, reserve time.Duration, until time.Time) (answered <-chan struct{}, end time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	now, since, patience := time.Now(), start, answerPatience
	if s.last.After(since) {
		since = s.last
	}
	if s.loses(now) {
		patience = s.bears
	}
	end = since.Add(max(patience-s.inVain, reserve))
	if now.Before(end) && now.Before(until) {
		return s.answered, times.Earlier(end, until)
	}
	if !now.Before(end) {
		s.lost = time.Time{}
	}
	s.inVain = min(s.inVain+now.Sub(since), answerPatience)
	return s.answered, time.Time{}
}
