package notice

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// maxBackOff is the longest pause between two attempts while the service fails. It is short, because the shortest
// notices leave only 30 s.
const maxBackOff = 10 * time.Second

// notice is a termination notice, as a service gives it. The zero value means that the service gives none.
type notice struct {
	key   string // differs if the notice or its time has changed, so that it must be announced; "": there is no notice
	event source.Event
}

// hasPassed reports whether the deadline has passed.
func (n notice) hasPassed() bool {
	return !n.event.Deadline.IsZero() && !n.event.Deadline.After(time.Now())
}

// polledValue is one value of a service, which Watch reads repeatedly.
type polledValue struct {
	origin   string
	interval time.Duration // from an answer to the next request
	// read reads the value once. With atOnce, which follows a failure to read or to announce, the service must answer at
	// once, and not hold back the answer until the value changes.
	read func(ctx context.Context, atOnce bool) (notice, error)

	announcedKey string // the key of the notice that is announced and not withdrawn; "": none
	lastErr      error  // why the last attempt to read or to announce failed; nil: it succeeded
}

// reading is one result of polledValue.read. The goroutine that polls the value passes it to Watch, and waits for
// succeeded.
type reading struct {
	value     *polledValue
	notice    notice
	err       error
	succeeded chan<- bool // Watch sends whether the value was read and announced without an error
}

// Watch reads the provider's notices until ctx ends. It calls announce with each notice of this machine.
// When the notice is withdrawn, it calls announce with a cancellation of the same Origin. A failed
// announcement is repeated while the notice lasts. A notice whose time has passed when it is first read
// is not announced: the machine survived it, or the host is already shutting down. The end of ctx
// withdraws nothing. A notice that is withdrawn while the agent is down cancels nothing: the next agent
// resumes the drain, until the manager's Trigger cancels it.
//
// Watch continues after failures, and passes the first failure of each outage to [Provider.OnError]. At the
// end of ctx it returns the failures that still last, or nil. It returns an error at once for a nil
// announce, a Provider that was not made with [EC2], [GCE] or [Azure], and an invalid Endpoint.
//
// announce and OnError are called in the caller's goroutine, one at a time, and nothing is read while
// they block. A panic of theirs reaches the caller.
func Watch(ctx context.Context, p Provider, announce func(source.Event) error) error {
	if err := p.validate(); err != nil {
		return err
	}
	if announce == nil {
		return errors.New("notice: the function that announces is nil")
	}
	s, err := newService(p)
	if err != nil {
		return err
	}
	defer s.client.CloseIdleConnections()
	onError := p.OnError
	if onError == nil {
		onError = func(err error) {
			slog.WarnContext(ctx, "Failed to watch for termination notices, will retry", "err", err)
		}
	}
	return watchValues(ctx, p.values(s), announce, onError)
}

// watchValues polls each value in a goroutine until ctx ends. It handles the readings in its caller's goroutine, so that announce
// and onError are not called concurrently. It returns the failures that still last.
func watchValues(ctx context.Context, values []*polledValue, announce func(source.Event) error, onError func(error)) error {
	var polls sync.WaitGroup
	defer polls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	readings := make(chan reading)
	for _, v := range values {
		polls.Add(1)
		go func() {
			defer polls.Done()
			v.poll(ctx, readings)
		}()
	}
	for ctx.Err() == nil {
		select {
		case r := <-readings:
			err := r.handle(announce)
			isNewOutage := err != nil && r.value.lastErr == nil
			if isNewOutage {
				onError(err)
			}
			r.value.lastErr = err
			r.succeeded <- err == nil
		case <-ctx.Done():
		}
	}
	lasting := make([]error, 0, len(values))
	for _, v := range values {
		lasting = append(lasting, v.lastErr)
	}
	return errors.Join(lasting...)
}

// poll reads the value until ctx ends, and passes each reading to Watch. After a failure to read or to announce, it pauses
// longer: 1 s at first, doubled up to maxBackOff. Then the service must answer at once, without waiting for a change.
func (v *polledValue) poll(ctx context.Context, readings chan<- reading) {
	failures := 0 // in a row
	for {
		atOnce := failures > 0
		n, err := v.read(ctx, atOnce)
		if ctx.Err() != nil {
			return
		}
		result := make(chan bool, 1)
		select {
		case readings <- reading{value: v, notice: n, err: err, succeeded: result}:
		case <-ctx.Done():
			return
		}
		var succeeded bool
		select {
		case succeeded = <-result:
		case <-ctx.Done(): // announce may have panicked, so that nothing is sent
			return
		}
		pause := v.interval
		if succeeded {
			failures = 0
		} else {
			pause = min(time.Second<<min(failures, 10), maxBackOff) // a larger shift could overflow
			failures++
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// handle calls announce if the service has a new notice, or no longer has the announced one. After an error, of the
// reading or of announce, v.announcedKey is unchanged, so that the next reading of the value tries again.
func (r reading) handle(announce func(source.Event) error) error {
	v, event := r.value, r.notice.event
	switch {
	case r.err != nil:
		return fmt.Errorf("%s: %w", v.origin, r.err)
	case r.notice.key == v.announcedKey: // nothing has changed
		return nil
	case r.notice.key == "": // the announced notice is gone
		event = source.Event{Cancelled: true}
	case v.announcedKey == "" && r.notice.hasPassed(): // the machine has survived the notice, or is shutting down
		return nil
	}
	event.Origin = v.origin
	if err := announce(event); err != nil {
		return fmt.Errorf("%s: announce: %w", v.origin, err)
	}
	v.announcedKey = r.notice.key
	return nil
}
