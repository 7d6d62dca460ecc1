package host

import (
	"sync/atomic"
	"time"
)

const (
	// readInterval is how often the host's limit is read while no shutdown is announced. logind tells
	// nobody that its limit has changed.
	readInterval = 10 * time.Second
	// firstRetry is the pause after which a host that waits for too little is asked again. The pause
	// doubles up to readInterval.
	firstRetry = time.Second
)

// limit is how long the host waits, and what sets that.
type limit struct {
	granted time.Duration
	setBy   string // such as "InhibitDelayMaxSec in /etc/a.conf"; "": as asked for, or not known
}

// delay is how long the host waits. Only the goroutine of Run uses it, but for limit.
type delay struct {
	limit atomic.Pointer[limit] // as the host said last; nil: it has never said it
	unmet error                 // pods lose time; wraps a *source.DelayCappedError; nil: they do not
	retry time.Duration         // the last pause while unmet is set
}

// nextPause returns the pause before the limit is read again.
func (d *delay) nextPause() time.Duration {
	if d.unmet == nil {
		d.retry = 0
		return readInterval
	}
	d.retry = min(max(2*d.retry, firstRetry), readInterval)
	return d.retry
}
