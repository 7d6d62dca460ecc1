package apistatus

import (
	"context"
	"sync"

	v1 "k8s.io/api/core/v1"
)

// FlushPods writes the final statuses of pods and deletes those that have a
// deletion timestamp. A pod that is gone, or whose name another pod has by now, is
// acknowledged. It returns when all are, or when ctx ends, and names those that are
// not in a *[shutdown.UnflushedError]. A nil pod is none.
func (r *Reporter) FlushPods(ctx context.Context, pods []*v1.Pod) error {
	return r.each(ctx, pods, r.finish)
}

// each writes pods, some at the same time, and waits for all.
func (r *Reporter) each(ctx context.Context, pods []*v1.Pod, write func(context.Context, *v1.Pod) error) error {
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
