//go:build linux

package logind

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"os"
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
)

// unlimited is a delay that logind does not end: InhibitDelayMaxSec=infinity,
// and whatever does not fit into a [time.Duration].
const unlimited = time.Duration(math.MaxInt64)

// A new limit is looked for after pollFirst, then after twice as long each time,
// pollMost at most.
const (
	pollFirst = 5 * time.Millisecond
	pollMost  = 320 * time.Millisecond
)

// limit reads how long logind lets locks delay a shutdown: 0 if not at all.
func (c *conn) limit(ctx context.Context) (time.Duration, error) {
	var usec uint64
	if _, err := c.property(ctx, "InhibitDelayMaxUSec", &usec); err != nil {
		return 0, err
	}
	return fromMicroseconds(usec), nil
}

// fromMicroseconds saturates: logind's infinity is the largest uint64, which
// overflows a time.Duration to -1 µs.
func fromMicroseconds(usec uint64) time.Duration {
	if usec > uint64(unlimited/time.Microsecond) {
		return unlimited
	}
	return time.Duration(usec) * time.Microsecond
}

// RequestDelay reads logind's limit and raises it with a drop-in if it is below
// wish. What it grants is what logind then says; math.MaxInt64 is without limit.
// If that is below wish, the error is a *[shutdown.DelayCappedError], joined with
// what failed. A drop-in of ours that wish does not need is removed, so that a
// wish of 0 leaves the host as it was; as long as another process holds a lock for the
// same reason (Options.Why), it is neither removed nor made to say less. Calls take turns
// across sessions.
func (s *session) RequestDelay(ctx context.Context, wish time.Duration) (time.Duration, error) {
	done, err := s.source.takeTurn(ctx)
	if err != nil {
		return 0, fmt.Errorf("set the shutdown delay: %w", err)
	}
	defer done()
	granted, err := s.settleDelay(ctx, wish)
	if err != nil {
		err = fmt.Errorf("set the shutdown delay: %w", err)
	}
	return granted, err
}

// settleDelay brings the drop-in and the limit to what wish needs.
func (s *session) settleDelay(ctx context.Context, wish time.Duration) (time.Duration, error) {
	granted, err := s.conn.limit(ctx)
	if err != nil {
		return 0, err
	}
	// An empty drop-in cannot be ours, so nil is the only absence.
	content, err := s.source.dropIn.find()
	present, asWished := content != nil, bytes.Equal(content, dropInText(wish))
	switch {
	case err != nil:
		return s.judge(ctx, wish, err)
	case asWished && s.source.vain == s.source.attempt(wish):
		return s.judge(ctx, wish, s.source.unseen(granted, wish))
	case present && !asWished && granted >= wish && s.neighbour(ctx):
		return s.judge(ctx, wish, nil)
	case present && s.source.without().delay >= wish:
		return s.withdraw(ctx, wish)
	case granted >= wish && (asWished || !present), asWished && s.source.winner(granted) != "":
		return s.judge(ctx, wish, nil) // all is done that can be: another attempt only disturbs logind
	default:
		return s.raise(ctx, wish, granted < wish)
	}
}

// raise writes the drop-in and waits until logind shows a limit that is enough,
// or, where it was enough before, the one that is now configured.
func (s *session) raise(ctx context.Context, wish time.Duration, short bool) (time.Duration, error) {
	if err := s.source.dropIn.write(dropInText(wish)); err != nil {
		return s.judge(ctx, wish, err)
	}
	enough := func(limit time.Duration) bool { return limit >= wish }
	if !short { // lowering: the old limit is enough too, and must not be taken for the new
		configured := s.source.configured().delay
		enough = func(limit time.Duration) bool { return limit == configured }
	}
	failed := s.reloadUntil(ctx, enough)
	if limit, err := s.conn.limit(ctx); failed == nil && err == nil && !enough(limit) {
		s.source.vain = s.source.attempt(wish)
		failed = s.source.unseen(limit, wish)
	}
	return s.judge(ctx, wish, failed)
}

// withdraw removes the drop-in, as the other files are enough without it. If
// logind does not agree with our reading of them, it is written again.
func (s *session) withdraw(ctx context.Context, wish time.Duration) (time.Duration, error) {
	if err := s.source.dropIn.remove(); err != nil {
		return s.judge(ctx, wish, err)
	}
	// The files are read after the removal, so that what ours has masked counts.
	configured := s.source.configured().delay
	failed := s.reloadUntil(ctx, func(limit time.Duration) bool { return limit == configured })
	if granted, err := s.conn.limit(ctx); err == nil && granted < wish {
		granted, err := s.raise(ctx, wish, true)
		s.source.vain = s.source.attempt(wish)
		return granted, err
	}
	return s.judge(ctx, wish, failed)
}

// attempt is what logind was to take over: a wish that stands in the drop-in, and what
// all of its files say as we see them. Where it has not done so once, as a logind that
// sees other files than an agent in a container, it will not do so the next time.
type attempt struct {
	wish       time.Duration
	configured setting
}

func (s *Source) attempt(wish time.Duration) attempt {
	return attempt{wish: wish, configured: s.configured()}
}

// unseen says that the files do not explain a limit which is too low.
func (s *Source) unseen(limit, wish time.Duration) error {
	if limit >= wish || s.winner(limit) != "" {
		return nil
	}
	return fmt.Errorf("%s was written and systemd-logind reloaded, but it does not go by it: is %s the host's own file system?",
		s.dropIn.files[0], s.options.HostRoot)
}

// RemoveDropIn removes the drop-in that this package has written, as for an uninstall,
// and reloads logind if there was one: the limit is then what the host's other files
// say. A file of the same name that somebody else has written is left alone and
// reported. It needs no session. A manager that runs writes the drop-in again.
func (s *Source) RemoveDropIn(ctx context.Context) error {
	done, err := s.takeTurn(ctx)
	if err != nil {
		return fmt.Errorf("remove the drop-in: %w", err)
	}
	defer done()
	content, err := s.dropIn.find()
	if err != nil || content == nil {
		return err
	}
	if err := s.dropIn.remove(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, s.options.ReloadTimeout)
	defer cancel()
	if err := s.reload(ctx); err != nil {
		return fmt.Errorf("the drop-in is removed, but systemd-logind has not heard of it: %w", err)
	}
	return nil
}

// takeTurn waits for the right to change the drop-in.
func (s *Source) takeTurn(ctx context.Context) (done func(), err error) {
	select {
	case s.turn <- struct{}{}:
		return func() { <-s.turn }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// reloadUntil reloads logind and waits for the limit to be as it should. It has
// ReloadTimeout for both; what the limit then is, is not its concern.
func (s *session) reloadUntil(ctx context.Context, good func(time.Duration) bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.source.options.ReloadTimeout)
	defer cancel()
	if err := s.source.reload(ctx); err != nil {
		return err
	}
	s.conn.awaitLimit(ctx, good)
	return nil
}

// awaitLimit returns when the limit is good, cannot be read, or ctx ends.
func (c *conn) awaitLimit(ctx context.Context, good func(time.Duration) bool) {
	for pause := pollFirst; ; pause = min(2*pause, pollMost) {
		if limit, err := c.limit(ctx); err != nil || good(limit) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// judge gives what is granted in the end. A failure that cost nothing, as when a
// drop-in that is no longer needed could not be removed, is for the log.
func (s *session) judge(ctx context.Context, wish time.Duration, failed error) (time.Duration, error) {
	granted, err := s.conn.limit(ctx)
	if err != nil {
		return 0, errors.Join(failed, err)
	}
	if granted >= wish {
		if failed != nil {
			s.logger.Error(failed, "The shutdown can be delayed as it should be, but its configuration cannot be changed")
		}
		return granted, nil
	}
	capped := &shutdown.DelayCappedError{Requested: wish, Granted: granted, Setting: delaySetting, Winner: s.source.winner(granted)}
	return granted, errors.Join(capped, failed)
}

// winner is the file that sets the limit which logind shows; "" if the files that
// can be seen do not explain it.
func (s *Source) winner(limit time.Duration) string {
	if winner := s.configured(); winner.delay == limit {
		return winner.file
	}
	return ""
}

// configured is what logind's files say; without, as if ours were not there.
func (s *Source) configured() setting {
	return configured(os.DirFS(s.options.HostRoot), func(string) bool { return false })
}

func (s *Source) without() setting {
	return configured(os.DirFS(s.options.HostRoot), s.dropIn.is)
}
