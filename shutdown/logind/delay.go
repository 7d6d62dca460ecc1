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

// unlimited is a limit that never ends the delay: InhibitDelayMaxSec=infinity, and every
// value that does not fit into a [time.Duration].
const unlimited = time.Duration(math.MaxInt64)

// After a reload the limit is read again after firstPollPause. The pause doubles with
// each attempt, up to maxPollPause.
const (
	firstPollPause = 5 * time.Millisecond
	maxPollPause   = 320 * time.Millisecond
)

// limit returns how long logind lets inhibitors delay a shutdown. 0 means not at all.
func (c *conn) limit(ctx context.Context) (time.Duration, error) {
	var usec uint64
	if _, err := c.property(ctx, "InhibitDelayMaxUSec", &usec); err != nil {
		return 0, err
	}
	return fromMicroseconds(usec), nil
}

// fromMicroseconds saturates at [unlimited]. logind's infinity is the largest uint64,
// which would overflow a time.Duration to -1 µs.
func fromMicroseconds(usec uint64) time.Duration {
	if usec > uint64(unlimited/time.Microsecond) {
		return unlimited
	}
	return time.Duration(usec) * time.Microsecond
}

// RequestDelay reads logind's limit and, if it is below wish, raises it with a drop-in.
// It returns the limit that logind has afterwards; math.MaxInt64 means that there is
// none.
//
// If the limit stays below wish, the error is a *[shutdown.DelayCappedError], joined with
// the reason why the limit could not be raised.
//
// A drop-in of ours that wish does not need is removed, so a wish of 0 leaves the host as
// it was before. While another process holds an inhibitor for the same reason
// (Options.Why), the drop-in is neither removed nor lowered. Concurrent calls run one
// after the other, across all sessions of the Source.
func (s *session) RequestDelay(ctx context.Context, wish time.Duration) (time.Duration, error) {
	unlock, err := s.source.lockDropIn(ctx)
	if err != nil {
		return 0, fmt.Errorf("set the shutdown delay: %w", err)
	}
	defer unlock()
	granted, err := s.applyDelay(ctx, wish)
	if err != nil {
		err = fmt.Errorf("set the shutdown delay: %w", err)
	}
	return granted, err
}

// applyDelay writes or removes the drop-in as wish requires and reloads logind if needed.
func (s *session) applyDelay(ctx context.Context, wish time.Duration) (time.Duration, error) {
	granted, err := s.conn.limit(ctx)
	if err != nil {
		return 0, err
	}
	// A drop-in of ours is never empty, so nil content means that there is none.
	content, err := s.source.dropIn.find()
	present, upToDate := content != nil, bytes.Equal(content, dropInText(wish))
	switch {
	case err != nil:
		return s.grantedDelay(ctx, wish, err)
	case upToDate && s.source.failedAttempt == s.source.attempt(wish):
		return s.grantedDelay(ctx, wish, s.source.notAppliedError(granted, wish))
	case present && !upToDate && granted >= wish && s.heldByOtherProcess(ctx):
		return s.grantedDelay(ctx, wish, nil)
	case present && s.source.configuredWithoutDropIn().delay >= wish:
		return s.withdraw(ctx, wish)
	case granted >= wish && (upToDate || !present), upToDate && s.source.winner(granted) != "":
		return s.grantedDelay(ctx, wish, nil) // writing and reloading again would change nothing
	default:
		return s.raise(ctx, wish, granted < wish)
	}
}

// raise writes the drop-in, reloads logind and waits for the new limit. If the limit was
// too low, it waits for one of at least wish. Otherwise the drop-in lowers the limit, and
// it waits for the exact value of the files, because the old limit is sufficient too.
func (s *session) raise(ctx context.Context, wish time.Duration, tooLow bool) (time.Duration, error) {
	if err := s.source.dropIn.write(dropInText(wish)); err != nil {
		return s.grantedDelay(ctx, wish, err)
	}
	enough := func(limit time.Duration) bool { return limit >= wish }
	if !tooLow {
		configured := s.source.configured().delay
		enough = func(limit time.Duration) bool { return limit == configured }
	}
	failed := s.reloadUntil(ctx, enough)
	if limit, err := s.conn.limit(ctx); failed == nil && err == nil && !enough(limit) {
		s.source.failedAttempt = s.source.attempt(wish)
		failed = s.source.notAppliedError(limit, wish)
	}
	return s.grantedDelay(ctx, wish, failed)
}

// withdraw removes the drop-in because the other files set a sufficient limit. If
// logind's limit is too low afterwards, our reading of the files was wrong and the
// drop-in is written again.
func (s *session) withdraw(ctx context.Context, wish time.Duration) (time.Duration, error) {
	if err := s.source.dropIn.remove(); err != nil {
		return s.grantedDelay(ctx, wish, err)
	}
	// Read the files after the removal: our drop-in may have masked a file of the same name.
	configured := s.source.configured().delay
	failed := s.reloadUntil(ctx, func(limit time.Duration) bool { return limit == configured })
	if granted, err := s.conn.limit(ctx); err == nil && granted < wish {
		granted, err := s.raise(ctx, wish, true)
		s.source.failedAttempt = s.source.attempt(wish)
		return granted, err
	}
	return s.grantedDelay(ctx, wish, failed)
}

// attempt identifies an attempt to change the limit: the wish and the setting of the
// files as we see them. When a reload did not make logind apply it, the same attempt is
// not made again. This happens where logind sees other files than the agent, as with an
// agent in a container.
type attempt struct {
	wish       time.Duration
	configured setting
}

func (s *Source) attempt(wish time.Duration) attempt {
	return attempt{wish: wish, configured: s.configured()}
}

// notAppliedError returns an error if the limit is below wish and no file explains it.
func (s *Source) notAppliedError(limit, wish time.Duration) error {
	if limit >= wish || s.winner(limit) != "" {
		return nil
	}
	return fmt.Errorf("%s was written and systemd-logind reloaded, but it does not go by it: is %s the host's own file system?",
		s.dropIn.files[0], s.options.HostRoot)
}

// RemoveDropIn removes the drop-in that this package has written and reloads logind, so
// that the limit is again what the host's other files say. Use it to uninstall an agent.
// It does nothing if there is no drop-in. A file of the same name that this package did
// not write stays, and is an error. It needs no session. A running manager writes the
// drop-in again.
func (s *Source) RemoveDropIn(ctx context.Context) error {
	unlock, err := s.lockDropIn(ctx)
	if err != nil {
		return fmt.Errorf("remove the drop-in: %w", err)
	}
	defer unlock()
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

// lockDropIn waits for the exclusive right to change the drop-in, or for the end of ctx.
func (s *Source) lockDropIn(ctx context.Context) (unlock func(), err error) {
	select {
	case s.dropInLock <- struct{}{}:
		return func() { <-s.dropInLock }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// reloadUntil reloads logind and waits until enough accepts the limit.
// Options.ReloadTimeout bounds both together. It is no error if the limit does not change
// in time.
func (s *session) reloadUntil(ctx context.Context, enough func(time.Duration) bool) error {
	ctx, cancel := context.WithTimeout(ctx, s.source.options.ReloadTimeout)
	defer cancel()
	if err := s.source.reload(ctx); err != nil {
		return err
	}
	s.conn.awaitLimit(ctx, enough)
	return nil
}

// awaitLimit polls the limit until enough accepts it, it cannot be read, or ctx ends.
func (c *conn) awaitLimit(ctx context.Context, enough func(time.Duration) bool) {
	for pause := firstPollPause; ; pause = min(2*pause, maxPollPause) {
		if limit, err := c.limit(ctx); err != nil || enough(limit) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// grantedDelay reads the limit again and returns it, with a *[shutdown.DelayCappedError]
// if it is below wish. failed is the reason why the drop-in or logind could not be
// changed; nil means none. If the limit is sufficient, failed is only logged: it did not
// shorten the delay.
func (s *session) grantedDelay(ctx context.Context, wish time.Duration, failed error) (time.Duration, error) {
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

// winner returns the file that sets the given limit. It is empty if the visible files set
// another limit or none.
func (s *Source) winner(limit time.Duration) string {
	if winner := s.configured(); winner.delay == limit {
		return winner.file
	}
	return ""
}

// configured returns the setting of logind's files.
func (s *Source) configured() setting {
	return configured(os.DirFS(s.options.HostRoot), func(string) bool { return false })
}

// configuredWithoutDropIn returns the setting of logind's files without our drop-in.
func (s *Source) configuredWithoutDropIn() setting {
	return configured(os.DirFS(s.options.HostRoot), s.dropIn.contains)
}
