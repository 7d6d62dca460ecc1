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

// list returns all inhibitors of all programs. It also returns this process's ID as the bus sees it, by which the caller
// finds this process's own inhibitors: in a container os.Getpid returns another number.
func (l *locks) list(ctx context.Context) (all []inhibitor, pid uint32, err error) {
	ownName := l.conn.Names()[0]
	if err := l.conn.BusObject().CallWithContext(ctx, dbusName+".GetConnectionUnixProcessID", 0, ownName).Store(&pid); err != nil {
		return nil, 0, fmt.Errorf("find our own process ID: %w", err)
	}
	if err := l.conn.manager.CallWithContext(ctx, login1Manager+".ListInhibitors", 0).Store(&all); err != nil {
		return nil, 0, fmt.Errorf("list the inhibitors: %w", err)
	}
	return all, pid, nil
}

// countOwn returns how many delay inhibitors of this process logind lists.
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

// heldByOtherProcess reports whether another process holds a lock with the same Options.Why. It is probably
// another agent of this kind, which needs the limit of the drop-in. It is false if logind does not answer.
func (l *locks) heldByOtherProcess(ctx context.Context) bool {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	inhibitors, pid, err := l.list(ctx)
	return err == nil && slices.ContainsFunc(inhibitors, func(i inhibitor) bool {
		return i.Why == l.options.Why && i.Mode == delayMode && i.PID != pid
	})
}

// startVerifying makes isLost check a lock that was just taken, until stopVerifying is called. A lock that logind does not
// list now is not checked: its absence from a later list would not mean that it was lost.
func (l *locks) startVerifying() (stopVerifying func()) {
	ctx, cancel := l.conn.callContext()
	defer cancel()
	count, err := l.countOwn(ctx)
	if isMissingFeature(err) {
		l.logMissing(featureList)
		return func() {}
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	isListed := count > l.verified // logind lists more locks than those that are checked already
	if err != nil || !isListed {
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

// isLost reports whether logind no longer lists a held lock that it has listed earlier, so that it would not delay a
// shutdown. It is false if logind does not answer.
func (l *locks) isLost() bool {
	verifiedBefore := l.verifiedCount()
	if verifiedBefore == 0 { // no lock can be lost
		return false
	}
	ctx, cancel := l.conn.callContext()
	defer cancel()
	count, err := l.countOwn(ctx)
	expected := min(verifiedBefore, l.verifiedCount()) // a lock may have been taken or closed during the call
	isLost := err == nil && count < expected
	if isLost {
		l.logger.Info("systemd-logind no longer lists the inhibitor lock", "listed", count)
	}
	return isLost
}

// verifiedCount returns how many held locks logind has listed.
func (l *locks) verifiedCount() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.verified
}
