//go:build linux

package logind

import (
	"context"
	"fmt"
	"slices"
)

// inhibitor is an entry of logind's ListInhibitors. The order of the fields is that of the reply.
type inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// list returns all inhibitors, and the process ID of this process as the bus
// and logind see it. In a container it differs from os.Getpid.
func (l *locks) list(ctx context.Context) (all []inhibitor, pid uint32, err error) {
	if err := l.conn.BusObject().CallWithContext(ctx, dbusName+".GetConnectionUnixProcessID", 0, l.conn.Names()[0]).Store(&pid); err != nil {
		return nil, 0, fmt.Errorf("find our own process ID: %w", err)
	}
	if err := l.conn.manager.CallWithContext(ctx, login1Manager+".ListInhibitors", 0).Store(&all); err != nil {
		return nil, 0, fmt.Errorf("list the inhibitors: %w", err)
	}
	return all, pid, nil
}

// countOwn returns how many inhibitors of this process logind lists.
func (l *locks) countOwn(ctx context.Context) (int, error) {
	inhibitors, pid, err := l.list(ctx)
	count := 0
	for _, i := range inhibitors {
		if i.Who == l.options.Who && i.Why == l.options.Why && i.Mode == delayMode && i.PID == pid {
			count++
		}
	}
	return count, err
}

// heldByOtherProcess reports whether another process holds an inhibitor for the same
// reason. That process needs the limit that the drop-in sets.
func (l *locks) heldByOtherProcess(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	inhibitors, pid, err := l.list(ctx)
	return err == nil && slices.ContainsFunc(inhibitors, func(i inhibitor) bool {
		return i.Why == l.options.Why && i.Mode == delayMode && i.PID != pid
	})
}

// verify makes lost check a new lock, if logind lists it already. If logind does
// not list it now, its absence later would prove nothing.
func (l *locks) verify() (stopVerifying func()) {
	ctx, cancel := l.conn.callContext()
	defer cancel()
	count, err := l.countOwn(ctx)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || count <= l.verified {
		l.logger.V(1).Info("Cannot see the inhibitor in the list of systemd-logind", "listed", count, "err", err)
		return func() {}
	}
	l.verified++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.verified--
	}
}

// lost reports whether logind no longer lists a held lock that it has listed before.
// If logind does not answer, no lock counts as lost.
func (l *locks) lost() bool {
	before := l.verifiedCount()
	if before == 0 {
		return false
	}
	ctx, cancel := l.conn.callContext()
	defer cancel()
	count, err := l.countOwn(ctx)
	vanished := err == nil && count < min(before, l.verifiedCount()) // a lock may have been taken or closed meanwhile
	if vanished {
		l.logger.Info("The inhibitor has vanished from systemd-logind", "listed", count)
	}
	return vanished
}

// verifiedCount returns how many locks are verified.
func (l *locks) verifiedCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.verified
}
