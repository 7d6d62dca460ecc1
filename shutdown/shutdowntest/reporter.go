package shutdowntest

import (
	"context"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Reporter is a fake [shutdown.Reporter], [shutdown.StatusFlusher] and [shutdown.ReadinessMarker]. With
// the zero value every call succeeds immediately. Set the fields before the first use. All methods may
// be called concurrently.
type Reporter struct {
	// PublishTakes, MarkTakes and FlushTakes are the durations of the calls. A call fails if its
	// context ends first.
	PublishTakes, MarkTakes, FlushTakes time.Duration
	// PublishErr and FlushErr return the error of the n-th call, counted from 0. If nil, every call
	// succeeds.
	PublishErr, FlushErr func(n int) error

	mu        sync.Mutex // guards all below
	published []shutdown.NodeState
	marked    []Marked
	flushed   []Flushed
}

var (
	_ shutdown.Reporter        = (*Reporter)(nil)
	_ shutdown.StatusFlusher   = (*Reporter)(nil)
	_ shutdown.ReadinessMarker = (*Reporter)(nil)
)

// Marked is one completed call of MarkNotReady or RestoreReadiness.
type Marked struct {
	Pod   string // its name
	Ready bool   // the call was RestoreReadiness
}

// Flushed is one completed call of FlushPod.
type Flushed struct {
	Final *v1.Pod // the argument of FlushPod
	At    time.Time
	Err   error
}

// PublishNode implements [shutdown.Reporter]. It takes PublishTakes and records the call, even if it fails.
func (r *Reporter) PublishNode(ctx context.Context, state shutdown.NodeState) error {
	err := times.Sleep(ctx, r.PublishTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.PublishErr != nil {
		err = r.PublishErr(len(r.published))
	}
	r.published = append(r.published, state)
	return err
}

// MarkNotReady implements [shutdown.ReadinessMarker].
func (r *Reporter) MarkNotReady(ctx context.Context, pod *v1.Pod) error {
	return r.mark(ctx, Marked{Pod: pod.Name})
}

// RestoreReadiness implements [shutdown.ReadinessMarker].
func (r *Reporter) RestoreReadiness(ctx context.Context, pod *v1.Pod) error {
	return r.mark(ctx, Marked{Pod: pod.Name, Ready: true})
}

// mark takes MarkTakes and records the call, even if it fails.
func (r *Reporter) mark(ctx context.Context, call Marked) error {
	err := times.Sleep(ctx, r.MarkTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.marked = append(r.marked, call)
	return err
}

// FlushPod implements [shutdown.StatusFlusher]. It takes FlushTakes and records the call, even if it fails.
func (r *Reporter) FlushPod(ctx context.Context, pod *v1.Pod) error {
	err := times.Sleep(ctx, r.FlushTakes)
	r.mu.Lock()
	defer r.mu.Unlock()
	if err == nil && r.FlushErr != nil {
		err = r.FlushErr(len(r.flushed))
	}
	r.flushed = append(r.flushed, Flushed{Final: pod, At: time.Now(), Err: err})
	return err
}

// Published returns the states of the completed calls of PublishNode in order.
func (r *Reporter) Published() []shutdown.NodeState {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.published)
}

// Marked returns the completed calls of MarkNotReady and RestoreReadiness in order.
func (r *Reporter) Marked() []Marked {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.marked)
}

// Flushed returns the completed calls of FlushPod in order.
func (r *Reporter) Flushed() []Flushed {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.flushed)
}
