package statuses

import "time"

// pace is how fast calls may follow one another: ten at a time as long as the server
// answers, else one, with a pause before it.
type pace struct {
	failures int // without an acknowledgement between them
	pause    time.Duration
	until    time.Time // no call begins before it
}

// atOnce is how many calls may be made at the same time now.
func (p *pace) atOnce() int {
	if p.pause > 0 {
		return 1
	}
	return callsAtOnce
}

// acknowledged makes it as fast as it can be.
func (p *pace) acknowledged() { *p = pace{} }

// failed records a failure, and tells whether it is the first one since the last answer.
// limited is the pause that a server asks for which is asked for too much; 0: it does not.
// Calls that fail together count as one reason to slow down.
func (p *pace) failed(limited time.Duration) (first bool) {
	p.failures++
	now := time.Now()
	if limited > 0 || p.failures >= failuresInARow && !now.Before(p.until) {
		p.pause = max(min(max(2*p.pause, pauseFirst), pauseMost), limited)
		p.until = now.Add(p.pause)
	}
	return p.failures == 1
}
