package source

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"reflect"
	"runtime/debug"
	"time"
)

const (
	// reconnectPause is the pause between two sessions.
	reconnectPause = time.Second
	// hangTime is how long a call of the source may take before it is logged as hanging. An OnShutdown is
	// logged if it has not returned this long after the end of its context.
	hangTime = 5 * time.Second
	// limitInterval is how often the host's limit is checked, because others may change it.
	limitInterval = 10 * time.Second
)

// Holder holds the inhibitor lock of a host, and calls OnShutdown when the host shuts down. It is for
// programs without pods. Set its fields before [Holder.Run].
type Holder struct {
	// Source is the host. It is required.
	Source Source
	// Delay is the delay of the shutdown that is requested from the host, at least a second. If the
	// host grants less, the lock is held anyway, and a warning is logged.
	Delay time.Duration
	// OnShutdown is called once for each announced shutdown, never concurrently. When it returns, the
	// inhibitor lock is released, unless the shutdown was cancelled. A panic is logged, and has the same
	// effect. The context ends at the deadline of the event, when the host cancels the shutdown, and with
	// the context of Run. If the deadline is not known, OnShutdown must limit its work to Delay itself. It
	// is required.
	OnShutdown func(context.Context, Event)
	// Logger logs when the lock cannot be held or the host grants less than Delay, and when that is over.
	// A repeated failure is logged once. Nil means [slog.Default].
	Logger *slog.Logger
}

// Run holds the lock until ctx ends. If the session or the lock is lost, it connects again and keeps the
// old lock until it has a new one. If a shutdown is cancelled after OnShutdown has returned, it takes a
// new lock. When ctx ends, Run waits for OnShutdown, releases the lock, and returns nil or the error of
// the release. If a required field is missing, it returns an error immediately.
func (h Holder) Run(ctx context.Context) error {
	if err := h.validate(); err != nil {
		return err
	}
	if h.Logger == nil {
		h.Logger = slog.Default()
	}
	holding := &holding{Holder: h}
	if adopter, ok := h.Source.(Adopter); ok {
		holding.lock = adopter.Adopt()
	}
	for ctx.Err() == nil {
		if err := holding.session(ctx); ctx.Err() == nil {
			holding.log(ctx, err)
			holding.pause(ctx)
		}
	}
	return holding.end()
}

// validate returns an error for each field that is missing or wrong, joined.
func (h Holder) validate() error {
	var errs []error
	value := reflect.ValueOf(h.Source)
	isNilPointer := value.Kind() == reflect.Pointer && value.IsNil() // in an interface that is not nil
	if h.Source == nil || isNilPointer {
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

// holding is the state of one Run. Only the goroutine of Run uses it, so that it needs no mutex.
type holding struct {
	Holder

	lock      io.Closer          // nil: not held
	announced *Event             // the announced shutdown; nil: none, or cancelled
	called    bool               // OnShutdown was called for announced
	returned  chan struct{}      // closed when OnShutdown returns; nil: it is not running
	cancel    context.CancelFunc // of the last OnShutdown's context
	failure   string             // the last logged failure; "": the lock is held for Delay
}

// session connects to the host, takes the lock, and handles the host's events. It returns an error when the
// session cannot begin or is lost, and nil when ctx ends. The lock stays held. While no shutdown is announced,
// after each event and every limitInterval, it takes a lock if none is held, or else checks what delay the host grants.
func (h *holding) session(ctx context.Context) (err error) {
	session, err := callSource(ctx, h, "Connect", h.Source.Connect)
	if err != nil {
		return fmt.Errorf("failed to connect to the host: %w", err)
	}
	if session == nil {
		return errors.New("failed to connect to the host: the source has returned no session and no error")
	}
	defer func() { err = errors.Join(err, session.Close()) }()
	events := session.Events()
	if events == nil {
		return errors.New("the session with the host has no channel of events")
	}
	switch pending, err := callSource(ctx, h, "Pending", session.Pending); {
	case errors.Is(err, errors.ErrUnsupported): // the host cannot be asked, and what was announced stays so
	case err != nil:
		return fmt.Errorf("failed to ask the host for a pending shutdown: %w", err)
	case pending == nil:
		h.cancelShutdown()
	default:
		h.announce(ctx, *pending)
	}
	if err := h.replaceLock(ctx, session); err != nil {
		return err
	}
	limit := time.NewTicker(limitInterval)
	defer limit.Stop()
	for {
		select {
		case event, open := <-events:
			switch {
			case !open:
				return errors.New("the session with the host was lost")
			case event.Cancelled:
				h.cancelShutdown()
			default:
				h.announce(ctx, event)
			}
		case <-h.returned: // OnShutdown has returned
			h.afterShutdown(ctx)
			continue
		case <-limit.C: // check the lock or the delay below
		case <-ctx.Done():
			return nil
		}
		switch {
		case h.announced != nil: // the host grants no lock and no delay now
		case h.lock == nil: // released for a shutdown that was cancelled afterwards
			if err := h.replaceLock(ctx, session); err != nil {
				return err
			}
		default:
			capped, err := h.requestDelay(ctx, session)
			if err != nil {
				return err
			}
			h.log(ctx, capped)
		}
	}
}

// replaceLock requests the delay, takes a lock, and closes the previous session's lock. During a shutdown it
// only takes the lock that the host may have kept.
func (h *holding) replaceLock(ctx context.Context, session Session) error {
	if h.announced != nil {
		h.takeKeptLock(ctx, session)
		return nil
	}
	capped, err := h.requestDelay(ctx, session)
	if err != nil {
		return err
	}
	if err := h.inhibit(ctx, session); err != nil {
		return err
	}
	h.log(ctx, capped)
	return nil
}

// takeKeptLock takes the lock of a previous run of this program, if the host has kept it and none is held yet.
// During a shutdown, a host grants no other lock.
func (h *holding) takeKeptLock(ctx context.Context, session Session) {
	isDraining := h.returned != nil // OnShutdown is running; once it has returned, no lock is needed
	if h.lock != nil || !isDraining {
		return
	}
	if err := h.inhibit(ctx, session); err != nil {
		h.log(ctx, err)
	}
}

// inhibit takes a lock and closes the old one.
func (h *holding) inhibit(ctx context.Context, session Session) error {
	lock, err := callSource(ctx, h, "Inhibit", session.Inhibit)
	if err == nil && lock == nil {
		err = errors.New("the session has returned no lock and no error")
	}
	if err != nil {
		return fmt.Errorf("failed to take the inhibitor lock: %w", err)
	}
	if err := h.release(); err != nil {
		h.log(ctx, err)
	}
	h.lock = lock
	return nil
}

// requestDelay requests Delay from the host. If the host grants less, capped is a *DelayCappedError and err is
// nil, because the lock is held anyway.
func (h *holding) requestDelay(ctx context.Context, session Session) (capped, err error) {
	_, err = callSource(ctx, h, "RequestDelay", func(ctx context.Context) (time.Duration, error) { return session.RequestDelay(ctx, h.Delay) })
	if errors.As(err, new(*DelayCappedError)) {
		return err, nil
	}
	if err != nil {
		return nil, fmt.Errorf("failed to request the delay: %w", err)
	}
	return nil, nil
}

// callSource calls a method of the source or its session. It logs a call that has not returned after hangTime.
func callSource[T any](ctx context.Context, h *holding, name string, do func(context.Context) (T, error)) (T, error) {
	logger := h.Logger
	slow := time.AfterFunc(hangTime, func() {
		logger.ErrorContext(ctx, "A call of the source has not returned", "call", name, "time", hangTime)
	})
	defer slow.Stop()
	return do(ctx)
}

// announce calls OnShutdown for a newly announced shutdown. A repeated announcement changes nothing.
func (h *holding) announce(ctx context.Context, event Event) {
	if h.announced == nil {
		h.announced, h.called = &event, false
		h.callOnShutdown(ctx)
	}
}

// cancelShutdown withdraws the announcement, if there is one, and ends the context of its OnShutdown. The lock
// stays held.
func (h *holding) cancelShutdown() {
	if h.announced != nil {
		h.announced = nil
		h.cancel()
	}
}

// callOnShutdown starts OnShutdown for the announced shutdown in a goroutine, unless that was done before.
// While OnShutdown is still running for an earlier shutdown, it does nothing: afterShutdown does it later.
func (h *holding) callOnShutdown(ctx context.Context) {
	isDue := h.announced != nil && !h.called
	isBusy := h.returned != nil // with an earlier shutdown
	if !isDue || isBusy {
		return
	}
	event, returned := *h.announced, make(chan struct{})
	if event.Deadline.IsZero() {
		ctx, h.cancel = context.WithCancel(ctx)
	} else {
		ctx, h.cancel = context.WithDeadline(ctx, event.Deadline)
	}
	h.called, h.returned = true, returned
	go func() {
		defer close(returned)
		stopWatching := h.logIfSlow(ctx)
		defer stopWatching()
		defer func() {
			if value := recover(); value != nil {
				h.Logger.ErrorContext(ctx, "OnShutdown panicked, the inhibitor lock is released", "panic", value, "stack", string(debug.Stack()))
			}
		}()
		h.OnShutdown(ctx, event)
	}()
}

// logIfSlow starts a watch of OnShutdown, whose context is ctx. If OnShutdown has not returned hangTime after the
// end of ctx, it logs that: the lock stays held meanwhile, which delays the host. Call done when OnShutdown has
// returned.
func (h Holder) logIfSlow(ctx context.Context) (done func()) {
	returned, watched := make(chan struct{}), make(chan struct{})
	go func() {
		defer close(watched)
		select {
		case <-ctx.Done():
		case <-returned:
			return
		}
		timer := time.NewTimer(hangTime)
		defer timer.Stop()
		select {
		case <-returned:
		case <-timer.C:
			h.Logger.ErrorContext(ctx, "OnShutdown has not returned since its context ended, and the inhibitor lock stays held", "time", hangTime)
		}
	}()
	return func() {
		close(returned)
		<-watched
	}
}

// afterShutdown handles the return of OnShutdown. It releases the lock, so that the host shuts down, unless that
// shutdown was cancelled. If another one was announced meanwhile, it calls OnShutdown for that one.
func (h *holding) afterShutdown(ctx context.Context) {
	h.cancel()
	h.returned = nil
	isStillAnnounced := h.announced != nil && h.called // not called: it was cancelled, and another one announced
	if isStillAnnounced {
		if err := h.release(); err != nil {
			h.log(ctx, err)
		}
	}
	h.callOnShutdown(ctx)
}

// pause waits for reconnectPause or the end of ctx. If OnShutdown returns meanwhile, it releases the lock at once.
func (h *holding) pause(ctx context.Context) {
	timer := time.NewTimer(reconnectPause)
	defer timer.Stop()
	for {
		select {
		case <-h.returned:
			h.afterShutdown(ctx)
		case <-timer.C:
			return
		case <-ctx.Done():
			return
		}
	}
}

// end waits for OnShutdown, if it is running, and releases the lock.
func (h *holding) end() error {
	if h.returned != nil {
		<-h.returned
		h.cancel()
	}
	return h.release()
}

// release closes the lock, if one is held.
func (h *holding) release() error {
	if h.lock == nil {
		return nil
	}
	lock := h.lock
	h.lock = nil
	if err := lock.Close(); err != nil {
		return fmt.Errorf("failed to release the inhibitor lock: %w", err)
	}
	return nil
}

// log logs why the lock is not held, or not for the whole Delay, unless it has logged the same error last. A nil
// err means that all is well: it logs the end of a failure.
func (h *holding) log(ctx context.Context, err error) {
	switch text := textOf(err); {
	case ctx.Err() != nil: // Run ends, and its calls fail because of that
	case text == h.failure: // logged already
	case err != nil:
		h.failure = text
		if errors.As(err, new(*DelayCappedError)) {
			h.Logger.WarnContext(ctx, "The inhibitor lock is held, but the host grants less than the requested delay", "err", err)
		} else {
			h.Logger.WarnContext(ctx, "Failed to hold the inhibitor lock, will retry", "err", err)
		}
	default:
		h.failure = ""
		h.Logger.InfoContext(ctx, "The inhibitor lock is held for the requested delay")
	}
}

// textOf returns the text of an error, "" for nil.
func textOf(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}
