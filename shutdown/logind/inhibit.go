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

// delayMode is the mode of the lock: the host waits, up to a limit.
const delayMode = "delay"

// lock is logind's inhibitor: the write end of a FIFO. logind lets go when every
// copy of it is closed, so there is exactly one and it is closed exactly once.
type lock struct{ close func() error }

// newLock makes a lock that is released by release, once.
func newLock(release func() error) *lock {
	return &lock{close: sync.OnceValue(func() error {
		if err := release(); err != nil {
			return fmt.Errorf("release the inhibitor: %w", err)
		}
		return nil
	})}
}

// Close releases the lock: logind goes on at once if no other delays it. Every
// later call gives the result of the first.
func (l *lock) Close() error { return l.close() }

func (l *lock) closeIfAny() error {
	if l == nil {
		return nil
	}
	return l.Close()
}

// Inhibit takes a shutdown lock of mode delay. logind refuses it with
// OperationInProgress while a shutdown is under way; the one that the process before
// us has stored is adopted then, and where logind does grant one it is not needed any
// more. A call that is given up before its reply takes nothing.
func (s *session) Inhibit(ctx context.Context) (io.Closer, error) {
	file, err := s.request(ctx)
	if isInProgress(err) {
		if stored := s.source.store.adopt(); stored != nil {
			s.logger.Info("Adopted the stored inhibitor in the middle of a shutdown")
			return stored, nil
		}
	}
	if err != nil {
		return nil, fmt.Errorf("take the inhibitor: %w", err)
	}
	granted := s.own(file)
	if err := s.source.store.adopt().closeIfAny(); err != nil {
		s.logger.Error(err, "Failed to drop the stored inhibitor")
	}
	return granted, nil
}

// request returns with logind's reply, with the end of ctx or with that of the session.
func (s *session) request(ctx context.Context) (*os.File, error) {
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

// own makes a lock of the file: with a copy in the FD store, and watched over.
func (s *session) own(file *os.File) *lock {
	stored, err := s.source.store.keep(file)
	if err != nil {
		s.logger.Error(err, "The death of this process would end the shutdown delay")
	}
	forget := s.watchOver()
	return newLock(func() error {
		forget()
		return errors.Join(s.source.store.remove(stored), file.Close())
	})
}
