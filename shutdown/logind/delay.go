//go:build linux

package logind

import (
	"context"
	"math"
	"time"
)

// unlimited is a delay that logind does not end: InhibitDelayMaxSec=infinity,
// and whatever does not fit into a [time.Duration].
const unlimited = time.Duration(math.MaxInt64)

// limit reads how long logind lets locks delay a shutdown: 0 if not at all.
func (c *conn) limit(ctx context.Context) (time.Duration, error) {
	var usec uint64
	if err := c.property(ctx, "InhibitDelayMaxUSec", &usec); err != nil {
		return 0, err
	}
	return fromMicroseconds(usec), nil
}

// fromMicroseconds saturates: logind's infinity is the largest uint64, which
// overflows a time.Duration to -1 µs.
func fromMicroseconds(usec uint64) time.Duration {
	if usec > uint64(unlimited/time.Microsecond) {
		return unlimited
	}
	return time.Duration(usec) * time.Microsecond
}

// RequestDelay raises the limit.
func (s *session) RequestDelay(ctx context.Context, _ time.Duration) (time.Duration, error) {
	return s.conn.limit(ctx)
}
