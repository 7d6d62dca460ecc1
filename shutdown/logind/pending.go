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
	preparing, err := s.conn.preparing(ctx)
	if err != nil || !preparing {
		return nil, err
	}
	s.preparing.Store(true)
	return new(s.event(ctx, s.conn.pendingKind(ctx))), nil
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
		s.logger.Error(err, "The end of the delay is not known")
	case limit < unlimited:
		event.Deadline = now.Add(limit)
	}
	return event
}

// preparing says whether a shutdown is delayed or under way. logind sends no
// change signal for it.
func (c *conn) preparing(ctx context.Context) (preparing bool, err error) {
	err = c.property(ctx, "PreparingForShutdown", &preparing)
	return preparing, err
}

// pendingKind is unknown where logind is older than v257.
func (c *conn) pendingKind(ctx context.Context) shutdown.Kind {
	var metadata map[string]dbus.Variant
	if err := c.property(ctx, "PreparingForShutdownWithMetadata", &metadata); err != nil {
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
	if preparing, err := s.conn.preparing(ctx); err == nil && !preparing {
		s.cancel(shutdown.KindUnknown)
	}
}
