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
	owner   string // the unique bus name of logind
	options Options
	store   *fdStore // nil stores nothing
	logger  klog.Logger

	mu       sync.Mutex // guards verified; never held during a call over the bus
	verified int        // how many of our held locks logind has listed
}

// inhibit takes an inhibitor, or adopts the stored one.
func (l *locks) inhibit(ctx context.Context) (io.Closer, error) {
	file, err := l.request(ctx)
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

// request calls logind's Inhibit. It returns with the reply, or when ctx or the session ends.
func (l *locks) request(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(l.conn.Context(), func() { cancel(dbus.ErrClosed) })()
	if !l.conn.Connected() {
		return nil, dbus.ErrClosed
	}
	return callForDescriptor(ctx, l.options.Address, l.owner, "Inhibit",
		"shutdown", l.options.Who, l.options.Why, delayMode)
}

// hold makes a lock of the descriptor that logind has granted. It puts a copy into the FD
// store and verifies the lock from now on.
func (l *locks) hold(file *os.File) *lock {
	stored, err := l.store.keep(file)
	if err != nil {
		l.logger.Error(err, "The death of this process would end the shutdown delay")
	}
	stopVerifying := l.verify()
	return newLock(func() error {
		stopVerifying()
		return errors.Join(l.store.remove(stored), file.Close())
	})
}
