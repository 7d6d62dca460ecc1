package shutdowntest

import (
	"context"
	"errors"
	"io"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// session is a connection to a [Host]. The host's mutex guards its fields.
type session struct {
	host   *Host
	events chan source.Event
	ended  bool // events is closed, by Close or Host.Lose
	closed bool // Close was called
}

// Events implements [source.Session].
func (s *session) Events() <-chan source.Event { return s.events }

// Pending returns a copy of the shutdown that was pending at the time of the call.
func (s *session) Pending(ctx context.Context) (*source.Event, error) {
	h := s.host
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.recordCall(ctx, "pending", h.PendingErr)
	if err != nil || h.pending == nil {
		return nil, err
	}
	copied := *h.pending
	return &copied, nil
}

// RequestDelay grants the delay. If it is longer than Host.Limit, it grants the limit and returns a
// *[source.DelayCappedError].
func (s *session) RequestDelay(ctx context.Context, requested time.Duration) (time.Duration, error) {
	h := s.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.requestedDelays = append(h.requestedDelays, requested)
	if err := h.recordCall(ctx, "delay", nil); err != nil {
		return 0, err
	}
	if h.Limit == 0 || requested <= h.Limit {
		return requested, nil
	}
	return h.Limit, &source.DelayCappedError{Requested: requested, Granted: h.Limit, SetBy: h.SetBy}
}

// Inhibit returns a lock. It fails if ctx has ended or InhibitErr is set. During a shutdown it fails too, as logind does,
// unless KeptLock says that the host has kept the lock of a previous agent. Each call resets KeptLock.
func (s *session) Inhibit(ctx context.Context) (io.Closer, error) {
	h := s.host
	h.mu.Lock()
	defer h.mu.Unlock()
	err := h.recordCall(ctx, "inhibit", h.InhibitErr)
	isShuttingDown := h.pending != nil
	if err == nil && isShuttingDown && !h.KeptLock {
		err = errInProgress
	}
	h.KeptLock = false
	if err != nil {
		return nil, err
	}
	return h.grant(), nil
}

// Close implements [source.Session].
func (s *session) Close() error {
	h := s.host
	h.mu.Lock()
	defer h.mu.Unlock()
	h.calls = append(h.calls, "close")
	if s.closed {
		h.misuse = append(h.misuse, errors.New("a session was closed twice"))
	}
	s.closed = true
	s.end()
	h.sessions = slices.DeleteFunc(h.sessions, func(other *session) bool { return other == s })
	return nil
}

// end closes the channel of events, unless it is closed: Close and Host.Lose may both end a session.
func (s *session) end() {
	if !s.ended {
		s.ended = true
		close(s.events)
	}
}
