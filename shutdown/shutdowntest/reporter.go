package shutdowntest

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown"
)

// Reporter is a [shutdown.Reporter], and a [shutdown.ReadinessMarker], that
// remembers what it was told. The zero value accepts everything at once. Set the
// fields before it is used.
type Reporter struct {
	// PublishTakes, MarkTakes and FlushTakes are how long the calls take; they end
	// with their context before that.
	PublishTakes, MarkTakes, FlushTakes time.Duration
	// PublishErr, MarkErr and FlushErr are asked for the result of the n-th call, from
	// 0. Nil: it succeeds.
	PublishErr, MarkErr, FlushErr func(n int) error

	mu        sync.Mutex // guards all below
	published []Published
	marked    []Marked
	flushed   []Flushed
}

var (
	_ shutdown.Reporter        = (*Reporter)(nil)
	_ shutdown.ReadinessMarker = (*Reporter)(nil)
)

// Published is one PublishNode of a [Reporter] that has returned.
type Published struct {
	State shutdown.NodeState
	At    time.Time
	Err   error
}

// Marked is one MarkReady of a [Reporter] that has returned.
type Marked struct {
	Pods  []string // their names
	Ready bool
	At    time.Time
	Err   error
}

// Flushed is one FlushPods of a [Reporter] that has returned.
type Flushed struct {
	Pods  []string  // their names
	Final []*v1.Pod // as they were handed in
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

// MarkReady is the reporter's part of [shutdown.ReadinessMarker].
func (r *Reporter) MarkReady(ctx context.Context, pods []*v1.Pod, ready bool) error {
	err := pass(ctx, r.MarkTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.MarkErr != nil {
		err = r.MarkErr(len(r.marked))
	}
	r.marked = append(r.marked, Marked{Pods: namesOf(pods), Ready: ready, At: time.Now(), Err: err})
	return err
}

// FlushPods is the reporter's part of [shutdown.Reporter].
func (r *Reporter) FlushPods(ctx context.Context, pods []*v1.Pod) error {
	err := pass(ctx, r.FlushTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.FlushErr != nil {
		err = r.FlushErr(len(r.flushed))
	}
	r.flushed = append(r.flushed, Flushed{Pods: namesOf(pods), Final: pods, At: time.Now(), Err: err})
	return err
}

// Published are the calls of PublishNode so far, in the order of their ends.
func (r *Reporter) Published() []Published {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.published)
}

// Marked are the calls of MarkReady so far, in the order of their ends.
func (r *Reporter) Marked() []Marked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.marked)
}

// Flushed are the calls of FlushPods so far, in the order of their ends.
func (r *Reporter) Flushed() []Flushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.flushed)
}

func namesOf(pods []*v1.Pod) []string {
	names := make([]string, len(pods))
	for i, pod := range pods {
		names[i] = pod.Name
	}
	return names
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
