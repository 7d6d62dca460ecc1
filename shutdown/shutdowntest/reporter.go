package shutdowntest

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Reporter is a [shutdown.Reporter] that also flushes, marks and restores, and
// remembers what it was told. The zero value accepts everything at once. Set the
// fields before it is used.
type Reporter struct {
	// PublishTakes, MarkTakes and FlushTakes are how long the calls take; they end
	// with their context before that.
	PublishTakes, MarkTakes, FlushTakes time.Duration
	// PublishErr, MarkErr and FlushErr are asked for the result of the n-th call, from
	// 0; MarkErr for that of RestoreReadiness too. Nil: it succeeds.
	PublishErr, MarkErr, FlushErr func(n int) error

	mu        sync.Mutex // guards all below
	published []Published
	marked    []Marked
	flushed   []Flushed
}

var (
	_ shutdown.Reporter          = (*Reporter)(nil)
	_ shutdown.StatusFlusher     = (*Reporter)(nil)
	_ shutdown.ReadinessMarker   = (*Reporter)(nil)
	_ shutdown.ReadinessRestorer = (*Reporter)(nil)
)

// Published is one PublishNode of a [Reporter] that has returned.
type Published struct {
	State shutdown.NodeState
	At    time.Time
	Err   error
}

// Marked is one MarkNotReady, or one RestoreReadiness, of a [Reporter] that has returned.
type Marked struct {
	Pod   string // its name
	Ready bool   // it was RestoreReadiness
	At    time.Time
	Err   error
}

// Flushed is one FlushPod of a [Reporter] that has returned.
type Flushed struct {
	Pod   string  // its name
	Final *v1.Pod // as it was handed in
	At    time.Time
	Err   error
}

// PublishNode is the reporter's part of [shutdown.Reporter].
func (r *Reporter) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	err := pass(ctx, r.PublishTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.PublishErr != nil {
		err = r.PublishErr(len(r.published))
	}
	r.published = append(r.published, Published{State: state, At: time.Now(), Err: err})
	return err
}

// MarkNotReady is the reporter's part of [shutdown.ReadinessMarker].
func (r *Reporter) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	return r.mark(ctx, pod, false)
}

// RestoreReadiness is the reporter's part of [shutdown.ReadinessRestorer].
func (r *Reporter) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	return r.mark(ctx, pod, true)
}

func (r *Reporter) mark(ctx context.Context, pod *v1.Pod, ready bool) error {
	err := pass(ctx, r.MarkTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.MarkErr != nil {
		err = r.MarkErr(len(r.marked))
	}
	r.marked = append(r.marked, Marked{Pod: pod.Name, Ready: ready, At: time.Now(), Err: err})
	return err
}

// FlushPod is the reporter's part of [shutdown.StatusFlusher].
func (r *Reporter) FlushPod(ctx context.Context, pod *v1.Pod) error {
	err := pass(ctx, r.FlushTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.FlushErr != nil {
		err = r.FlushErr(len(r.flushed))
	}
	r.flushed = append(r.flushed, Flushed{Pod: pod.Name, Final: pod, At: time.Now(), Err: err})
	return err
}

// Published are the calls of PublishNode so far, in the order of their ends.
func (r *Reporter) Published() []Published {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.published)
}

// Marked are the calls of MarkNotReady and RestoreReadiness so far, in the order of their ends.
func (r *Reporter) Marked() []Marked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.marked)
}

// Flushed are the calls of FlushPod so far, in the order of their ends.
func (r *Reporter) Flushed() []Flushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.flushed)
}

// pass lets time go by, until ctx ends.
func pass(ctx context.Context, d time.Duration) error {
	if d <= 0 {
		return ctx.Err()
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}
