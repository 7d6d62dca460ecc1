package host

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/metrics"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// delay asks the host to wait as long as a shutdown needs. A host that waits for so much less that
// pods lose time is asked again. Only the goroutine of the sessions may call ask; the times may be
// read by anybody.
type delay struct {
	wish     time.Duration
	shortens func(granted time.Duration) bool
	metrics  *metrics.Shutdown
	listener Listener

	failed bool    // the last request failed
	capped error   // the host waits for too little; wraps a *source.DelayCappedError; nil: it does not
	pause  backoff // before it is asked again

	mu                 sync.Mutex // guards all below
	known              bool       // the host has answered
	requested, granted time.Duration
}

// times returns what the host was asked for and what it granted; false if it has never answered.
func (d *delay) times() (requested, granted time.Duration, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.requested, d.granted, d.known
}

func (d *delay) set(granted time.Duration) {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.known, d.requested, d.granted = true, d.wish, granted
	d.metrics.Delay(d.wish, granted)
}

// unmet reports whether the host is to be asked again.
func (d *delay) unmet() bool { return d.failed || d.capped != nil }

// ask asks the host. A capped delay is no failure: it is kept in capped if pods lose time.
func (d *delay) ask(ctx context.Context, c *caller, conn source.Session) error {
	granted, err := ask(ctx, c, "RequestDelay", delayTimeout, func(ctx context.Context) (time.Duration, error) {
		return conn.RequestDelay(ctx, d.wish)
	}, nil)
	capped := errors.As(err, new(*source.DelayCappedError))
	if d.failed = err != nil && !capped; d.failed {
		return fmt.Errorf("failed to request the shutdown delay: %w", err)
	}
	d.set(granted)
	switch {
	case !capped:
		d.capped = nil
	case d.shortens(granted):
		d.setCapped(err)
	default:
		klog.FromContext(ctx).V(1).Info("The host waits for less than it was asked to, the pods' time fits all the same", "granted", granted, "requested", d.wish, "err", err)
		d.capped = nil
	}
	return nil
}

// setCapped keeps the error of a capped delay, and tells the listener if it is news.
func (d *delay) setCapped(capped error) {
	news := d.capped == nil || fmt.Sprint(d.capped) != fmt.Sprint(capped) // fmt survives an Error method that panics
	if d.capped = capped; news {
		d.listener.HostCapped(capped)
	}
}
