package host

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// A host that waits for too little is asked again after firstStep, doubling to lastStep.
const (
	firstStep = time.Second
	lastStep  = 30 * time.Second
)

// delay asks the host to wait as long as a shutdown needs. A host that waits for so much less that
// pods lose time is asked again. Only the goroutine of Run uses it, but for granted.
type delay struct {
	wish     time.Duration
	shortens func(granted time.Duration) bool
	metrics  *metrics.Shutdown
	capped   func(error) // tells the listener

	granted atomic.Pointer[time.Duration] // as the host said last; nil: it has never said it
	failed  bool                          // the last request failed
	unmet   error                         // the host waits for too little; wraps a *source.DelayCappedError; nil: it does not
	step    time.Duration                 // of the next pause; 0: firstStep
}

// again reports whether the host is to be asked again.
func (d *delay) again() bool { return d.failed || d.unmet != nil }

// ask asks the host. A capped delay is no failure: it is kept in unmet if pods lose time.
func (d *delay) ask(ctx context.Context, c *caller, conn source.Session) error {
	granted, err := ask(ctx, c, "RequestDelay", delayTimeout, func(ctx context.Context) (time.Duration, error) {
		return conn.RequestDelay(ctx, d.wish)
	})
	capped := errors.As(err, new(*source.DelayCappedError))
	if d.failed = err != nil && !capped; d.failed {
		return fmt.Errorf("failed to request the shutdown delay: %w", err)
	}
	d.granted.Store(&granted)
	d.metrics.Delay(d.wish, granted)
	if !capped || !d.shortens(granted) {
		if capped {
			klog.FromContext(ctx).V(1).Info("The host waits for less than it was asked to, the pods' time fits all the same", "granted", granted, "requested", d.wish, "err", err)
		}
		d.unmet = nil
		return nil
	}
	news := d.unmet == nil || fmt.Sprint(d.unmet) != fmt.Sprint(err) // fmt survives an Error method that panics
	if d.unmet = err; news {
		d.capped(err)
	}
	return nil
}

// nextPause returns the pause before the host is asked again, between half the step and the whole
// step.
func (d *delay) nextPause() time.Duration {
	step := max(d.step, firstStep)
	d.step = min(2*step, lastStep)
	return step/2 + rand.N(step/2+1)
}
