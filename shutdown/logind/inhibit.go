//go:build linux

package logind

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"sync"

	"github.com/godbus/dbus/v5"
	"k8s.io/klog/v2"
)

// delayMode is the mode of inhibitors that delay a shutdown up to logind's limit.
const delayMode = "delay"

// lock is an inhibitor lock of logind: the write end of a FIFO. logind considers it released when every copy of
// the descriptor is closed. A lock closes its descriptor only once, because a second close could hit another
// file that has got the same number.
type lock struct{ close func() error }

// newLock returns a lock whose first Close calls release.
func newLock(release func() error) *lock {
	return &lock{close: sync.OnceValue(func() error {
		if err := release(); err != nil {
			return fmt.Errorf("release the inhibitor: %w", err)
		}
		return nil
	})}
}

// Close releases the lock. If no other lock delays the shutdown, logind shuts down at once. Further
// calls return the result of the first.
func (l *lock) Close() error { return l.close() }

// locks takes the locks of a session and checks that logind still lists them.
type locks struct {
	conn       *conn
	options    Options
	store      *fdStore // nil: no FD store
	logMissing func(feature)
	logger     klog.Logger

	mu       sync.Mutex // guards the fields below; never held during a call over the bus
	verified int        // how many held locks logind has listed
	// held refers to the descriptors of locks that are not closed. Without this reference the garbage collector
	// would close the descriptor of a lock that its caller has dropped, which releases the lock.
	held map[*os.File]struct{}
}

// inhibit takes a lock. A previous process may have left a lock in systemd's FD store:
//
//   - During a shutdown logind grants no lock. inhibit then returns the stored lock, or logind's error if there is none.
//   - If logind grants a lock, inhibit closes the stored lock, which is not needed any more.
func (l *locks) inhibit(ctx context.Context) (io.Closer, error) {
	file, err := l.conn.callForDescriptor(ctx, "Inhibit", "shutdown", l.options.Who, l.options.Why, delayMode)
	var refused dbus.Error
	isInShutdown := errors.As(err, &refused) && refused.Name == login1+".OperationInProgress"
	if isInShutdown {
		if stored := l.store.adopt(); stored != nil {
			l.logger.Info("Adopted the stored inhibitor lock during a shutdown")
			return stored, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("take the inhibitor: %w", err)
	}
	granted := l.hold(file)
	if stored := l.store.adopt(); stored != nil {
		if err := stored.Close(); err != nil {
			l.logger.Error(err, "Failed to close the stored inhibitor lock")
		}
	}
	return granted, nil
}

// hold returns a lock that holds file, the descriptor that logind has granted. It also puts a copy of the descriptor into
// systemd's FD store. From now on isLost checks that logind lists the lock.
func (l *locks) hold(file *os.File) *lock {
	stored, err := l.store.keep(file)
	if err != nil {
		l.logger.Error(err, "The inhibitor lock is not stored, so the shutdown delay ends if this process dies")
	}
	stopVerifying := l.startVerifying()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[*os.File]struct{}{}
	}
	l.held[file] = struct{}{} // otherwise the garbage collector could close the file, which releases the lock
	return newLock(func() error {
		stopVerifying()
		l.mu.Lock()
		delete(l.held, file)
		l.mu.Unlock()
		return errors.Join(l.store.remove(stored), file.Close())
	})
}
