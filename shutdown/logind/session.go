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

// session is one connection to one logind process. When logind's bus name gets a new
// owner, the session ends.
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
	missing := func(l loss) { s.losses.tell(logger, l) }
	if err := signals.subscribe(ctx, c, missing); err != nil {
		return nil, err
	}
	held := &locks{conn: c, options: s.options, store: s.store, missing: missing, logger: logger}
	told := &announcements{conn: c, locks: held, files: s.files, signals: signals, events: make(chan source.Event), missing: missing, logger: logger}
	told.loop.Add(1)
	go func() {
		defer told.loop.Done()
		told.watch(s.options.times.poll, s.options.times.verify)
	}()
	return &session{conn: c, announcements: told, locks: held, files: s.files, logger: logger}, nil
}

// Events returns the channel of shutdowns and cancellations. It is closed when the bus is
// lost, when logind's bus name changes its owner, when logind no longer lists a lock that
// is held, and by Close.
func (s *session) Events() <-chan source.Event { return s.announcements.events }

// Pending returns the shutdown that is under way according to logind's PreparingForShutdown, or
// nil. Events does not deliver such a shutdown again, but it does deliver its cancellation. There
// is no deadline: logind does not say when it has armed its timer. For a logind without the property
// the error wraps [errors.ErrUnsupported].
func (s *session) Pending(ctx context.Context) (*source.Event, error) {
	return s.announcements.pending(ctx)
}

// RequestDelay reads logind's limit and, if it is below wish, raises it with a drop-in. It returns
// the limit that logind has afterwards; math.MaxInt64 means that there is none.
//
// A second call with the same wish reads the limit and the files again, and acts on what has changed: the
// manager calls it every 10 s. A change that logind has made is logged, with the file that had set the limit
// before.
//
// If the limit stays below wish, the error is a *[source.DelayCappedError], joined with
// the reason why the limit could not be raised.
//
// A drop-in of ours that wish does not need is removed, so a wish of 0 leaves the host as
// it was before. While another process holds an inhibitor for the same reason
// (Options.Why), the drop-in is neither removed nor lowered. Concurrent calls run one
// after the other, across all sessions of the Source.
func (s *session) RequestDelay(ctx context.Context, wish time.Duration) (time.Duration, error) {
	unlock, err := s.files.lock(ctx)
	if err != nil {
		return 0, fmt.Errorf("set the shutdown delay: %w", err)
	}
	defer unlock()
	granted, err := (&delayRequest{session: s, wish: wish}).apply(ctx)
	if err != nil {
		err = fmt.Errorf("set the shutdown delay: %w", err)
	}
	return granted, err
}

// Inhibit takes an inhibitor for shutdown in mode delay. While a shutdown is under way logind
// refuses with OperationInProgress; the session then adopts the lock that the previous process has
// stored, unless [Source.Adopt] has handed it out. If logind grants a new inhibitor, the stored
// lock is closed instead. A call whose context ends before the reply takes no lock.
func (s *session) Inhibit(ctx context.Context) (io.Closer, error) { return s.locks.inhibit(ctx) }

// Close closes the connection, which ends the calls that are under way, and waits for the
// session's goroutine. Locks stay held.
func (s *session) Close() error {
	err := joinClose(nil, s.conn)
	s.announcements.loop.Wait()
	return err
}
