package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
)

const (
	publishName = "Options.Reporter.PublishNode"
	// publishAttempt bounds one call if nobody waits for a publication.
	publishAttempt = 5 * time.Second
	// publishLead is how much earlier a call ends than the wait for it, so that the one who waits
	// sees the error of the call.
	publishLead = 20 * time.Millisecond
	// publishPauseFirst and publishPauseMost bound the pause after a failed call. It doubles.
	publishPauseFirst, publishPauseMost = 100 * time.Millisecond, 30 * time.Second
)

// errSuperseded ends the publication of a state that is no longer true.
var errSuperseded = errors.New("a newer node state has to be published")

// Publication is a state of the node that is to be published.
type Publication struct {
	// StartedAt is when Publish was called.
	StartedAt time.Time

	state    any
	done     *call.Future[struct{}]
	complete func(struct{}, error)
	server   *server
	answers  uint64                // of the API server before
	lastErr  atomic.Pointer[error] // of the last failed call; nil: none has failed
}

func newPublication(state any, s *server) *Publication {
	p := &Publication{StartedAt: time.Now(), state: state, server: s, answers: s.answers.Load()}
	p.done, p.complete = call.NewFuture[struct{}]()
	return p
}

// Await waits until the state is published, at most until a time or the end of ctx. The error of
// a wait in vain wraps that of the last call; if none has failed it says why the wait has ended,
// for example that the state was superseded.
func (p *Publication) Await(ctx context.Context, until time.Time) error {
	_, err := p.done.Await(ctx, until)
	if err == nil {
		return nil
	}
	if last := p.lastErr.Load(); last != nil {
		err = *last
	}
	return fmt.Errorf("failed to publish the node state: %w", err)
}

// AnsweredSince reports whether the API server has acknowledged anything since Publish was
// called.
func (p *Publication) AnsweredSince() bool { return p.server.answers.Load() > p.answers }

// nodeState is the newest node state, until it is published. There is one call at a time, so that
// an older state never follows a newer one. The mutex of the outbox guards it.
type nodeState struct {
	publish func(ctx context.Context, state any) error // nil: nothing is published
	attempt time.Duration                              // bounds one call
	owed    *Publication
	due     time.Time               // of the next call for it
	pause   time.Duration           // after that, if it fails
	end     context.CancelCauseFunc // of the call that is under way; nil: none is
}

func newNodeState(o Options) *nodeState {
	n := &nodeState{publish: o.Publish, attempt: publishAttempt}
	if o.PublishAttempt > 2*publishLead {
		n.attempt = o.PublishAttempt - publishLead
	}
	return n
}

// owe makes a state the one to publish.
func (n *nodeState) owe(p *Publication) {
	if n.publish == nil {
		p.complete(struct{}{}, nil)
		return
	}
	if n.owed != nil {
		n.owed.complete(struct{}{}, errSuperseded)
	}
	if n.end != nil {
		n.end(errSuperseded)
	}
	n.owed, n.due, n.pause = p, time.Time{}, publishPauseFirst
}

// landed records the result of a call for a state.
func (n *nodeState) landed(p *Publication, err error) {
	n.end(nil)
	n.end = nil
	switch {
	case n.owed != p: // a newer state waits, which is due at once
	case err == nil:
		n.owed = nil
		p.complete(struct{}{}, nil)
	default:
		n.due = time.Now().Add(n.pause)
		n.pause = min(2*n.pause, publishPauseMost)
	}
}

// startPublishing makes the call for the node state if it is due. It returns when the next one is,
// zero if that is unknown.
func (s *sender) startPublishing() (next time.Time) {
	n, now := s.node, time.Now()
	if n.owed == nil || n.end != nil {
		return time.Time{}
	}
	if now.Before(n.due) {
		return n.due
	}
	p := n.owed
	var ctx context.Context
	ctx, n.end = s.open.newAttempt(now.Add(n.attempt))
	s.open.calls.Go(func() string { return publishName }, func() {
		call.Guard(ctx, publishName, func() error { return n.publish(ctx, p.state) }, func(err error) { s.landState(ctx, p, now, err) })
	})
	return time.Time{}
}

// landState handles the result of a call for the node state. If the call was ended because its
// state is superseded or the outbox was closed, its error says nothing.
func (s *sender) landState(ctx context.Context, p *Publication, begun time.Time, err error) {
	cause := context.Cause(ctx)
	counts := err != nil && (cause == nil || errors.Is(cause, call.ErrTimeSpent))
	if counts && p.lastErr.Swap(&err) == nil {
		klog.FromContext(ctx).Error(err, "Failed to publish the node state, will try again")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if err == nil {
		s.acknowledged(begun, 1)
	}
	s.node.landed(p, err)
	s.fill()
}
