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
	// publishTimeAlone bounds one call if nobody waits for a publication.
	publishTimeAlone = 5 * time.Second
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
	due      time.Time             // of the next call; the mutex of the outbox guards this and pause
	pause    time.Duration         // after that, if it fails
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

// startPublishing makes the call for the node state if it is due. There is one at a time, so that an
// older state never follows a newer one. It returns when the next one is due, zero if that is
// unknown.
func (s *sender) startPublishing() (next time.Time) {
	p, now := s.state, time.Now()
	if p == nil || s.publishing != nil {
		return time.Time{}
	}
	if now.Before(p.due) {
		return p.due
	}
	ctx, end := s.open.newAttempt(now.Add(s.publishTime))
	s.publishing = end
	s.open.calls.Go(func() string { return publishName }, func() {
		call.Guard(ctx, publishName, func() error { return s.publish(ctx, p.state) }, func(err error) { s.published(ctx, p, now, err) })
	})
	return time.Time{}
}

// published handles the result of a call for a node state. If the call was ended because its state
// is superseded or the outbox was closed, its error says nothing.
func (s *sender) published(ctx context.Context, p *Publication, begun time.Time, err error) {
	cause := context.Cause(ctx)
	counts := err != nil && (cause == nil || errors.Is(cause, call.ErrTimeSpent))
	if counts && p.lastErr.Swap(&err) == nil {
		klog.FromContext(ctx).Error(err, "Failed to publish the node state, will try again")
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	s.publishing(nil)
	s.publishing = nil
	p.due, p.pause = time.Now().Add(p.pause), min(2*p.pause, publishPauseMost)
	if err == nil {
		s.acknowledged(begun, 1)
	}
	if err == nil && s.state == p {
		s.state = nil
		p.complete(struct{}{}, nil)
	}
	s.fill()
}
