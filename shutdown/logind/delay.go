//go:build linux

package logind

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/kubegrace/kubegrace/internal/logindconf"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// The pauses between reads of the limit after a reload double from firstPollPause to maxPollPause.
const (
	firstPollPause = 5 * time.Millisecond
	maxPollPause   = 320 * time.Millisecond
)

// delayRequest is one call of RequestDelay. Its caller holds the lock of session.files.
type delayRequest struct {
	*session

	requested time.Duration
}

// apply makes logind's limit sufficient for the requested delay, if it can, and returns the results of RequestDelay. It writes
// the drop-in (writeDropInAndReload), or removes it if the other files set enough (withdraw). If that is impossible, would have
// no effect, is not needed, or would harm another process, it changes nothing, and result returns the limit as it is.
func (r *delayRequest) apply(ctx context.Context) (time.Duration, error) {
	granted, err := r.conn.limit(ctx)
	if err != nil {
		return 0, err
	}
	content, err := r.files.dropIn.find()
	if err != nil { // somebody else's file is in the drop-in's place
		return r.result(ctx, err)
	}
	isPresent, isUpToDate := content != nil, bytes.Equal(content, dropInText(r.requested))
	isEnough := granted >= r.requested
	isOfLongerRequest := isPresent && !isUpToDate && isEnough
	isAsItShouldBe := isEnough && (isUpToDate || !isPresent)
	var noFailure error
	switch {
	case isUpToDate && r.files.wasNotApplied(r.requested): // another reload would not help: logind seems to read other files
		return r.result(ctx, r.files.notAppliedError(granted, r.requested))
	case isOfLongerRequest && r.locks.heldByOtherProcess(ctx): // the other process may need the drop-in
		return r.result(ctx, noFailure)
	case isPresent && r.files.configuredWithoutDropIn().delay >= r.requested: // the other files are enough
		return r.withdraw(ctx, granted)
	case isAsItShouldBe:
		return r.result(ctx, noFailure)
	case isUpToDate && r.files.fileSetting(granted) != "": // a later file wins over the drop-in
		return r.result(ctx, noFailure)
	default:
		return r.writeDropInAndReload(ctx, granted)
	}
}

// writeDropInAndReload writes the drop-in, reloads logind, waits until logind has the new limit, and returns the results of
// RequestDelay. before is logind's limit before the change. If logind does not apply the drop-in, notApplied records this, so
// that apply does not make the same attempt again.
func (r *delayRequest) writeDropInAndReload(ctx context.Context, before time.Duration) (time.Duration, error) {
	done := r.files.markChanging(before)
	defer done()
	fileBefore := r.files.fileSetting(before)
	file, err := r.files.dropIn.write(dropInText(r.requested))
	if err != nil {
		return r.result(ctx, err)
	}
	isApplied := r.appliedCheck(before)
	newAttempt := r.files.attemptFor(r.requested) // after the write, so that it has what the files set now
	changeErr := r.reloadUntil(ctx, isApplied)
	limit, err := r.conn.limit(ctx)
	if changeErr != nil || err != nil {
		return r.result(ctx, changeErr) // if only limit has failed, changeErr is nil: result reads the limit again, and returns the error of that
	}
	if !isApplied(limit) {
		r.files.notApplied = newAttempt
		return r.result(ctx, r.files.notAppliedError(limit, r.requested))
	}
	r.logger.Info("Changed the delay limit of systemd-logind", "from", before, "to", limit, "file", file, "setBefore", fileBefore)
	return r.result(ctx, nil)
}

// appliedCheck returns a function that reports whether a limit shows that logind has read the new drop-in. If the limit
// before the change was too low, each limit of at least the request shows it. Otherwise the drop-in lowers the limit, and only
// the limit that the files now set shows it.
func (r *delayRequest) appliedCheck(before time.Duration) (isApplied func(limit time.Duration) bool) {
	if before < r.requested {
		return func(limit time.Duration) bool { return limit >= r.requested }
	}
	configured := r.files.configured().delay
	return func(limit time.Duration) bool { return limit == configured }
}

// withdraw removes the drop-in, because the other files seem to set a sufficient limit, reloads logind, and waits until
// logind has the limit of those files. before is logind's limit before the removal.
//
// If logind's limit is then below the request, this package has misread the files, and withdraw writes the drop-in again.
// notApplied records this, so that apply does not withdraw the drop-in again while the files and the request stay the
// same.
func (r *delayRequest) withdraw(ctx context.Context, before time.Duration) (time.Duration, error) {
	done := r.files.markChanging(before)
	defer done()
	if err := r.files.dropIn.remove(); err != nil {
		return r.result(ctx, err)
	}
	// Read the files only now: the drop-in may have masked a file of the same name in another directory.
	configured := r.files.configured().delay
	reloadErr := r.reloadUntil(ctx, func(limit time.Duration) bool { return limit == configured })
	if limit, err := r.conn.limit(ctx); err == nil && limit < r.requested {
		granted, err := r.writeDropInAndReload(ctx, limit)
		r.files.notApplied = r.files.attemptFor(r.requested)
		return granted, err
	}
	return r.result(ctx, reloadErr)
}

// reloadUntil reloads logind and waits until isApplied accepts the limit, but at most times.reload. It returns nil
// even if the limit has not changed in time: the caller reads the limit and decides.
func (r *delayRequest) reloadUntil(ctx context.Context, isApplied func(limit time.Duration) bool) error {
	ctx, cancel := context.WithTimeout(ctx, r.files.options.times.reload)
	defer cancel()
	if err := r.conn.reload(ctx); err != nil {
		return err
	}
	r.awaitLimit(ctx, isApplied)
	return nil
}

// awaitLimit polls the limit until isApplied accepts it, it cannot be read, or ctx ends.
func (r *delayRequest) awaitLimit(ctx context.Context, isApplied func(limit time.Duration) bool) {
	for pause := firstPollPause; ; pause = min(2*pause, maxPollPause) {
		if limit, err := r.conn.limit(ctx); err != nil || isApplied(limit) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// result returns the results of RequestDelay: the limit, which it reads again, and a
// *[source.DelayCappedError] if the limit is below the request. changeErr is why the drop-in or logind's limit could
// not be changed; nil: no failure. If the limit is sufficient, changeErr is only logged.
func (r *delayRequest) result(ctx context.Context, changeErr error) (time.Duration, error) {
	granted, err := r.conn.limit(ctx)
	if err != nil {
		return 0, errors.Join(changeErr, err)
	}
	if granted >= r.requested {
		if isNew := r.files.noteFailure(changeErr); isNew {
			r.logger.Error(changeErr, "The granted delay is sufficient, but the drop-in cannot be changed")
		}
		return granted, nil
	}
	capped := &source.DelayCappedError{Requested: r.requested, Granted: granted, Setting: logindconf.Setting, SetBy: r.files.fileSetting(granted)}
	return granted, errors.Join(capped, changeErr)
}
