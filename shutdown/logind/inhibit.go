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

// delayMode is the mode of an inhibitor that delays a shutdown up to logind's limit.
const delayMode = "delay"

// lock is an inhibitor of logind: the write end of a FIFO. logind releases the inhibitor
// when every copy of the descriptor is closed. A lock therefore owns its descriptor and
// closes it exactly once.
type lock struct{ close func() error }

// newLock returns a lock that calls release once.
func newLock(release func() error) *lock {
	return &lock{close: sync.OnceValue(func() error {
		if err := release(); err != nil {
			return fmt.Errorf("release the inhibitor: %w", err)
		}
		return nil
	})}
}

// Close releases the lock. logind goes on with a shutdown at once if no other inhibitor
// delays it. Further calls return the result of the first.
func (l *lock) Close() error { return l.close() }

// locks takes the inhibitors of a session and watches whether logind goes on listing them.
type locks struct {
	conn    *conn
	options Options
	store   *fdStore // nil stores nothing
	missing func(loss)
	logger  klog.Logger

	mu       sync.Mutex // guards the fields below; never held during a call over the bus
	verified int        // how many of our held locks logind has listed
	// held has the descriptors of the locks that are not closed. The garbage collector would close, and so release, one
	// whose lock the caller has not kept.
	held map[*os.File]struct{}
}

// inhibit takes an inhibitor, or adopts the stored one.
func (l *locks) inhibit(ctx context.Context) (io.Closer, error) {
	file, err := l.conn.callForDescriptor(ctx, "Inhibit", "shutdown", l.options.Who, l.options.Why, delayMode)
	var refused dbus.Error
	if errors.As(err, &refused) && refused.Name == login1+".OperationInProgress" {
		if stored := l.store.adopt(); stored != nil {
			l.logger.Info("Adopted the stored inhibitor in the middle of a shutdown")
			return stored, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("take the inhibitor: %w", err)
	}
	granted := l.hold(file)
	if stored := l.store.adopt(); stored != nil {
		if err := stored.Close(); err != nil {
			l.logger.Error(err, "Failed to drop the stored inhibitor")
		}
	}
	return granted, nil
}

// hold makes a lock of the descriptor that logind has granted. It puts a copy into the FD
// store and verifies the lock from now on.
func (l *locks) hold(file *os.File) *lock {
	stored, err := l.store.keep(file)
	if err != nil {
		l.logger.Error(err, "The death of this process would end the shutdown delay")
	}
	stopVerifying := l.verify()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.held == nil {
		l.held = map[*os.File]struct{}{}
	}
	l.held[file] = struct{}{}
	return newLock(func() error {
		stopVerifying()
		l.mu.Lock()
		delete(l.held, file)
		l.mu.Unlock()
		return errors.Join(l.store.remove(stored), file.Close())
	})
}
