package logind

import (
	"context"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
)

// availableTimeout is how long an agent's start may wait for an answer.
const availableTimeout = 2 * time.Second

// Source is the systemd-logind of a host. It is safe for concurrent use.
type Source struct {
	options Options
	dropIn  dropIn
	store   *fdStore // nil: none
	// turn is held by whoever changes the drop-in, across all sessions: a session
	// that is lost may still be at it when the next one begins. It has room for one.
	turn chan struct{}
	vain attempt // the last one that a reload of logind did not help; who has the turn may use it
}

var _ shutdown.Source = (*Source)(nil)

// New checks the options. It does not connect: a bus that comes up later is no
// error here. It takes over the locks that systemd has passed to this process
// from its FD store, unless that is switched off. Off Linux it fails with an
// error that wraps [errors.ErrUnsupported].
func New(options Options) (*Source, error) {
	if err := options.validate(); err != nil {
		return nil, fmt.Errorf("logind: %w", err)
	}
	options = options.withDefaults()
	s := &Source{options: options, dropIn: options.dropIn(), turn: make(chan struct{}, 1)}
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

// Available says, at the price of one short connection, whether the system bus
// has a logind that answers: nil if it has. It takes 2 s at most, for an agent that
// is about to start: a logind that is silent longer counts as none.
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

// Connect opens a connection of its own, and subscribes. ctx bounds the
// connecting and gives the session its logger; it does not end the session.
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
