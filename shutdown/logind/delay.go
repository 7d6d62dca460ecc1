//go:build linux

package logind

import (
	"bytes"
	"context"
	"errors"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"
)

// After a reload the limit is read again after firstPollPause. The pause doubles with
// each attempt, up to maxPollPause.
const (
	firstPollPause = 5 * time.Millisecond
	maxPollPause   = 320 * time.Millisecond
)

// delayRequest is one request to logind to delay a shutdown for wish. The files are locked for it.
type delayRequest struct {
	*session

	wish time.Duration
}

// apply writes or removes the drop-in as wish requires and reloads logind if needed.
func (r *delayRequest) apply(ctx context.Context) (time.Duration, error) {
	granted, err := r.conn.limit(ctx)
	if err != nil {
		return 0, err
	}
	// A drop-in of ours is never empty, so nil content means that there is none.
	content, err := r.files.dropIn.find()
	present, upToDate := content != nil, bytes.Equal(content, dropInText(r.wish))
	switch {
	case err != nil:
		return r.granted(ctx, err)
	case upToDate && r.files.hasFailed(r.wish):
		return r.granted(ctx, r.files.notAppliedError(granted, r.wish))
	case present && !upToDate && granted >= r.wish && r.locks.heldByOtherProcess(ctx):
		return r.granted(ctx, nil)
	case present && r.files.configuredWithoutDropIn().delay >= r.wish:
		return r.withdraw(ctx, granted)
	case granted >= r.wish && (upToDate || !present), upToDate && r.files.winner(granted) != "":
		return r.granted(ctx, nil) // writing and reloading again would change nothing
	default:
		return r.raise(ctx, granted)
	}
}

// raise writes the drop-in, reloads logind and waits for the new limit. If the limit was
// too low, it waits for one of at least wish. Otherwise the drop-in lowers the limit, and
// it waits for the exact value of the files, because the old limit is sufficient too.
func (r *delayRequest) raise(ctx context.Context, before time.Duration) (time.Duration, error) {
	defer r.files.change(before)()
	setBy := r.files.winner(before)
	file, err := r.files.dropIn.write(dropInText(r.wish))
	if err != nil {
		return r.granted(ctx, err)
	}
	tooLow := before < r.wish
	enough := func(limit time.Duration) bool { return limit >= r.wish }
	if !tooLow {
		configured := r.files.configured().delay
		enough = func(limit time.Duration) bool { return limit == configured }
	}
	failed := r.reloadUntil(ctx, enough)
	limit, err := r.conn.limit(ctx)
	switch {
	case failed != nil || err != nil:
	case enough(limit):
		r.logger.Info("Changed how long systemd-logind delays a shutdown", "from", before, "to", limit, "file", file, "setBefore", setBy)
	default:
		r.files.setFailed(r.wish)
		failed = r.files.notAppliedError(limit, r.wish)
	}
	return r.granted(ctx, failed)
}

// withdraw removes the drop-in because the other files set a sufficient limit. If logind's limit is
// too low afterwards, our reading of the files was wrong and the drop-in is written again.
func (r *delayRequest) withdraw(ctx context.Context, before time.Duration) (time.Duration, error) {
	defer r.files.change(before)()
	if err := r.files.dropIn.remove(); err != nil {
		return r.granted(ctx, err)
	}
	// Read the files after the removal: our drop-in may have masked a file of the same name.
	configured := r.files.configured().delay
	failed := r.reloadUntil(ctx, func(limit time.Duration) bool { return limit == configured })
	if granted, err := r.conn.limit(ctx); err == nil && granted < r.wish {
		granted, err := r.raise(ctx, granted)
		r.files.setFailed(r.wish)
		return granted, err
	}
	return r.granted(ctx, failed)
}

// reloadUntil reloads logind and waits until enough accepts the limit. times.reload bounds
// both together. It is no error if the limit does not change in time.
func (r *delayRequest) reloadUntil(ctx context.Context, enough func(time.Duration) bool) error {
	ctx, cancel := context.WithTimeout(ctx, r.files.options.times.reload)
	defer cancel()
	if err := r.conn.reload(ctx); err != nil {
		return err
	}
	r.awaitLimit(ctx, enough)
	return nil
}

// awaitLimit polls the limit until enough accepts it, it cannot be read, or ctx ends.
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

// granted reads the limit again and returns it, with a *[source.DelayCappedError] if it is
// below wish. failed is the reason why the drop-in or logind could not be changed; nil means
// none. If the limit is sufficient, failed is only logged: it did not shorten the delay.
func (r *delayRequest) granted(ctx context.Context, failed error) (time.Duration, error) {
	granted, err := r.conn.limit(ctx)
	if err != nil {
		return 0, errors.Join(failed, err)
	}
	if granted >= r.wish {
		if r.files.isNews(failed) {
			r.logger.Error(failed, "The shutdown can be delayed as it should be, but its configuration cannot be changed")
		}
		return granted, nil
	}
	capped := &source.DelayCappedError{Requested: r.wish, Granted: granted, Setting: delaySetting, SetBy: r.files.winner(granted)}
	return granted, errors.Join(capped, failed)
}
