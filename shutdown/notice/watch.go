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

// maxBackOff bounds the pause between two attempts while the service fails. It is short, because the shortest
// notices leave only 30 s.
const maxBackOff = 10 * time.Second

// notice is what an item says. The zero value: no notice.
type notice struct {
	key   string // identifies the notice; "": none
	event source.Event
}

// hasPassed reports whether the deadline has passed.
func (n notice) hasPassed() bool {
	return !n.event.Deadline.IsZero() && !n.event.Deadline.After(time.Now())
}

// item is one value of a service, which is read repeatedly.
type item struct {
	origin   string
	interval time.Duration // from an answer to the next request
	// read reads the value once. fresh says that the last attempt failed, either to read or to announce. Then the
	// service must answer at once, and not hold back the answer until the value changes.
	read func(ctx context.Context, fresh bool) (notice, error)

	announced string // the key of the notice that was announced and not withdrawn; "": none
	lastErr   error  // why the last attempt to read and announce failed; nil: it succeeded
}

// reading is one result of item.read. The goroutine that polls the item passes it to Watch, and waits for handled.
type reading struct {
	item    *item
	notice  notice
	err     error
	handled chan<- bool // Watch sends whether it has read and announced without an error
}

// Watch reads the provider's notices until ctx ends. It calls announce with each notice of this machine.
// When the notice is withdrawn, it calls announce with a cancellation of the same Origin. A failed
// announcement is repeated while the notice lasts. A notice whose time has passed when it is first read
// is not announced: the machine survived it, or the host is already shutting down. The end of ctx
// withdraws nothing.
//
// Watch continues after failures and passes them to [Provider.OnError]. At the end of ctx it returns
// the current failure, or nil. It returns an error at once for a nil announce, a Provider that was not
// made with [EC2], [GCE] or [Azure], and an invalid Endpoint.
//
// announce and OnError are called in the caller's goroutine, one at a time, and nothing is read while
// they block.
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
	var polls sync.WaitGroup
	defer polls.Wait()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	items, readings := p.items(s), make(chan reading)
	for _, i := range items {
		polls.Add(1)
		go func() {
			defer polls.Done()
			i.poll(ctx, readings)
		}()
	}
	for ctx.Err() == nil {
		select {
		case r := <-readings:
			err := r.handle(announce)
			if isNewOutage := err != nil && r.item.lastErr == nil; isNewOutage {
				onError(err)
			}
			r.item.lastErr = err
			r.handled <- err == nil
		case <-ctx.Done():
		}
	}
	errs := make([]error, len(items))
	for n, i := range items {
		errs[n] = i.lastErr
	}
	return errors.Join(errs...)
}

// poll reads the item until ctx ends, and passes each reading to Watch. After a failure, of the reading or in Watch, it
// pauses longer: 1 s at first, doubled up to maxBackOff. The next reading must then be fresh.
func (i *item) poll(ctx context.Context, readings chan<- reading) {
	for failures := 0; ; {
		fresh := failures > 0
		n, err := i.read(ctx, fresh)
		if ctx.Err() != nil {
			return
		}
		handled := make(chan bool, 1)
		select {
		case readings <- reading{item: i, notice: n, err: err, handled: handled}:
		case <-ctx.Done():
			return
		}
		var succeeded bool
		select {
		case succeeded = <-handled:
		case <-ctx.Done(): // announce may have panicked, so that nothing is sent
			return
		}
		wait := i.interval
		if succeeded {
			failures = 0
		} else {
			wait = min(time.Second<<failures, maxBackOff)
			failures = min(failures+1, 10) // a larger shift could overflow
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// handle announces a new notice, or the withdrawal of the announced one. If nothing has changed, it does nothing.
// An error is that of the reading or of announce. Then the caller reads the item again, and so repeats the
// announcement.
func (r reading) handle(announce func(source.Event) error) error {
	i, event := r.item, r.notice.event
	switch {
	case r.err != nil:
		return fmt.Errorf("%s: %w", i.origin, r.err)
	case r.notice.key == i.announced:
		return nil
	case r.notice.key == "": // the announced notice is gone
		event = source.Event{Cancelled: true}
	case i.announced == "" && r.notice.hasPassed(): // the machine has survived it, or is shutting down
		return nil
	}
	event.Origin = i.origin
	if err := announce(event); err != nil {
		return fmt.Errorf("%s: announce: %w", i.origin, err)
	}
	i.announced = r.notice.key
	return nil
}
