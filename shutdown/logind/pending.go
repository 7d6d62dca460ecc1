//go:build linux

package logind

import (
	"context"
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/shutdown"
)

// origin is the Origin of this package's events.
const origin = "logind"

// Pending returns the shutdown that is under way according to logind's
// PreparingForShutdown, or nil. Events does not deliver such a shutdown again, but it
// does deliver its cancellation.
func (s *session) Pending(ctx context.Context) (*shutdown.Event, error) {
	preparing, err := s.readPreparing(ctx)
	if err != nil || !preparing {
		return nil, err
	}
	s.preparing.Store(true)
	event := s.event(ctx, s.conn.pendingKind(ctx))
	return &event, nil
}

// event returns the event of a shutdown that is under way. Its deadline is now plus the
// current limit. That is too late by the time that the signal took, because logind has
// armed its timer just before; a later reload does not change the timer. If the limit
// cannot be read, the event has no deadline.
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

// readPreparing reads PreparingForShutdown: whether a shutdown is delayed or under way.
// logind sends no change signal for it. A false answer makes all earlier signals stale,
// because the shutdown that they announced is over and must not kill pods.
func (s *session) readPreparing(ctx context.Context) (preparing bool, err error) {
	sequence, err := s.conn.property(ctx, "PreparingForShutdown", &preparing)
	if err == nil && !preparing {
		s.mu.Lock()
		s.notPreparingSequence = max(s.notPreparingSequence, sequence)
		s.mu.Unlock()
	}
	return preparing, err
}

// stale reports whether logind has answered, after it sent the signal, that no shutdown
// is under way.
func (s *session) stale(signal *dbus.Signal) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return signal.Sequence < s.notPreparingSequence
}

// pendingKind returns the kind of the shutdown that is under way. It is unknown for a
// logind before v257.
func (c *conn) pendingKind(ctx context.Context) shutdown.Kind {
	var metadata map[string]dbus.Variant
	if _, err := c.property(ctx, "PreparingForShutdownWithMetadata", &metadata); err != nil {
		return shutdown.KindUnknown
	}
	return kindOf(metadata)
}

// pollCancellation sends a cancellation for a shutdown that is over without a signal. A
// logind that does not answer has cancelled nothing.
func (s *session) pollCancellation() {
	if !s.preparing.Load() {
		return
	}
	ctx, cancel := s.callContext()
	defer cancel()
	if preparing, err := s.readPreparing(ctx); err == nil && !preparing {
		s.sendCancelled(shutdown.KindUnknown)
	}
}
