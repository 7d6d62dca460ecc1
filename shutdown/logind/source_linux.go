package logind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// availableTimeout is the timeout of Available.
const availableTimeout = 2 * time.Second

var errNotMade = errors.New("logind: the Source was not made with New")

// Source is the [source.Source] of a host with systemd-logind. Make one with [New]: the methods of another
// one return an error, or nil. All methods may be called concurrently.
type Source struct {
	options Options
	files   *delayFiles
	store   *fdStore // nil: NOTIFY_SOCKET is not set, or Options.NoFDStore
	missing missingFeatures
}

var (
	_ source.Source  = (*Source)(nil)
	_ source.Adopter = (*Source)(nil)
)

// New validates the options and takes over the locks that systemd passed to this process from its FD
// store, unless Options.NoFDStore is set. It does not connect to the bus. On systems other than Linux
// the error wraps [errors.ErrUnsupported].
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

// isMade reports whether New has made the Source.
func (s *Source) isMade() bool { return s != nil && s.files != nil }

// Available returns nil if logind answers on the bus, within 2 s. Calling it is optional: without
// logind the manager logs that and retries every second.
func (s *Source) Available(ctx context.Context) (err error) {
	if !s.isMade() {
		return errNotMade
	}
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

// Adopt returns the lock that the previous process left in systemd's FD store; nil if there is none. An agent
// that starts during a shutdown can get no other lock, because logind grants no new one. Closing the
// lock also removes it from the store. Adopt needs no bus. If Adopt is not called, Inhibit uses or closes the
// lock.
func (s *Source) Adopt() io.Closer {
	if !s.isMade() {
		return nil
	}
	stored := s.store.adopt()
	if stored == nil {
		return nil // a nil *lock in an io.Closer would not equal nil
	}
	return stored
}

// RemoveDropIn removes the drop-in and reloads logind, for the uninstallation of an agent. It does
// nothing without a drop-in. A file of the same name that this package did not write is not changed,
// and is an error. A running manager writes the drop-in again.
func (s *Source) RemoveDropIn(ctx context.Context) error {
	if !s.isMade() {
		return errNotMade
	}
	return s.files.removeDropIn(ctx)
}

// Connect opens a session and subscribes to logind's signals. ctx bounds the connecting, at most 12 s,
// and has the session's logger; its end does not end the session.
func (s *Source) Connect(ctx context.Context) (source.Session, error) {
	if !s.isMade() {
		return nil, errNotMade
	}
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
