//go:build linux

package logind

import (
	"context"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/shutdown"
)

// origin is what the events of this package say of themselves.
const origin = "logind"

// Pending reads logind's PreparingForShutdown. A shutdown that it has told of is
// not told again by Events; its cancellation is.
func (s *session) Pending(ctx context.Context) (*shutdown.Event, error) {
	preparing, err := s.readPreparing(ctx)
	if err != nil || !preparing {
		return nil, err
	}
	s.preparing.Store(true)
	event := s.event(ctx, s.conn.pendingKind(ctx))
	return &event, nil
}

// event is a shutdown that is under way. Its deadline is now plus the limit as
// it is now, which is late by at most the time that the signal took: logind's
// timer was armed just before, and a reload does not change it.
func (s *session) event(ctx context.Context, kind shutdown.Kind) shutdown.Event {
	event := shutdown.Event{Kind: kind, Origin: origin}
	now := time.Now()
	limit, err := s.conn.limit(ctx)
	switch {
	case err != nil:
		s.logger.V(1).Info("The end of the shutdown delay is not known", "err", err)
	case limit < unlimited:
		event.Deadline = now.Add(limit)
	}
	return event
}

// readPreparing says whether a shutdown is delayed or under way. logind sends no
// change signal for it. After a no, signals that came before it are stale: what
// they announced is over, and acted upon they would kill pods for nothing.
func (s *session) readPreparing(ctx context.Context) (preparing bool, err error) {
	sequence, err := s.conn.property(ctx, "PreparingForShutdown", &preparing)
	if err == nil && !preparing {
		s.mu.Lock()
		s.settled = max(s.settled, sequence)
		s.mu.Unlock()
	}
	return preparing, err
}

// stale says whether logind has said since that no shutdown is under way.
func (s *session) stale(signal *dbus.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return signal.Sequence < s.settled
}

// pendingKind is unknown where logind is older than v257.
func (c *conn) pendingKind(ctx context.Context) shutdown.Kind {
	var metadata map[string]dbus.Variant
	if _, err := c.property(ctx, "PreparingForShutdownWithMetadata", &metadata); err != nil {
		return shutdown.KindUnknown
	}
	return kindOf(metadata)
}

// pollCancelled notices the end of a shutdown that logind has not announced. A
// logind that does not answer has cancelled nothing.
func (s *session) pollCancelled() {
	if !s.preparing.Load() {
		return
	}
	ctx, cancel := s.ask()
	defer cancel()
	if preparing, err := s.readPreparing(ctx); err == nil && !preparing {
		s.cancel(shutdown.KindUnknown)
	}
}
