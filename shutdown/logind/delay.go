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

// apply makes logind's limit sufficient for the requested delay, if it can, and returns the limit. It
// changes nothing if a change would have no effect, or if another process needs the present drop-in.
// Otherwise it reloads logind after one of two changes: it removes a drop-in that is no longer needed
// because other files set enough, or it writes the drop-in.
func (r *delayRequest) apply(ctx context.Context) (time.Duration, error) {
	granted, err := r.conn.limit(ctx)
	if err != nil {
		return 0, err
	}
	// The drop-in is never empty, so nil means that there is none.
	content, err := r.files.dropIn.find()
	present, upToDate := content != nil, bytes.Equal(content, dropInText(r.requested))
	isEnough := granted >= r.requested
	isHigher := present && !upToDate && isEnough // the drop-in of an earlier, longer request
	switch {
	case err != nil: // somebody else's file is in the drop-in's place
		return r.result(ctx, err)
	case upToDate && r.files.wasNotApplied(r.requested): // logind seems to read other files
		return r.result(ctx, r.files.notAppliedError(granted, r.requested))
	case isHigher && r.locks.heldByOtherProcess(ctx): // the other process may need it
		return r.result(ctx, nil)
	case present && r.files.configuredWithoutDropIn().delay >= r.requested: // the other files are enough
		return r.withdraw(ctx, granted)
	case isEnough && (upToDate || !present): // nothing to change
		return r.result(ctx, nil)
	case upToDate && r.files.fileSetting(granted) != "": // a later file wins over the drop-in
		return r.result(ctx, nil)
	default:
		return r.raise(ctx, granted)
	}
}

// raise writes the drop-in, reloads logind and waits for the new limit. before is the limit so far. If that was
// too low, raise waits for a limit of at least the request. Otherwise the drop-in lowers the limit, and raise
// waits for exactly the value that the files set.
func (r *delayRequest) raise(ctx context.Context, before time.Duration) (time.Duration, error) {
	defer r.files.markChanging(before)()
	setBy := r.files.fileSetting(before)
	file, err := r.files.dropIn.write(dropInText(r.requested))
	if err != nil {
		return r.result(ctx, err)
	}
	tooLow := before < r.requested
	enough := func(limit time.Duration) bool { return limit >= r.requested }
	if !tooLow {
		configured := r.files.configured().delay
		enough = func(limit time.Duration) bool { return limit == configured }
	}
	failed := r.reloadUntil(ctx, enough)
	limit, err := r.conn.limit(ctx)
	switch {
	case failed != nil || err != nil: // logind was not reloaded, or does not answer
	case enough(limit):
		r.logger.Info("Changed the delay limit of systemd-logind", "from", before, "to", limit, "file", file, "setBefore", setBy)
	default:
		r.files.setNotApplied(r.requested)
		failed = r.files.notAppliedError(limit, r.requested)
	}
	return r.result(ctx, failed)
}

// withdraw removes the drop-in, because the other files seem to set a sufficient limit, reloads logind, and waits until
// logind has the limit of those files. If logind's limit is then below the request, this package has misread the files:
// withdraw writes the drop-in again, and setNotApplied keeps apply from removing it while the files stay the same. before
// is the limit when withdraw is called; markChanging keeps it until withdraw returns, for the deadline of a shutdown that
// begins meanwhile.
func (r *delayRequest) withdraw(ctx context.Context, before time.Duration) (time.Duration, error) {
	defer r.files.markChanging(before)()
	if err := r.files.dropIn.remove(); err != nil {
		return r.result(ctx, err)
	}
	// Read the files only now: the drop-in may have masked a file of the same name in another directory.
	configured := r.files.configured().delay
	failed := r.reloadUntil(ctx, func(limit time.Duration) bool { return limit == configured })
	if granted, err := r.conn.limit(ctx); err == nil && granted < r.requested {
		granted, err := r.raise(ctx, granted)
		r.files.setNotApplied(r.requested)
		return granted, err
	}
	return r.result(ctx, failed)
}

// reloadUntil reloads logind and waits until enough accepts the limit, within times.reload. It returns nil
// even if the limit has not changed in time: the caller reads the limit and decides.
func (r *delayRequest) reloadUntil(ctx context.Context, enough func(time.Duration) bool) error {
	ctx, cancel := context.WithTimeout(ctx, r.files.options.times.reload)
	defer cancel()
	if err := r.conn.reload(ctx); err != nil {
		return err
	}
	r.awaitLimit(ctx, enough)
	return nil
}

// awaitLimit polls the limit until it is one that the function enough accepts, it cannot be read, or ctx ends.
func (r *delayRequest) awaitLimit(ctx context.Context, enough func(time.Duration) bool) {
	for pause := firstPollPause; ; pause = min(2*pause, maxPollPause) {
		if limit, err := r.conn.limit(ctx); err != nil || enough(limit) {
			return
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return
		}
	}
}

// result makes the results of RequestDelay: the limit, which it reads again, and a
// *[source.DelayCappedError] if the limit is below the request. failed is why the drop-in or logind could
// not be changed; nil: no failure. If the limit is sufficient, failed is only logged.
func (r *delayRequest) result(ctx context.Context, failed error) (time.Duration, error) {
	granted, err := r.conn.limit(ctx)
	if err != nil {
		return 0, errors.Join(failed, err)
	}
	if granted >= r.requested {
		if r.files.noteFailure(failed) {
			r.logger.Error(failed, "The granted delay is sufficient, but the drop-in cannot be changed")
		}
		return granted, nil
	}
	capped := &source.DelayCappedError{Requested: r.requested, Granted: granted, Setting: logindconf.Setting, SetBy: r.files.fileSetting(granted)}
	return granted, errors.Join(capped, failed)
}
