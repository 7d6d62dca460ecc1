package shutdown

import (
	"cmp"
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// This file passes on what the host, or Trigger, announces.

// event returns an event as an input.
func (s *shell) event(event source.Event, isOfHost bool) node.Input {
	now := s.opts.Clock.Now()
	if !event.Deadline.IsZero() {
		event.Deadline = s.log.Since(now.Add(time.Until(event.Deadline)))
	}
	return node.Event{Event: event, Host: isOfHost, Wall: now}
}

// HostEvent implements host.Listener.
func (s *shell) HostEvent(event source.Event, _ time.Time) {
	s.hearLimit()
	in := s.event(event, true)
	s.opening.then(func() { s.step(in) })
}

// HostPending implements host.Listener.
func (s *shell) HostPending(pending *source.Event, known bool, received time.Time) {
	s.hearLimit()
	in := node.Pending{Known: known, Wall: received}
	if pending != nil { // whether a delay is asked for follows from what is done now
		<-s.opening.over
		event := s.event(*pending, true).(node.Event).Event //nolint:forcetypeassert // event returns nothing else
		in.Event = &event
	}
	s.opening.then(func() { s.step(in) })
}

// HostUnreached implements host.Listener.
func (s *shell) HostUnreached() {
	in := node.Unreached{Adopted: s.host.Load().Adopted()}
	s.opening.then(func() { s.step(in) })
}

// HostTried implements host.Listener.
func (s *shell) HostTried() { s.ready.hostTried() }

// HostCapped implements host.Listener.
func (s *shell) HostCapped(err error) {
	text := fmt.Sprint(err) // an Error method that panics gives a text too
	s.mu.Lock()
	defer s.mu.Unlock()
	s.events.record(s.ctx, s.calls, v1.EventTypeWarning, text)
}

// hearLimit passes on how long the host waits.
func (s *shell) hearLimit() {
	if granted, known := s.host.Load().Granted(); known {
		s.step(node.Limit(cmp.Or(granted, -1)))
	}
}
