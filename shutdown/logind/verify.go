//go:build linux

package logind

import (
	"context"
	"fmt"
	"slices"
)

// inhibitor is an entry of logind's ListInhibitors. The order of the fields is that of
// the reply.
type inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// listInhibitors returns all inhibitors, and the process ID of this process as the bus
// and logind see it. In a container it differs from os.Getpid.
func (s *session) listInhibitors(ctx context.Context) (all []inhibitor, pid uint32, err error) {
	if err := s.conn.BusObject().CallWithContext(ctx, dbusName+".GetConnectionUnixProcessID", 0, s.conn.Names()[0]).Store(&pid); err != nil {
		return nil, 0, fmt.Errorf("find our own process ID: %w", err)
	}
	if err := s.conn.manager.CallWithContext(ctx, login1Manager+".ListInhibitors", 0).Store(&all); err != nil {
		return nil, 0, fmt.Errorf("list the inhibitors: %w", err)
	}
	return all, pid, nil
}

// countOwnLocks returns how many inhibitors of this process logind lists.
func (s *session) countOwnLocks(ctx context.Context) (int, error) {
	inhibitors, pid, err := s.listInhibitors(ctx)
	count := 0
	for _, i := range inhibitors {
		if i.Who == s.source.options.Who && i.Why == s.source.options.Why && i.Mode == delayMode && i.PID == pid {
			count++
		}
	}
	return count, err
}

// heldByOtherProcess reports whether another process holds an inhibitor for the same
// reason. That process needs the limit that the drop-in sets.
func (s *session) heldByOtherProcess(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	inhibitors, pid, err := s.listInhibitors(ctx)
	return err == nil && slices.ContainsFunc(inhibitors, func(i inhibitor) bool {
		return i.Why == s.source.options.Why && i.Mode == delayMode && i.PID != pid
	})
}

// verifyLock makes lockLost check a new lock, if logind lists it already. If logind does
// not list it now, its absence later would prove nothing.
func (s *session) verifyLock() (stopVerifying func()) {
	ctx, cancel := s.callContext()
	defer cancel()
	count, err := s.countOwnLocks(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err != nil || count <= s.verifiedLocks {
		s.logger.V(1).Info("Cannot see the inhibitor in the list of systemd-logind", "listed", count, "err", err)
		return func() {}
	}
	s.verifiedLocks++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.verifiedLocks--
	}
}

// lockLost reports whether logind no longer lists a held lock that it has listed before.
// If logind does not answer, no lock counts as lost.
func (s *session) lockLost() bool {
	before := s.verifiedCount()
	if before == 0 {
		return false
	}
	ctx, cancel := s.callContext()
	defer cancel()
	count, err := s.countOwnLocks(ctx)
	lost := err == nil && count < min(before, s.verifiedCount()) // a lock may have been taken or closed meanwhile
	if lost {
		s.logger.Info("The inhibitor has vanished from systemd-logind", "listed", count)
	}
	return lost
}

// verifiedCount returns how many locks are verified.
func (s *session) verifiedCount() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.verifiedLocks
}
