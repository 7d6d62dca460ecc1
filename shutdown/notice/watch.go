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

// maxBackOff bounds the time between two attempts while the service fails. The shortest notices
// give 30 s.
const maxBackOff = 10 * time.Second

// notice is what an item of the service says. The zero value says that nothing is under way.
type notice struct {
	key   string // changes when something else is announced; "": nothing is
	event source.Event
}

// passed reports whether the time of the notice has passed.
func (n notice) passed() bool {
	return !n.event.Deadline.IsZero() && !n.event.Deadline.After(time.Now())
}

// item is one thing that a service is asked for again and again.
type item struct {
	origin   string
	interval time.Duration // from an answer to the next question
	// read asks once. fresh says that what the last answer was does not count, because there
	// is none or it was not announced: then the service must not be waited for until it changes.
	read func(ctx context.Context, fresh bool) (notice, error)

	// What Watch knows of it:
	announced string // the key of the notice that stands, "" if none does
	outage    error  // why the last reading failed
}

// reading is an answer of the service, or an error, on its way to Watch.
type reading struct {
	item    *item
	notice  notice
	err     error
	settled chan<- bool // is told whether it is done with
}

// Watch asks the provider until ctx ends, and calls announce with each notice that the machine
// goes, and with a cancellation of the same Origin when the notice is taken back. An announcement
// that fails is tried again, as long as the notice stands. A notice whose time has passed when it
// is first read is not announced: the machine has been through it, or its host itself is shutting
// down. The end of ctx takes nothing back.
//
// Watch goes on whatever the service does, and says what fails to [Provider.OnError]. At the end of
// ctx its error is what fails at that moment, or nil. Another error comes at once: a nil announce, a
// Provider that was not made with [EC2], [GCE] or [Azure], or an Endpoint that is no URL.
//
// announce and OnError are called in the caller's goroutine, one call at a time, and nothing is read
// while they block.
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
			slog.WarnContext(ctx, "No notice of a shutdown can be heard, will try again", "err", err)
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
			err := r.settle(announce)
			if err != nil && r.item.outage == nil {
				onError(err)
			}
			r.item.outage = err
			r.settled <- err == nil
		case <-ctx.Done():
		}
	}
	errs := make([]error, len(items))
	for n, i := range items {
		errs[n] = i.outage
	}
	return errors.Join(errs...)
}

// poll reads the item until ctx ends.
func (i *item) poll(ctx context.Context, readings chan<- reading) {
	for failures := 0; ; {
		n, err := i.read(ctx, failures > 0)
		if ctx.Err() != nil {
			return
		}
		settled := make(chan bool, 1)
		select {
		case readings <- reading{item: i, notice: n, err: err, settled: settled}:
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
			failures = min(failures+1, 10) // beyond that the shift could overflow
		}
		select {
		case <-time.After(wait):
		case <-ctx.Done():
			return
		}
	}
}

// settle announces what a reading changes. The error says why the reading is not done with.
func (r reading) settle(announce func(source.Event) error) error {
	i, event := r.item, r.notice.event
	switch {
	case r.err != nil:
		return fmt.Errorf("%s: %w", i.origin, r.err)
	case r.notice.key == i.announced:
		return nil
	case r.notice.key == "":
		event = source.Event{Cancelled: true}
	case i.announced == "" && r.notice.passed():
		return nil
	}
	event.Origin = i.origin
	if err := announce(event); err != nil {
		return fmt.Errorf("%s: announce: %w", i.origin, err)
	}
	i.announced = r.notice.key
	return nil
}
