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

func (l *lock) closeIfAny() error {
	if l == nil {
		return nil
	}
	return l.Close()
}

// Inhibit takes an inhibitor for shutdown in mode delay. While a shutdown is under way
// logind refuses with OperationInProgress; the session then adopts the lock that the
// previous process has stored. If logind grants a new inhibitor, the stored lock is
// closed instead. A call whose context ends before the reply takes no lock.
func (s *session) Inhibit(ctx context.Context) (io.Closer, error) {
	file, err := s.requestInhibitor(ctx)
	if isInProgress(err) {
		if stored := s.source.store.adopt(); stored != nil {
			s.logger.Info("Adopted the stored inhibitor in the middle of a shutdown")
			return stored, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("take the inhibitor: %w", err)
	}
	granted := s.newHeldLock(file)
	if err := s.source.store.adopt().closeIfAny(); err != nil {
		s.logger.Error(err, "Failed to drop the stored inhibitor")
	}
	return granted, nil
}

// requestInhibitor calls logind's Inhibit. It returns with the reply, or when ctx or the
// session ends.
func (s *session) requestInhibitor(ctx context.Context) (*os.File, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	defer context.AfterFunc(s.conn.Context(), func() { cancel(dbus.ErrClosed) })()
	if !s.conn.Connected() {
		return nil, dbus.ErrClosed
	}
	return callForDescriptor(ctx, s.source.options.Address, s.owner, "Inhibit",
		"shutdown", s.source.options.Who, s.source.options.Why, delayMode)
}

func isInProgress(err error) bool {
	var refused dbus.Error
	ok := errors.As(err, &refused)
	return ok && refused.Name == login1+".OperationInProgress"
}

// newHeldLock makes a lock of the descriptor that logind has granted. It puts a copy into
// the FD store and verifies the lock from now on.
func (s *session) newHeldLock(file *os.File) *lock {
	stored, err := s.source.store.keep(file)
	if err != nil {
		s.logger.Error(err, "The death of this process would end the shutdown delay")
	}
	stopVerifying := s.verifyLock()
	return newLock(func() error {
		stopVerifying()
		return errors.Join(s.source.store.remove(stored), file.Close())
	})
}
