package shutdown

import (
	"context"
	"fmt"
	"time"
)

// within calls a hook and waits for it until a time. A hook that ignores its
// context is left behind; the drain's end waits for it.
func (d *drain) within(ctx context.Context, until time.Time, hook func(context.Context) error) error {
	if !time.Now().Before(until) {
		return errTimeSpent
	}
	ctx, cancel := context.WithDeadlineCause(ctx, until, errTimeSpent)
	result := make(chan error, 1)
	d.work.Go(func() {
		defer cancel()
		result <- hook(ctx)
	})
	select {
	case err := <-result:
		return err
	case <-ctx.Done():
	}
	select {
	case err := <-result: // it ended in time, and its end cancelled ctx
		return err
	default:
		return context.Cause(ctx)
	}
}

// hold gives an external actor its time before the first kill. The end of the
// shutdown ends it.
func (d *drain) hold() {
	if d.m.opts.Hold == nil || d.resumed != nil || d.overtook {
		return
	}
	until := d.received.Add(d.table.Budget().Hold)
	if err := d.within(d.stopped, until, d.m.opts.Hold); err != nil && !d.halted() {
		d.note(fmt.Errorf("failed to hold the shutdown: %w", err))
	}
}

// releasing calls OnRelease, which has what is left of the host's time.
func (d *drain) releasing() {
	if d.m.opts.OnRelease == nil || d.retired() {
		return
	}
	err := d.within(d.ctx, d.table.Unlock(), func(ctx context.Context) error {
		d.m.opts.OnRelease(ctx)
		return nil
	})
	if err != nil {
		d.note(fmt.Errorf("failed to say that the host is let go: %w", err))
	}
}

// unmount waits for the volumes of pods. A cancelled shutdown does not: the node
// goes on with them.
func (d *drain) unmount(kills []*kill, until time.Time) {
	if d.m.opts.Volumes == nil || d.halted() {
		return
	}
	pods := podsOf(kills)
	err := d.within(d.ctx, until, func(ctx context.Context) error {
		return d.m.opts.Volumes.WaitForAllPodsUnmount(ctx, pods)
	})
	if err != nil {
		d.note(fmt.Errorf("failed while waiting for all the volumes belonging to pods in this group to unmount: %w", err))
	}
}
