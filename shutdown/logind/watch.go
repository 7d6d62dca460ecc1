//go:build linux

package logind

import (
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/shutdown"
)

// watch turns signals into events until the bus, logind or the lock is lost. It is the
// session's only goroutine that sends events.
func (s *session) watch() {
	defer close(s.events)
	// Both polls run in this goroutine, so that their results and the signals are handled
	// in order.
	poll := time.NewTicker(s.source.options.PollInterval)
	defer poll.Stop()
	verify := time.NewTicker(s.source.options.VerifyInterval)
	defer verify.Stop()
	for s.conn.Connected() { // select may choose a ticker although the connection has ended
		select {
		case <-s.signals.arrived:
			for _, signal := range s.signals.take() {
				if !s.handle(signal) {
					return
				}
			}
		case <-s.conn.Context().Done():
			return
		case <-poll.C:
			s.pollCancellation()
		case <-verify.C:
			if s.lockLost() {
				return
			}
		}
	}
}

// handle handles one signal. It returns false if logind's bus name has a new owner.
func (s *session) handle(signal *dbus.Signal) bool {
	if signal.Sender == dbusName {
		return s.sameOwner(signal.Body)
	}
	s.handlePrepare(signal)
	return true
}

func isPrepareSignal(name string) bool {
	return name == login1Manager+"."+prepareForShutdown || name == login1Manager+"."+prepareForShutdownWithMetadata
}

// sameOwner reports whether logind's bus name still belongs to the process of this
// session.
func (s *session) sameOwner(body []any) bool {
	var name, before, after string // after is "" while logind is not running
	if err := dbus.Store(body, &name, &before, &after); err != nil || name != login1 || after == s.owner {
		return true
	}
	s.logger.V(1).Info("The systemd-logind that was watched is gone", "owner", s.owner, "newOwner", after)
	return false
}

// handlePrepare handles PrepareForShutdown and PrepareForShutdownWithMetadata. logind
// sends both for one shutdown; the first one makes the event.
func (s *session) handlePrepare(signal *dbus.Signal) {
	announced, ok := parseAnnouncement(signal.Body)
	if !ok {
		s.logger.Info("Ignored a signal of systemd-logind with a malformed body", "signal", signal.Name)
		return
	}
	switch {
	case s.stale(signal):
		s.logger.V(1).Info("Ignored a signal of a shutdown that is over", "signal", signal.Name)
	case announced.active:
		s.sendShutdown(announced.kind)
	default:
		s.sendCancelled(announced.kind)
	}
}

// sendShutdown sends an event unless the shutdown is known already. Reading the limit for
// the event's deadline takes one round trip to logind, a second at most.
func (s *session) sendShutdown(kind shutdown.Kind) {
	if s.preparing.CompareAndSwap(false, true) {
		ctx, cancel := s.callContext()
		defer cancel()
		s.send(s.event(ctx, kind))
	}
}

// sendCancelled sends a cancellation if a shutdown is known to be under way. Both signals
// and the poll may notice the same cancellation.
func (s *session) sendCancelled(kind shutdown.Kind) {
	if s.preparing.CompareAndSwap(true, false) {
		s.send(shutdown.Event{Cancelled: true, Kind: kind, Origin: origin})
	}
}

// send blocks until the event is received or the session ends.
func (s *session) send(event shutdown.Event) {
	select {
	case s.events <- event:
	case <-s.conn.Context().Done():
	}
}
