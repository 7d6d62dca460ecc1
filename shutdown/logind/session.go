//go:build linux

package logind

import (
	"context"
	"fmt"
	"io"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// session is a connection to one logind process. It ends when logind's bus name gets a new owner, which means that logind
// was stopped or restarted.
type session struct {
	conn          *conn
	announcements *announcements
	locks         *locks
	files         *delayFiles
	logger        klog.Logger
}

var _ source.Session = (*session)(nil)

// newSession subscribes to logind's signals and starts the session's goroutine.
func newSession(ctx context.Context, s *Source, c *conn, signals *signalQueue) (*session, error) {
	logger := klog.FromContext(ctx)
	logMissing := func(f feature) { s.missing.log(logger, f) }
	if err := signals.subscribe(ctx, c, logMissing); err != nil {
		return nil, err
	}
	locks := &locks{conn: c, options: s.options, store: s.store, logMissing: logMissing, logger: logger}
	announcements := &announcements{
		conn: c, locks: locks, files: s.files, signals: signals, events: make(chan source.Event),
		logMissing: logMissing, logger: logger,
	}
	announcements.loop.Add(1)
	go func() {
		defer announcements.loop.Done()
		announcements.watch(s.options.times.poll, s.options.times.verify)
	}()
	return &session{conn: c, announcements: announcements, locks: locks, files: s.files, logger: logger}, nil
}

// Events returns the shutdowns and cancellations. It is closed by Close and when the bus is lost,
// logind's bus name gets a new owner, or logind no longer lists a held lock.
func (s *session) Events() <-chan source.Event { return s.announcements.events }

// Pending returns the shutdown that is in progress according to logind's property PreparingForShutdown, or nil. Its
// cancellation comes through Events, which does not repeat the shutdown itself. The event has no deadline, because
// logind does not say when its timer started. If logind lacks the property, the error wraps [errors.ErrUnsupported].
func (s *session) Pending(ctx context.Context) (*source.Event, error) {
	return s.announcements.pending(ctx)
}

// RequestDelay reads logind's limit and, if it is below delay, raises it with a drop-in. It returns the
// resulting limit; math.MaxInt64: unlimited. If the limit is still below delay, the error is a
// *[source.DelayCappedError], joined with the reason why the limit could not be raised.
//
// Repeated calls with the same delay, such as the manager's every 10 s, read the limit and the files
// again, act on what has changed, and log changes.
//
// A drop-in that delay does not need is removed: a delay of 0 restores the host's configuration. A drop-in
// is neither removed nor lowered while another process holds a lock with the same Options.Why. Concurrent
// calls are serialized for each Source.
func (s *session) RequestDelay(ctx context.Context, delay time.Duration) (time.Duration, error) {
	unlock, err := s.files.lock(ctx)
	if err != nil {
		return 0, fmt.Errorf("set the shutdown delay: %w", err)
	}
	defer unlock()
	granted, err := (&delayRequest{session: s, requested: delay}).apply(ctx)
	if err != nil {
		err = fmt.Errorf("set the shutdown delay: %w", err)
	}
	return granted, err
}

// Inhibit takes a lock of mode delay for shutdowns. During a shutdown logind refuses it with
// OperationInProgress. Inhibit then returns the lock that the previous process has left in systemd's FD store;
// if there is none, or [Source.Adopt] has returned it already, Inhibit returns logind's error. If logind
// grants a new lock, the stored lock is closed, because one is enough. If ctx ends before the reply, no lock
// is taken.
func (s *session) Inhibit(ctx context.Context) (io.Closer, error) { return s.locks.inhibit(ctx) }

// Close closes the connection, which ends calls in progress, and waits for the session's goroutine.
// Locks stay held.
func (s *session) Close() error {
	err := joinClose(nil, s.conn) // nil: nothing has failed before
	s.announcements.loop.Wait()
	return err
}
