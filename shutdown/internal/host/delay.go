package host

import (
	"sync/atomic"
	"time"
)

const (
	// readInterval is how often the host's limit is read while no shutdown is announced: logind does not say
	// when its limit changes.
	readInterval = 10 * time.Second
	// minRetryPause is the pause before the next request after an insufficient grant. It doubles up to
	// readInterval.
	minRetryPause = time.Second
)

// limit is the host's answer to a request of the delay.
type limit struct {
	granted time.Duration
	setBy   string // what caps the delay, such as "InhibitDelayMaxSec in /etc/a.conf"; "": nothing, or it is not known
}

// delay is the state of the requested delay. Only the goroutine of Run uses it, except for limit.
type delay struct {
	limit       atomic.Pointer[limit] // the newest answer; nil: none yet
	tooShortErr error                 // pods get less time with the newest answer; wraps a *source.DelayCappedError; nil: they do not
	lastPause   time.Duration         // the last pause while tooShortErr is set
}

// nextPause returns the pause before the next request of the delay. After a grant that is too small it is
// short at first, and doubles with each call.
func (d *delay) nextPause() time.Duration {
	if d.tooShortErr == nil {
		d.lastPause = 0
		return readInterval
	}
	d.lastPause = min(max(2*d.lastPause, minRetryPause), readInterval)
	return d.lastPause
}
