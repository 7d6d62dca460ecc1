package shutdown

import (
	"context"
	"errors"
	"fmt"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/host"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// This file watches the host, and passes announcements of the host and of Trigger to the core (package node).

// startHost watches the host until ctx ends. ended then receives what Host.Run returns: an error or nil. Both results are nil
// if no host is watched.
func (s *shell) startHost(ctx context.Context) (h *host.Host, ended <-chan error) {
	if !s.watches() {
		s.endFirstAttempt(&s.isLockAttemptOver) // there is no lock that Ready could wait for
		s.logLines.Add(func() {
			klog.FromContext(ctx).Info("No host is watched, only Trigger and TerminateAll drain", "reason", s.whyNotWatching)
		})
		return nil, nil
	}
	h = host.New(host.Options{
		Source: s.opts.Source, Delay: s.requestedDelay(), ShortensPods: s.shortensBucket, Metrics: s.opts.Metrics,
		Calls: s.calls, Listener: s,
	})
	s.host.Store(h)
	s.logLines.Add(func() { s.logRequestedDelay(ctx) })
	result := make(chan error, 1)
	go func() { result <- h.Run(ctx) }()
	return h, result
}

// withDeadlineSinceBoot converts an event for the core (package node), whose times count from the boot. The event's deadline is
// by the system clock, and Options.Clock may be another one: the time that is left is the same by both.
func (s *shell) withDeadlineSinceBoot(event source.Event) source.Event {
	if !event.Deadline.IsZero() {
		event.Deadline = s.log.SinceBoot(s.opts.Clock.Now().Add(time.Until(event.Deadline)))
	}
	return event
}

// HostEvent implements host.Listener: it passes an announcement or a cancellation to the core (package node), once the state
// log has been read or openTime has passed.
func (s *shell) HostEvent(event source.Event) {
	s.updateLimit()
	s.stepAfterOpening(node.Event{Event: s.withDeadlineSinceBoot(event), Host: true, WallTime: s.opts.Clock.Now()})
}

// HostPending implements host.Listener: it passes the host's answer, whether a shutdown is pending, to the core (package node),
// once the state log has been read or openTime has passed.
func (s *shell) HostPending(pending *source.Event, known bool, received time.Time) {
	s.updateLimit()
	in := node.HostAnswered{Known: known, WallTime: received}
	if pending != nil {
		<-s.openingOver // the core must know of the shutdown when HostPending returns: the caller then takes no lock
		event := s.withDeadlineSinceBoot(*pending)
		in.Event = &event
	}
	s.stepAfterOpening(in)
}

// HostUnreached implements host.Listener. It tells the core (package node) that the host was not reached in time after the
// start of Run, and whether the agent holds the previous agent's lock.
func (s *shell) HostUnreached() {
	holdsPreviousAgentsLock := s.host.Load().Adopted()
	s.stepAfterOpening(node.HostUnreached{Adopted: holdsPreviousAgentsLock})
}

// HostTried implements host.Listener: the first attempt to get the inhibitor lock is over, for which Ready waits.
func (s *shell) HostTried() { s.endFirstAttempt(&s.isLockAttemptOver) }

// HostCapped implements host.Listener: it logs that pods get less time, and records a Warning event on the node.
func (s *shell) HostCapped(err error) {
	text := fmt.Sprint(err) // recovers a panic of the Error method
	s.mu.Lock()
	defer s.mu.Unlock()
	s.recordEvent(v1.EventTypeWarning, text)
	logger := klog.FromContext(s.ctx)
	s.logLines.Add(func() {
		logger.Error(errors.New(text), "The host waits for less than requested, and some pods get less time")
	})
}

// updateLimit tells the core (package node) how long the host waits, by the host's newest grant.
func (s *shell) updateLimit() {
	granted, known := s.host.Load().Granted()
	if !known {
		return
	}
	limit := node.HostLimit(granted)
	if granted == 0 { // the host does not wait
		limit = -1 // 0 would mean no limit
	}
	s.step(limit)
}
