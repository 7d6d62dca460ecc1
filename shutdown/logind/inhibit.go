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

// inhibition is one call of logind's Inhibit, and those who wait for its reply.
// It outlives an impatient caller, because D-Bus knows no cancellation: the
// descriptor comes all the same, and lost it would hold the host until the agent
// exits.
type inhibition struct {
	done chan struct{} // closed with the reply

	// guarded by session.mu
	waiting int   // callers
	lock    *lock // nil before the reply, and once it has an owner
	err     error // of the reply
}

// Inhibit takes a shutdown lock of mode delay. logind refuses it with
// OperationInProgress while a shutdown is under way. The caller's ctx bounds only
// its own waiting: a reply that comes later goes to the next caller, if there is
// one by then, and is closed if there is not.
func (s *session) Inhibit(ctx context.Context) (io.Closer, error) {
	for {
		call, err := s.join()
		if err != nil {
			return nil, err
		}
		select {
		case <-call.done:
		case <-ctx.Done():
			return nil, errors.Join(fmt.Errorf("take the inhibitor: %w", context.Cause(ctx)), s.leave(call))
		}
		if taken, err := s.take(call); taken != nil || err != nil {
			return closerOf(taken), err
		}
	}
}

// closerOf keeps a nil lock from becoming a Closer that is not nil.
func closerOf(l *lock) io.Closer {
	if l == nil {
		return nil
	}
	return l
}

// join waits along with the call that is under way, or begins one.
func (s *session) join() (*inhibition, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil, fmt.Errorf("take the inhibitor: %w", dbus.ErrClosed)
	}
	if s.asking == nil {
		call := &inhibition{done: make(chan struct{})}
		s.asking = call
		s.asked.Go(func() { s.settle(call) })
	}
	s.asking.waiting++
	return s.asking, nil
}

// take makes the caller the owner of the lock. Both results are nil if another
// caller has been faster.
func (s *session) take(call *inhibition) (*lock, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	call.waiting--
	taken := call.lock
	call.lock = nil
	return taken, call.err
}

// leave gives up waiting; the last to leave closes a lock that has just come.
func (s *session) leave(call *inhibition) error {
	s.mu.Lock()
	call.waiting--
	unwanted := call.unwanted()
	s.mu.Unlock()
	return unwanted.closeIfAny()
}

// settle asks logind and hands the reply to those who wait.
func (s *session) settle(call *inhibition) {
	granted, err := s.inhibit()
	s.mu.Lock()
	s.asking = nil // whoever comes now begins a call of its own
	call.lock, call.err = granted, err
	unwanted := call.unwanted()
	s.mu.Unlock()
	close(call.done)
	if err := unwanted.closeIfAny(); err != nil {
		s.logger.Error(err, "Failed to close an inhibitor that came too late")
	}
}

// await returns with the reply or with the end of ctx.
func (i *inhibition) await(ctx context.Context) {
	select {
	case <-i.done:
	case <-ctx.Done():
	}
}

// unwanted takes the lock away from a call for which nobody waits any more.
func (i *inhibition) unwanted() *lock {
	if i.waiting > 0 {
		return nil
	}
	unwanted := i.lock
	i.lock = nil
	return unwanted
}

func (l *lock) closeIfAny() error {
	if l == nil {
		return nil
	}
	return l.Close()
}

// inhibit gives the new lock that logind grants. Where a shutdown is under way it
// grants none, and the one that the process before us has stored is adopted;
// where it does grant one, that is not needed any more.
func (s *session) inhibit() (*lock, error) {
	file, err := s.request()
	if isInProgress(err) {
		if stored := s.source.store.adopt(); stored != nil {
			s.logger.Info("Adopted the stored inhibitor in the middle of a shutdown")
			return stored, nil
		}
	}
	if err != nil {
		return nil, err
	}
	granted := s.own(file)
	if err := s.source.store.adopt().closeIfAny(); err != nil {
		s.logger.Error(err, "Failed to drop the stored inhibitor")
	}
	return granted, nil
}

// request returns with logind's reply or when the connection has ended. Its
// context never ends, because godbus drops the reply of a call whose context has.
func (s *session) request() (*os.File, error) {
	reply := s.conn.manager.CallWithContext(context.WithoutCancel(s.conn.Context()), login1Manager+".Inhibit", 0,
		"shutdown", s.source.options.Who, s.source.options.Why, delayMode)
	var fd dbus.UnixFD
	if err := reply.Store(&fd); err != nil {
		return nil, fmt.Errorf("take the inhibitor: %w", err)
	}
	// The number is a file from here on. It came with the close-on-exec flag, so
	// that no child of the agent inherits the lock and holds the host.
	return os.NewFile(uintptr(fd), "logind inhibitor"), nil
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
