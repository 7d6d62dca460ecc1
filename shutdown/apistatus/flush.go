package apistatus

import (
	"context"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// maxHeadStart is how long before its context a call ends at most.
const maxHeadStart = 50 * time.Millisecond

// FlushPods writes the final statuses of pods and deletes those that have a
// deletion timestamp. A pod that is gone, or whose name another pod has by now, is
// acknowledged. It returns when all are, or a moment before ctx ends (a twentieth of
// the time that is left, 50 ms at most), and names those that are not in a
// *[shutdown.UnflushedError]. A nil pod is none.
func (r *Reporter) FlushPods(ctx context.Context, pods []*v1.Pod) error {
	return r.each(ctx, pods, r.finish)
}

// each writes pods, some at the same time, and waits for all.
func (r *Reporter) each(ctx context.Context, pods []*v1.Pod, write func(context.Context, *v1.Pod) error) error {
	ctx, cancel := inTime(ctx)
	defer cancel()
	results := make([]error, len(pods))
	room := make(room, r.opts.Workers)
	var wg sync.WaitGroup
	for i, pod := range pods {
		if pod == nil {
			continue
		}
		if room.enter(ctx) != nil {
			results[i] = gaveUp(ctx, nil)
			continue
		}
		wg.Go(func() {
			results[i] = r.retry(ctx, room, func(ctx context.Context) error { return write(ctx, pod) })
		})
	}
	wg.Wait()
	return unflushed(pods, results)
}

// inTime is a context that ends before ctx: who waits until the end of ctx and no
// longer would not hear why, nor which pods are acknowledged, and would take all for
// lost.
func inTime(ctx context.Context) (context.Context, context.CancelFunc) {
	end, ok := ctx.Deadline()
	if !ok {
		return context.WithCancel(ctx)
	}
	return context.WithDeadline(ctx, end.Add(-min(time.Until(end)/20, maxHeadStart)))
}

// room is where attempts are made, as many at the same time as it has places. A nil
// room has any number.
type room chan struct{}

// enter takes a place; the error is that of ctx, which has ended before.
func (r room) enter(ctx context.Context) error {
	if ctx.Err() != nil || r == nil {
		return ctx.Err()
	}
	select {
	case r <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// leave gives a place back.
func (r room) leave() {
	if r != nil {
		<-r
	}
}
