//go:build linux

package logind

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"

	"github.com/kubegrace/kubegrace/internal/logindconf"
)

// delayFiles are the host's files that set logind's limit, including the drop-in. All sessions of a
// Source share them: a session that has lost the bus may still be changing the drop-in when the next
// one begins.
type delayFiles struct {
	options    Options
	dropIn     dropIn
	locked     chan struct{} // a mutex for which a wait can end with a context: of size 1, and full while the drop-in is locked
	notApplied attempt       // the last attempt that logind did not apply; guarded by locked
	failure    string        // the failure of the last change, which was logged; "": it did not fail; guarded by locked

	// limitBeforeChange is the old limit while this process changes logind's limit; nil: no change is in progress.
	// logind may have started the timer of a shutdown with the old or the new limit.
	limitBeforeChange atomic.Pointer[time.Duration]
}

// newDelayFiles returns the files of a source with these options. It touches no file.
func newDelayFiles(o Options) *delayFiles {
	return &delayFiles{options: o, dropIn: o.dropIn(), locked: make(chan struct{}, 1)}
}

// lock locks the drop-in. Call unlock afterwards. While another session has locked it, lock waits; if ctx ends
// first, it returns the cause.
func (f *delayFiles) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case f.locked <- struct{}{}:
		return func() { <-f.locked }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// markChanging records logind's limit from before this process changes it. A shutdown that begins during the change may still
// have the old limit, so its deadline is computed from the lower of the two. Call done when the change is over. A nested call and
// its done do nothing (withdraw calls writeDropInAndReload).
func (f *delayFiles) markChanging(before time.Duration) (done func()) {
	if f.limitBeforeChange.CompareAndSwap(nil, &before) {
		return func() { f.limitBeforeChange.Store(nil) }
	}
	return func() {}
}

// noteFailure records the newest failure (nil: there was none) and reports whether it is a new one, which must be logged.
// The manager requests its delay every 10 s, and a lasting failure must not be logged each time.
func (f *delayFiles) noteFailure(err error) (isNew bool) {
	text := ""
	if err != nil {
		text = err.Error()
	}
	isNew = text != "" && text != f.failure
	f.failure = text
	return isNew
}

// attempt is an attempt to change logind's limit: the requested delay, and what the files then set. If a reload of logind
// had no effect, the same attempt is not made again: logind may read other files than this process, for example if the
// agent runs in a container without the host's /etc.
type attempt struct {
	requested  time.Duration
	configured setting
}

// wasNotApplied reports whether this delay was requested before with the same files, and logind did not apply
// it.
func (f *delayFiles) wasNotApplied(requested time.Duration) bool {
	return f.notApplied == f.attemptFor(requested)
}

// attemptFor returns the attempt for this delay with the current files.
func (f *delayFiles) attemptFor(requested time.Duration) attempt {
	return attempt{requested, f.configured()}
}

// notAppliedError is called after the drop-in was written and logind reloaded. It returns an error if logind's limit is
// still below the request although no visible file sets that limit: logind seems to read other files. A file that
// cannot be read or parsed is named as the reason. It returns nil if the limit is enough, or if a visible file sets it,
// which then wins over the drop-in.
func (f *delayFiles) notAppliedError(limit, requested time.Duration) error {
	if limit >= requested {
		return nil
	}
	for _, file := range logindconf.Files(os.DirFS(f.options.HostRoot)) {
		if file.Err != nil {
			return fmt.Errorf("%s: %w", file.Path, file.Err)
		}
	}
	if f.fileSetting(limit) != "" {
		return nil
	}
	return fmt.Errorf("%s was written and systemd-logind reloaded, but its limit has not changed: is %s the host's own file system?",
		f.dropIn.files[0], f.options.HostRoot)
}

// fileSetting returns the file that sets logind's current limit, if limit is that limit by the visible files; "" if they set
// another limit or none.
func (f *delayFiles) fileSetting(limit time.Duration) string {
	if current := f.configured(); current.delay == limit {
		return current.file
	}
	return ""
}

// setting is a value of InhibitDelayMaxSec and the file that sets it; "" for logind's default.
type setting struct {
	file  string
	delay time.Duration
}

// configured returns the limit that logind's files set, including the drop-in of this package, and the file that sets it.
// It ignores the given files.
func (f *delayFiles) configured(ignored ...string) setting {
	if last := logindconf.Last(logindconf.Files(os.DirFS(f.options.HostRoot), ignored...)); last != nil {
		return setting{file: last.Path, delay: last.Limit}
	}
	return setting{delay: logindconf.Default}
}

// configuredWithoutDropIn returns the setting without the drop-in.
func (f *delayFiles) configuredWithoutDropIn() setting {
	return f.configured(f.dropIn.files...)
}

// removeDropIn removes the drop-in and reloads logind. Without a drop-in it does nothing.
func (f *delayFiles) removeDropIn(ctx context.Context) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return fmt.Errorf("remove the drop-in: %w", err)
	}
	defer unlock()
	content, err := f.dropIn.find()
	if err != nil || content == nil { // a foreign file, or no drop-in
		return err
	}
	if err := f.dropIn.remove(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, f.options.times.reload)
	defer cancel()
	c, err := dial(ctx, f.options.Address, newSignalQueue())
	if err == nil {
		err = joinClose(c.reload(ctx), c)
	}
	if err != nil {
		return fmt.Errorf("the drop-in was removed, but systemd-logind was not reloaded: %w", err)
	}
	return nil
}
