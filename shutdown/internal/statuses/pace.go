package statuses

import "time"

// pace limits the calls to the API server: ten at a time as long as the server answers, otherwise
// one at a time with a pause between two calls.
type pace struct {
	failures int // since the last acknowledgement
	pause    time.Duration
	until    time.Time // no call starts before
}

// atOnce returns how many calls may run at the same time now.
func (p *pace) atOnce() int {
	if p.pause > 0 {
		return 1
	}
	return callsAtOnce
}

// acknowledged returns to full speed.
func (p *pace) acknowledged() { *p = pace{} }

// failed records a failure and reports whether it is the first one since the last
// acknowledgement. limited is the pause that the server asks for; 0 if it asks for none. Failures
// during a pause do not make the next pause longer.
func (p *pace) failed(limited time.Duration) (first bool) {
	p.failures++
	now := time.Now()
	if limited > 0 || p.failures >= failuresInARow && !now.Before(p.until) {
		p.pause = max(min(max(2*p.pause, pauseFirst), pauseMost), limited)
		p.until = now.Add(p.pause)
	}
	return p.failures == 1
}
