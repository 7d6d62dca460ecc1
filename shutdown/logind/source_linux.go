package logind

import (
	"context"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
)

// availableTimeout bounds Available, which an agent calls when it starts.
const availableTimeout = 2 * time.Second

// Source is the [shutdown.Source] of a host with systemd-logind. Make one with [New]. All
// methods may be called concurrently.
type Source struct {
	options Options
	dropIn  dropIn
	store   *fdStore // nil: NOTIFY_SOCKET is not set, or Options.NoFDStore
	// dropInLock is held while the drop-in is changed, across all sessions: a session
	// that has lost the bus may still be changing it when the next one begins. It is a
	// channel of size 1 so that waiting for it ends with a context.
	dropInLock    chan struct{}
	failedAttempt attempt // the last attempt that logind did not apply; dropInLock guards it
}

var _ shutdown.Source = (*Source)(nil)

// New validates the options and takes over the locks that systemd has passed to this
// process from its FD store, unless Options.NoFDStore is set. It does not connect, so a
// bus that comes up later is no error. On systems other than Linux the error wraps
// [errors.ErrUnsupported].
func New(options Options) (*Source, error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("logind: %w", err)
	}
	options = options.withDefaults()
	s := &Source{options: options, dropIn: options.dropIn(), dropInLock: make(chan struct{}, 1)}
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
// Calling it is optional: a [shutdown.Manager] that finds no logind logs that, and tries
// again every second. Call it when the agent starts, before [shutdown.NewManager], if the
// agent has another source for hosts without logind, or is not to start on them.
func (s *Source) Available(ctx context.Context) (err error) {
	ctx, cancel := context.WithTimeout(ctx, availableTimeout)
	defer cancel()
	c, err := dial(ctx, s.options.Address, nil)
	if err != nil {
		return fmt.Errorf("logind is not to be reached: %w", err)
	}
	defer func() { err = joinClose(err, c) }()
	if _, err := c.limit(ctx); err != nil {
		return fmt.Errorf("logind is not on the bus: %w", err)
	}
	return nil
}

// Connect opens a connection for one session and subscribes to logind's signals. ctx
// bounds the connecting, 12 s at most, and gives the session its logger; the end of ctx
// does not end the session.
func (s *Source) Connect(ctx context.Context) (shutdown.Session, error) {
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
