//go:build linux

package logind

import (
	"context"
	"fmt"
	"slices"
)

// inhibitor is a lock as logind lists it.
type inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// list gives all locks, and the process ID that is ours. That is the one that the bus
// knows, as it is for logind: in a container ours is another.
func (s *session) list(ctx context.Context) (all []inhibitor, pid uint32, err error) {
	if err := s.conn.BusObject().CallWithContext(ctx, dbusName+".GetConnectionUnixProcessID", 0, s.conn.Names()[0]).Store(&pid); err != nil {
		return nil, 0, fmt.Errorf("find our own process ID: %w", err)
	}
	if err := s.conn.manager.CallWithContext(ctx, login1Manager+".ListInhibitors", 0).Store(&all); err != nil {
		return nil, 0, fmt.Errorf("list the inhibitors: %w", err)
	}
	return all, pid, nil
}

// listed counts the locks that logind lists as ours.
func (s *session) listed(ctx context.Context) (int, error) {
	inhibitors, pid, err := s.list(ctx)
	count := 0
	for _, i := range inhibitors {
		if i.Who == s.source.options.Who && i.Why == s.source.options.Why && i.Mode == delayMode && i.PID == pid {
			count++
		}
	}
	return count, err
}

// neighbour tells whether another process holds the host for the same reason: it needs the
// limit that the drop-in sets.
func (s *session) neighbour(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	inhibitors, pid, err := s.list(ctx)
	return err == nil && slices.ContainsFunc(inhibitors, func(i inhibitor) bool {
		return i.Why == s.source.options.Why && i.Mode == delayMode && i.PID != pid
	})
}

// watchOver lets verify look for a new lock from now on, if logind lists it now:
// where it cannot be seen at once, that it is not seen later says nothing.
func (s *session) watchOver() (forget func()) {
	ctx, cancel := s.ask()
	defer cancel()
	count, err := s.listed(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || count <= s.watchedOver {
		s.logger.V(1).Info("Cannot see the inhibitor in the list of systemd-logind", "listed", count, "err", err)
		return func() {}
	}
	s.watchedOver++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.watchedOver--
	}
}

// lockLost says whether a lock that was listed is listed no more, although it is
// held. A logind that does not answer has lost nothing.
func (s *session) lockLost() bool {
	before := s.expected()
	if before == 0 {
		return false
	}
	ctx, cancel := s.ask()
	defer cancel()
	count, err := s.listed(ctx)
	lost := err == nil && count < min(before, s.expected()) // one may have come or gone meanwhile
	if lost {
		s.logger.Info("The inhibitor has vanished from systemd-logind", "listed", count)
	}
	return lost
}

// expected is how many locks are watched over.
func (s *session) expected() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.watchedOver
}
