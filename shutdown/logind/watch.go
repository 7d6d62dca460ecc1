//go:build linux

package logind

import (
	"time"

	"github.com/godbus/dbus/v5"

	"github.com/kubegrace/kubegrace/shutdown"
)

// watch turns signals into events until the host is lost. It is the session's
// only goroutine that sends events.
func (s *session) watch() {
	defer close(s.events)
	// Both are asked here and not in goroutines of their own, so that an answer and
	// a signal cannot be told in the wrong order.
	poll := time.NewTicker(s.source.options.PollInterval)
	defer poll.Stop()
	verify := time.NewTicker(s.source.options.VerifyInterval)
	defer verify.Stop()
	for s.conn.Connected() { // a ticker may win against the end for a while
		select {
		case <-s.signals.more:
			for _, signal := range s.signals.take() {
				if !s.hear(signal) {
					return
				}
			}
		case <-s.conn.Context().Done():
			return
		case <-poll.C:
			s.pollCancelled()
		case <-verify.C:
			if s.lockLost() {
				return
			}
		}
	}
}

// hear handles one signal and says whether this logind is still there.
func (s *session) hear(signal *dbus.Signal) bool {
	if signal.Sender == dbusName {
		return s.ownedStill(signal.Body)
	}
	s.prepare(signal)
	return true
}

func isPrepare(name string) bool {
	return name == login1Manager+"."+prepareForShutdown || name == login1Manager+"."+prepareForShutdownWithMetadata
}

// ownedStill is false when logind's name has gone to another process or to none.
func (s *session) ownedStill(body []any) bool {
	var name, before, after string // after is "" when logind is gone and not back yet
	if err := dbus.Store(body, &name, &before, &after); err != nil || name != login1 || after == s.owner {
		return true
	}
	s.logger.V(1).Info("The systemd-logind that was watched is gone", "owner", s.owner, "newOwner", after)
	return false
}

// prepare handles both signals of one shutdown once: the first decides.
func (s *session) prepare(signal *dbus.Signal) {
	said, ok := announced(signal.Body)
	if !ok {
		s.logger.Info("Ignored a signal of systemd-logind with a malformed body", "signal", signal.Name)
		return
	}
	switch {
	case s.stale(signal):
		s.logger.V(1).Info("Ignored a signal of a shutdown that is over", "signal", signal.Name)
	case said.active:
		s.begin(said.kind)
	default:
		s.cancel(said.kind)
	}
}

// begin sends the event of a shutdown that was not known to be under way. The
// question for its deadline costs one round trip to logind, a second at most.
func (s *session) begin(kind shutdown.Kind) {
	if s.preparing.CompareAndSwap(false, true) {
		ctx, cancel := s.ask()
		defer cancel()
		s.send(s.event(ctx, kind))
	}
}

// cancel sends the end of a shutdown that was known to be under way: both signals
// and the poll may notice the same one.
func (s *session) cancel(kind shutdown.Kind) {
	if s.preparing.CompareAndSwap(true, false) {
		s.send(shutdown.Event{Cancelled: true, Kind: kind, Origin: origin})
	}
}

// send waits for the reader of the events, or for the end of the session.
func (s *session) send(event shutdown.Event) {
	select {
	case s.events <- event:
	case <-s.conn.Context().Done():
	}
}
