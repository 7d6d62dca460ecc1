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

// limit is the host's answer to a request for the delay.
type limit struct {
	granted time.Duration
	setBy   string // such as "InhibitDelayMaxSec in /etc/a.conf"; "": as requested, or unknown
}

// delay is the state of the requested delay. Only the goroutine of Run uses it, except for limit.
type delay struct {
	limit     atomic.Pointer[limit] // the newest answer; nil: none yet
	cappedErr error                 // pods get less time; wraps a *source.DelayCappedError; nil: they do not
	retry     time.Duration         // the last pause while cappedErr is set
}

// nextPause returns the pause before the next request of the delay. After a grant that is too small it is
// short at first, and doubles with each call.
func (d *delay) nextPause() time.Duration {
	if d.cappedErr == nil {
		d.retry = 0
		return readInterval
	}
	d.retry = min(max(2*d.retry, minRetryPause), readInterval)
	return d.retry
}
