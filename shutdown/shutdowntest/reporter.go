package shutdowntest

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Reporter is a [shutdown.Reporter] that is also a [shutdown.StatusFlusher], a
// [shutdown.ReadinessMarker]. It records its calls. The zero
// value accepts every call at once. Set the fields before the first use. All methods may be
// called concurrently.
type Reporter struct {
	// PublishTakes, MarkTakes and FlushTakes are how long the calls take. A call fails if its
	// context ends before.
	PublishTakes, MarkTakes, FlushTakes time.Duration
	// PublishErr, MarkErr and FlushErr return the result of the n-th call, counted from 0.
	// MarkErr is also for RestoreReadiness. Nil: every call succeeds.
	PublishErr, MarkErr, FlushErr func(n int) error

	mu        sync.Mutex // guards all below
	published []Published
	marked    []Marked
	flushed   []Flushed
}

var (
	_ shutdown.Reporter        = (*Reporter)(nil)
	_ shutdown.StatusFlusher   = (*Reporter)(nil)
	_ shutdown.ReadinessMarker = (*Reporter)(nil)
)

// Published is one call of PublishNode that has returned.
type Published struct {
	State shutdown.NodeState
	At    time.Time
	Err   error
}

// Marked is one call of MarkNotReady or RestoreReadiness that has returned.
type Marked struct {
	Pod   string // its name
	Ready bool   // the call was RestoreReadiness
	At    time.Time
	Err   error
}

// Flushed is one call of FlushPod that has returned.
type Flushed struct {
	Pod   string  // its name
	Final *v1.Pod // as it was passed to FlushPod
	At    time.Time
	Err   error
}

// PublishNode implements [shutdown.Reporter].
func (r *Reporter) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	err := waitOrCancelled(ctx, r.PublishTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.PublishErr != nil {
		err = r.PublishErr(len(r.published))
	}
	r.published = append(r.published, Published{State: state, At: time.Now(), Err: err})
	return err
}

// MarkNotReady implements [shutdown.ReadinessMarker].
func (r *Reporter) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	return r.mark(ctx, pod, false)
}

// RestoreReadiness implements [shutdown.ReadinessMarker].
func (r *Reporter) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	return r.mark(ctx, pod, true)
}

func (r *Reporter) mark(ctx context.Context, pod *v1.Pod, ready bool) error {
	err := waitOrCancelled(ctx, r.MarkTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.MarkErr != nil {
		err = r.MarkErr(len(r.marked))
	}
	r.marked = append(r.marked, Marked{Pod: pod.Name, Ready: ready, At: time.Now(), Err: err})
	return err
}

// FlushPod implements [shutdown.StatusFlusher].
func (r *Reporter) FlushPod(ctx context.Context, pod *v1.Pod) error {
	err := waitOrCancelled(ctx, r.FlushTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.FlushErr != nil {
		err = r.FlushErr(len(r.flushed))
	}
	r.flushed = append(r.flushed, Flushed{Pod: pod.Name, Final: pod, At: time.Now(), Err: err})
	return err
}

// Published returns the calls of PublishNode so far, in the order in which they returned.
func (r *Reporter) Published() []Published {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.published)
}

// Marked returns the calls of MarkNotReady and RestoreReadiness so far, in the order in which
// they returned.
func (r *Reporter) Marked() []Marked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.marked)
}

// Flushed returns the calls of FlushPod so far, in the order in which they returned.
func (r *Reporter) Flushed() []Flushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.flushed)
}

// waitOrCancelled waits for d. It returns early with an error if ctx ends.
func waitOrCancelled(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	select {
	case <-time.After(d):
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
