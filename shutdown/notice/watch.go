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

// maxBackOff bounds the pause while the service fails. The shortest notices give 30 s.
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
	// read reads it once. fresh says that the last answer does not count, because there was none or
	// it was not announced; then the service must not hold back the answer until it changes.
	read func(ctx context.Context, fresh bool) (notice, error)

	// the key of the announced notice; "": none
	announced string // the key of the notice that stands, "" if none does
	lastErr   error  // why the last reading failed
}

// reading is an answer or an error.
type reading struct {
	item    *item
	notice  notice
	err     error
	handled chan<- bool // receives whether it was handled without an error
}

// Watch reads the provider's notices until ctx ends. It calls announce with each notice of this
// machine, and with a cancellation of the same Origin when the notice is withdrawn. A failed
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
			if err != nil && r.item.lastErr == nil {
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

func (i *item) poll(ctx context.Context, readings chan<- reading) {
	for failures := 0; ; {
		n, err := i.read(ctx, failures > 0)
		if ctx.Err() != nil {
			return
		}
		settled := make(chan bool, 1)
		select {
		case readings <- reading{item: i, notice: n, err: err, handled: settled}:
		case <-ctx.Done():
			return
		}
		var done bool
		select {
		case done = <-settled:
		case <-ctx.Done(): // announce may have panicked
			return
		}
		wait := i.interval
		if done {
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

// handle announces the change of a reading. The error is passed to OnError, and the reading is
// repeated.
func (r reading) handle(announce func(source.Event) error) error {
	i, event := r.item, r.notice.event
	switch {
	case r.err != nil:
		return fmt.Errorf("%s: %w", i.origin, r.err)
	case r.notice.key == i.announced:
		return nil
	case r.notice.key == "":
		event = source.Event{Cancelled: true}
	case i.announced == "" && r.notice.hasPassed():
		return nil
	}
	event.Origin = i.origin
	if err := announce(event); err != nil {
		return fmt.Errorf("%s: announce: %w", i.origin, err)
	}
	i.announced = r.notice.key
	return nil
}
