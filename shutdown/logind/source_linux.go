package logind

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// availableTimeout bounds Available, which an agent calls when it starts.
const availableTimeout = 2 * time.Second

// Source is the [source.Source] of a host with systemd-logind. Make one with [New]. All
// methods may be called concurrently.
type Source struct {
	options Options
	files   *delayFiles
	store   *fdStore // nil: NOTIFY_SOCKET is not set, or Options.NoFDStore
	losses  losses
}

var (
	_ source.Source  = (*Source)(nil)
	_ source.Adopter = (*Source)(nil)
)

// New validates the options and takes over the locks that systemd has passed to this process from
// its FD store, unless Options.NoFDStore is set. It does not connect, so a bus that comes up later
// is no error. On systems other than Linux the error wraps [errors.ErrUnsupported].
func New(options Options) (*Source, error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("logind: %w", err)
	}
	options = options.withDefaults()
	s := &Source{options: options, files: newDelayFiles(options)}
	if options.NoFDStore {
		return s, nil
	}
	store, err := openFDStore()
	if err != nil {
		return nil, fmt.Errorf("logind: %w", err)
	}
	s.store = store
	return s, nil
}

// Available returns nil if a logind answers on the bus. It opens one short connection and
// takes 2 s at most.
//
// Calling it is optional: a manager of package shutdown that finds no logind logs that, and tries
// again every second. Call it when the agent starts, before the manager is made, if the
// agent has another source for hosts without logind, or is not to start on them.
func (s *Source) Available(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, availableTimeout)
	defer cancel()
	c, err := dial(ctx, s.options.Address, newSignalQueue())
	if err != nil {
		return fmt.Errorf("cannot reach logind: %w", err)
	}
	defer func() { err = joinClose(err, c) }()
	if _, err := c.limit(ctx); err != nil {
		return fmt.Errorf("logind is not on the bus: %w", err)
	}
	return nil
}

// Adopt returns the lock that the previous process of this unit has left in systemd's FD
// store, or nil if there is none. Its Close removes it from the store too. It needs no bus.
// During a shutdown it is the only lock to be had. A session that finds a lock here that was
// not adopted uses it during a shutdown, and closes it otherwise, when Inhibit is called.
func (s *Source) Adopt() io.Closer {
	stored := s.store.adopt()
	if stored == nil {
		return nil // not a nil *lock
	}
	return stored
}

// RemoveDropIn removes the drop-in that this package has written and reloads logind, so that the
// limit is again what the host's other files say. Use it to uninstall an agent. It does nothing if
// there is no drop-in. A file of the same name that this package did not write stays, and is an
// error. It needs no session. A running manager writes the drop-in again.
func (s *Source) RemoveDropIn(ctx context.Context) error { return s.files.removeDropIn(ctx) }

// Connect opens a connection for one session and subscribes to logind's signals. ctx
// bounds the connecting, 12 s at most, and gives the session its logger; the end of ctx
// does not end the session.
func (s *Source) Connect(ctx context.Context) (source.Session, error) {
	ctx, cancel := context.WithTimeout(ctx, replyTimeout)
	defer cancel()
	signals := newSignalQueue()
	c, err := dial(ctx, s.options.Address, signals)
	if err != nil {
		return nil, err
	}
	session, err := newSession(ctx, s, c, signals)
	if err != nil {
		return nil, joinClose(err, c)
	}
	return session, nil
}
