package outbox

import (
	"cmp"
	"time"
)

const (
	// failuresInARow is how many calls in a row, of any pods, fail before the server counts as
	// one that does not answer.
	failuresInARow = callsAtOnce
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

// pace limits the calls to the API server. As long as the server answers, calls start at once,
// and the time that each may take follows from the last answer. Otherwise one call starts at a
// time, with a pause between two.
type pace struct {
	slowest  time.Duration // request of late
	longest  time.Duration // that a request may take; 0: attemptFirst
	failures int           // since the last acknowledgement
	pause    time.Duration // between the starts of two calls; 0: none
	paused   time.Time     // when the pause became as long as it is
	until    time.Time     // no call starts before
}

// limit returns how long a request may take, for a debt that this many calls were cut for.
func (p *pace) limit(cut uint8) time.Duration {
	grown := cmp.Or(p.longest, attemptFirst)
	for ; cut >= cutBeforeGrowth && grown < attemptMost; cut-- {
		grown *= 2
	}
	return grown
}

// starts records that a call starts. If calls hang, the pause is so long that one more can start
// while they do, which finds out when the server answers again.
func (p *pace) starts(now time.Time) {
	if p.pause > 0 {
		p.until = now.Add(max(p.pause, p.limit(0)/callsAtOnce))
	}
}

// acknowledged returns to full speed. took is how long a request took. Slower ones before it count
// for a while.
func (p *pace) acknowledged(took time.Duration) {
	slowest := max(took, p.slowest-p.slowest/8)
	*p = pace{slowest: slowest, longest: max(attemptLeast, min(3*slowest, attemptFirst), slowest+slowest/2)}
}

// slow gives the next calls twice the time of one that was cut, because the server may be slow.
func (p *pace) slow(limit time.Duration) {
	limit = min(limit, p.limit(0)) // a pod of its own may have had more
	p.longest = max(p.limit(0), min(2*limit, attemptSlowest))
}

// failed records the failure of a call and reports whether it is the first one since the last
// acknowledgement. limited is the pause that the server asks for; 0 if it asks for none. silent
// means that the server seems to answer no call. The pause grows only by failures of calls that
// began after it had grown before.
func (p *pace) failed(begun, now time.Time, limited time.Duration, silent bool) (first bool) {
	p.failures++
	if limited > 0 || silent || p.failures >= failuresInARow {
		if p.pause == 0 || !begun.Before(p.paused) {
			p.pause, p.paused = min(max(2*p.pause, pauseFirst), pauseMost), now
		}
		p.pause = max(p.pause, limited)
		if until := now.Add(p.pause); until.After(p.until) {
			p.until = until
		}
	}
	return p.failures == 1
}
