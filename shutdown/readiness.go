package shutdown

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// spareTimeout bounds the attempts to say that spared pods are ready again.
const spareTimeout = 30 * time.Second

// markNotReady takes the pods of a bucket out of their services before any of them
// is stopped. It has a reserve of its own, so that an API server that is slow, or
// dead, takes no time from the pods.
func (d *drain) markNotReady(pods []*v1.Pod, until time.Time) {
	marker, ok := d.m.opts.Reporter.(ReadinessMarker)
	pods = undeleted(pods)
	if !ok || len(pods) == 0 || !time.Now().Before(until) {
		return
	}
	err := d.within(d.stopped, until, func(ctx context.Context) error {
		return marker.MarkReady(ctx, pods, false)
	})
	if err != nil && !d.halted() {
		d.note(fmt.Errorf("failed to mark %d pods not ready: %w", len(pods), err))
	}
}

// undeleted are the pods that only the node ends. Those that were deleted are out
// of their services already.
func undeleted(pods []*v1.Pod) []*v1.Pod {
	return slices.DeleteFunc(slices.Clone(pods), func(pod *v1.Pod) bool { return pod.DeletionTimestamp != nil })
}

// spareUnsignalled is for pods whose kill a cancellation has overtaken.
func (d *drain) spareUnsignalled() {
	if !d.cancelled() {
		return
	}
	d.spare(podsOf(slices.DeleteFunc(slices.Clone(d.roster.all()), func(k *kill) bool { return !k.spared() })))
}

// spare takes back what was said of pods that a cancelled shutdown has not
// signalled. It does not wait.
func (d *drain) spare(pods []*v1.Pod) {
	marker, ok := d.m.opts.Reporter.(ReadinessMarker)
	pods = undeleted(pods)
	if !ok || len(pods) == 0 || !d.cancelled() {
		return
	}
	said := &entry{done: make(chan struct{})}
	d.beside = append(d.beside, said)
	d.work.Go(func() {
		defer close(said.done)
		ctx, stop := context.WithTimeoutCause(d.ctx, spareTimeout, errTimeSpent)
		defer stop()
		if err := marker.MarkReady(ctx, pods, true); err != nil {
			said.err = fmt.Errorf("failed to mark %d spared pods ready: %w", len(pods), err)
		}
	})
}
