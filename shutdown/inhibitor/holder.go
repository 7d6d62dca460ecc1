package inhibitor

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/nilcheck"
	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// errCancelled is the cause with which the context of OnShutdown ends when the host cancels the shutdown.
var errCancelled = errors.New("the host has cancelled the shutdown")

// hangTime is how long Run waits at its end for calls of the source and of the logger.
const hangTime = time.Second

// Holder holds the inhibitor lock of a host, and calls OnShutdown when the host shuts down. Set its fields before
// [Holder.Run].
type Holder struct {
	// Source is the host. It is required.
	Source source.Source
	// Delay is the delay of the shutdown that is requested from the host, at least a second. If the
	// host grants less, the lock is held anyway, and that is logged.
	Delay time.Duration
	// OnShutdown is called once for each announced shutdown, never concurrently. A repeated announcement
	// changes nothing, even with an earlier deadline. When OnShutdown returns, the inhibitor lock is
	// released, unless the shutdown was cancelled. A panic is logged, and counts as a return. The context
	// ends at the deadline of the event, when the host cancels the shutdown, and with the context of Run. If
	// the deadline is not known, OnShutdown must limit its work to Delay itself. It is required.
	OnShutdown func(context.Context, source.Event)
}

// Run holds the lock until ctx ends. If the session or the lock is lost, it connects again and keeps the
// old lock until it has a new one. If a shutdown is cancelled after OnShutdown has returned, it takes a
// new lock. When ctx ends, Run waits for OnShutdown, releases the lock, and returns the errors of the release
// and of closing the session, and an error that names calls of the source and of the logger that hang. If a
// required field is missing, it returns an error immediately.
//
// Run logs each shutdown, its cancellation and the return of OnShutdown. While the lock is held as requested
// it logs nothing; systemd-inhibit --list shows a lock of logind.
func (h Holder) Run(ctx context.Context) error {
	if err := h.validate(); err != nil {
		return err
	}
	calls := &call.Group{}
	holding := &holding{Holder: h, ctx: ctx, logLines: call.Sequence{Calls: calls, Name: "the logger"}, ended: make(chan struct{})}
	close(holding.ended) // no OnShutdown is running yet
	if ctx.Err() != nil {
		holding.log("Run's context ended before the inhibitor lock was taken")
	}
	holding.host = host.New(host.Options{
		Source: h.Source, Delay: h.Delay, Calls: calls, Listener: holding,
		// Holder knows no pods, so any grant below Delay counts as too short, and HostCapped logs it.
		ShortensPods: func(time.Duration) bool { return true },
	})
	err := holding.host.Run(ctx)
	<-holding.ended
	closeErr := holding.host.Close(ctx)
	return errors.Join(err, holding.releaseErr, closeErr, calls.WaitUntil(time.Now().Add(hangTime)))
}

// validate returns an error for each field that is missing or wrong, joined.
func (h Holder) validate() error {
	var errs []error
	if h.Source == nil || nilcheck.IsTypedNil(h.Source) {
		errs = append(errs, errors.New("Holder.Source is required"))
	}
	if h.Delay < time.Second {
		errs = append(errs, fmt.Errorf("Holder.Delay is %v, it must be at least 1s", h.Delay))
	}
	if h.OnShutdown == nil {
		errs = append(errs, errors.New("Holder.OnShutdown is required"))
	}
	return errors.Join(errs...)
}

// holding is one Run. It is the host's listener. The host announces and cancels shutdowns one after another, so
// that the fields need no mutex.
type holding struct {
	Holder

	ctx      context.Context // of Run
	host     *host.Host
	logLines call.Sequence
	hold     *host.Hold              // of the announced shutdown; nil: none is announced
	cancel   context.CancelCauseFunc // ends the context of the newest OnShutdown
	ended    chan struct{}           // closed when the newest OnShutdown has returned and the lock is released

	releaseErr error // the result of the release at the end of Run; read it once ended is closed
}

// HostEvent implements host.Listener.
func (h *holding) HostEvent(event source.Event) {
	if event.Cancelled {
		h.cancelShutdown()
	} else {
		h.announce(event)
	}
}

// HostPending implements host.Listener. If the host could not say what is pending (known is false), an announced shutdown
// stays announced.
func (h *holding) HostPending(pending *source.Event, known bool, _ time.Time) {
	switch {
	case pending != nil:
		h.announce(*pending)
	case known:
		h.cancelShutdown()
	}
}

// HostCapped implements host.Listener.
func (h *holding) HostCapped(err error) {
	text := fmt.Sprint(err) // recovers a panic of the Error method
	h.logLines.Add(func() {
		klog.FromContext(h.ctx).Error(errors.New(text), "The inhibitor lock is held, but the host grants less than the requested delay")
	})
}

// HostUnreached and HostTried do nothing, because nothing waits for the lock.
func (*holding) HostUnreached() {}
func (*holding) HostTried()     {}

// announce calls OnShutdown for a newly announced shutdown, in a goroutine that first waits for the OnShutdown of an
// earlier one. A repeated announcement changes nothing.
func (h *holding) announce(event source.Event) {
	if h.hold != nil {
		return
	}
	deadline := "unknown"
	if !event.Deadline.IsZero() {
		deadline = event.Deadline.Format(time.RFC3339)
	}
	h.log("The host shuts down, calling Holder.OnShutdown", "kind", cmp.Or(string(event.Kind), "unknown"), "deadline", deadline)
	h.hold = h.host.BeginShutdown()
	ctx, cancel := context.WithCancelCause(h.ctx)
	hold, previousEnded, ended := h.hold, h.ended, make(chan struct{})
	h.cancel, h.ended = cancel, ended
	go func() {
		defer close(ended)
		defer cancel(nil)
		<-previousEnded
		began := time.Now()
		defer func() { h.release(ctx, hold, time.Since(began)) }() // also if OnShutdown ends its goroutine
		if !errors.Is(context.Cause(ctx), errCancelled) {
			h.callOnShutdown(ctx, event)
		}
	}()
}

// callOnShutdown calls OnShutdown. It logs a panic, and a call that goes on after the end of ctx: until the call returns
// the lock stays held, which delays the host.
func (h *holding) callOnShutdown(ctx context.Context, event source.Event) {
	const name = "Holder.OnShutdown"
	if !event.Deadline.IsZero() {
		var stopTimer context.CancelFunc
		ctx, stopTimer = context.WithDeadline(ctx, event.Deadline)
		defer stopTimer()
	}
	defer call.WatchEnd(ctx, name)()
	call.Guard(ctx, name, func() error {
		h.OnShutdown(ctx, event)
		return nil
	}, func(error) {}) // nothing is left to do: Guard logs a panic
}

// release releases the lock, unless the shutdown was cancelled. An error is logged or, if Run is ending, returned by Run.
// ctx is the context of OnShutdown, which took this long.
func (h *holding) release(ctx context.Context, hold *host.Hold, took time.Duration) {
	closeLock := hold.Release() // releases nothing after a cancellation, which has ended hold
	err := closeLock(h.ctx)
	wasCancelled := errors.Is(context.Cause(ctx), errCancelled)
	isRunEnding := h.ctx.Err() != nil
	switch {
	case err != nil && isRunEnding:
		h.releaseErr = err
	case err != nil:
		h.logLines.Add(func() { klog.FromContext(h.ctx).Error(err, "Failed to release the inhibitor lock") })
	case !wasCancelled: // a program whose OnShutdown returns before the work is done sees that here
		h.log("Holder.OnShutdown has returned, the machine may shut down", "after", took)
	}
}

// cancelShutdown cancels the announced shutdown, if there is one, and ends the context of the newest OnShutdown. The lock stays
// held.
func (h *holding) cancelShutdown() {
	if h.hold != nil {
		h.hold.End() // before OnShutdown can return because of cancel, which would release the lock
		h.hold = nil
		h.cancel(errCancelled)
		h.log("The host has cancelled the shutdown")
	}
}

// log writes a line to the logger in the context of Run, without waiting for it.
func (h *holding) log(line string, keysAndValues ...any) {
	h.logLines.Add(func() { klog.FromContext(h.ctx).Info(line, keysAndValues...) })
}
