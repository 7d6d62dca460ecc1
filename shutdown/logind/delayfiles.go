//go:build linux

package logind

import (
	"context"
	"fmt"
	"os"
	"sync/atomic"
	"time"
)

// delayFiles are the files of the host that set logind's limit. One of them is the drop-in of
// this package. All sessions of a Source share them: a session that has lost the bus may still
// be changing the drop-in when the next one begins.
type delayFiles struct {
	options Options
	dropIn  dropIn
	locked  chan struct{} // of size 1, full while the drop-in is changed; waiting for it ends with a context
	failed  attempt       // the last attempt that logind did not apply; locked guards it
	logged  string        // why the files could not be changed, as it was logged last; locked guards it

	// changing is logind's limit before a change that is under way; nil: none is. logind may have armed
	// its timer with it.
	changing atomic.Pointer[time.Duration]
}

func newDelayFiles(o Options) *delayFiles {
	return &delayFiles{options: o, dropIn: o.dropIn(), locked: make(chan struct{}, 1)}
}

// lock waits for the exclusive right to change the drop-in, or for the end of ctx.
func (f *delayFiles) lock(ctx context.Context) (unlock func(), err error) {
	select {
	case f.locked <- struct{}{}:
		return func() { <-f.locked }, nil
	case <-ctx.Done():
		return nil, context.Cause(ctx)
	}
}

// change marks logind's limit as changing, from before to something else, until done is called.
func (f *delayFiles) change(before time.Duration) (done func()) {
	if f.changing.CompareAndSwap(nil, &before) {
		return func() { f.changing.Store(nil) }
	}
	return func() {} // a part of a larger change
}

// isNews reports whether a failure to change the files has not been logged yet. The limit is read every
// few seconds, and the failure may last.
func (f *delayFiles) isNews(failed error) bool {
	text := ""
	if failed != nil {
		text = failed.Error()
	}
	news := text != "" && text != f.logged
	f.logged = text
	return news
}

// attempt identifies an attempt to change the limit: the wish and the setting of the files as we
// see them. When a reload did not make logind apply it, the same attempt is not made again. This
// happens where logind sees other files than the agent, as with an agent in a container.
type attempt struct {
	wish       time.Duration
	configured setting
}

// hasFailed reports whether logind did not apply the same attempt before.
func (f *delayFiles) hasFailed(wish time.Duration) bool {
	return f.failed == attempt{wish, f.configured()}
}

// setFailed records an attempt that logind did not apply.
func (f *delayFiles) setFailed(wish time.Duration) { f.failed = attempt{wish, f.configured()} }

// notAppliedError returns an error if the limit is below wish and no file explains it.
func (f *delayFiles) notAppliedError(limit, wish time.Duration) error {
	if limit >= wish || f.winner(limit) != "" {
		return nil
	}
	return fmt.Errorf("%s was written and systemd-logind reloaded, but it does not go by it: is %s the host's own file system?",
		f.dropIn.files[0], f.options.HostRoot)
}

// winner returns the file that sets the given limit. It is empty if the visible files set
// another limit or none.
func (f *delayFiles) winner(limit time.Duration) string {
	if winner := f.configured(); winner.delay == limit {
		return winner.file
	}
	return ""
}

// configured returns the setting of logind's files.
func (f *delayFiles) configured() setting {
	return configured(os.DirFS(f.options.HostRoot), nil)
}

// configuredWithoutDropIn returns the setting of logind's files without our drop-in.
func (f *delayFiles) configuredWithoutDropIn() setting {
	return configured(os.DirFS(f.options.HostRoot), f.dropIn.files)
}

// removeDropIn removes the drop-in and reloads logind.
func (f *delayFiles) removeDropIn(ctx context.Context) error {
	unlock, err := f.lock(ctx)
	if err != nil {
		return fmt.Errorf("remove the drop-in: %w", err)
	}
	defer unlock()
	content, err := f.dropIn.find()
	if err != nil || content == nil {
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
		return fmt.Errorf("the drop-in is removed, but systemd-logind has not heard of it: %w", err)
	}
	return nil
}
