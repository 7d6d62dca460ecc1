//go:build linux

package logind

import (
	"context"
	"fmt"
	"slices"
)

// inhibitor is an entry of ListInhibitors, with the fields in the order of the reply.
type inhibitor struct {
	What, Who, Why, Mode string
	UID, PID             uint32
}

// list returns all inhibitors, and this process's ID as the bus sees it, which differs from os.Getpid
// in a container.
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

// heldByOtherProcess reports whether another process holds a lock for the same reason, and so needs the
// drop-in's limit.
func (l *locks) heldByOtherProcess(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	inhibitors, pid, err := l.list(ctx)
	return err == nil && slices.ContainsFunc(inhibitors, func(i inhibitor) bool {
		return i.Why == l.options.Why && i.Mode == delayMode && i.PID != pid
	})
}

// verify makes isLost check a new lock if logind lists it now. Otherwise its later absence would prove
// nothing.
func (l *locks) verify() (stopVerifying func()) {
	ctx, cancel := l.conn.callContext()
	defer cancel()
	count, err := l.countOwn(ctx)
	if isUnknown(err) {
		l.missing(featureList)
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if err != nil || count <= l.verified {
		l.logger.V(1).Info("systemd-logind does not list the inhibitor lock", "listed", count, "err", err)
		return func() {}
	}
	l.verified++
	return func() {
		l.mu.Lock()
		defer l.mu.Unlock()
		l.verified--
	}
}

// isLost reports whether logind no longer lists a held lock that it listed before; false if logind does
// not answer.
func (l *locks) isLost() bool {
	before := l.verifiedCount()
	if before == 0 {
		return false
	}
	ctx, cancel := l.conn.callContext()
	defer cancel()
	count, err := l.countOwn(ctx)
	vanished := err == nil && count < min(before, l.verifiedCount()) // a lock may have been taken or closed during the call
	if vanished {
		l.logger.Info("systemd-logind no longer lists the inhibitor lock", "listed", count)
	}
	return vanished
}

func (l *locks) verifiedCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.verified
}
