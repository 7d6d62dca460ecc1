package outbox

import (
	"context"
	"errors"
	"fmt"
	"sync"
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
	answers  uint64 // of the API server before

	mu      sync.Mutex // guards lastErr
	lastErr error      // of the last failed call; nil: none has failed
}

// Await waits until the state is published, at most until a time or the end of ctx. The error of
// a wait in vain wraps that of the last call; if none has failed it says why the wait has ended,
// for example that the state was superseded.
func (p *Publication) Await(ctx context.Context, until time.Time) error {
	_, err := p.done.Await(ctx, until)
	if err == nil {
		return nil
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastErr != nil {
		err = p.lastErr
	}
	return fmt.Errorf("failed to publish the node state: %w", err)
}

// AnsweredSince reports whether the API server has acknowledged anything since Publish was
// called.
func (p *Publication) AnsweredSince() bool { return p.server.count() > p.answers }

// fail records the error of a call and reports whether it is the first one.
func (p *Publication) fail(err error) (first bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	first = p.lastErr == nil
	p.lastErr = err
	return first
}

// nodeState publishes the newest node state while the outbox is open. It makes one call at a
// time, so that an older state never follows a newer one.
type nodeState struct {
	publish      func(ctx context.Context, state any) error // nil: nothing is published
	attempt      time.Duration
	server       *server
	acknowledged func(begun time.Time, requests int) // is told of each call that succeeded

	mu    sync.Mutex // guards all below
	open  *opening   // nil: nothing is sent
	owed  *Publication
	pause time.Duration           // before the next call for it, if one fails
	end   context.CancelCauseFunc // of the call that is under way; nil: none is
	timer *time.Timer             // of the next call; nil: none was ever planned
}

func newNodeState(o Options, s *server, acknowledged func(begun time.Time, requests int)) *nodeState {
	attempt := publishAttempt
	if o.PublishAttempt > 2*publishLead {
		attempt = o.PublishAttempt - publishLead
	}
	return &nodeState{publish: o.Publish, attempt: attempt, server: s, acknowledged: acknowledged}
}

// owe makes a state the one to publish.
func (n *nodeState) owe(state any) *Publication {
	future, complete := call.NewFuture[struct{}]()
	p := &Publication{StartedAt: time.Now(), state: state, done: future, complete: complete, server: n.server, answers: n.server.count()}
	if n.publish == nil {
		complete(struct{}{}, nil)
		return p
	}
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.owed != nil {
		n.owed.complete(struct{}{}, errSuperseded)
	}
	if n.end != nil {
		n.end(errSuperseded)
	}
	n.owed, n.pause = p, publishPauseFirst
	n.start()
	return p
}

// join lets the state be published during an opening.
func (n *nodeState) join(op *opening) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.open = op
	n.start()
}

// leave ends that. The context of the opening has ended before.
func (n *nodeState) leave(op *opening) {
	n.mu.Lock()
	defer n.mu.Unlock()
	if n.open == op {
		n.open = nil
		n.stopTimer()
	}
}

func (n *nodeState) stopTimer() {
	if n.timer != nil {
		n.timer.Stop()
	}
}

// start makes the next call now, unless one is under way. The mutex is held.
func (n *nodeState) start() {
	n.stopTimer()
	if n.open == nil || n.owed == nil || n.end != nil {
		return
	}
	p, begun := n.owed, time.Now()
	ctx, end := context.WithCancelCause(n.open.ctx)
	ctx, stop := context.WithDeadlineCause(ctx, begun.Add(n.attempt), call.ErrTimeSpent)
	n.end = end
	n.open.calls.Go(func() string { return publishName }, func() {
		defer stop()
		call.Guard(ctx, publishName, func() error { return n.publish(ctx, p.state) }, func(err error) { n.ended(ctx, p, begun, err) })
	})
}

// ended handles the result of a call. If the call was ended because its state is superseded or
// the outbox was closed, its error says nothing.
func (n *nodeState) ended(ctx context.Context, p *Publication, begun time.Time, err error) {
	if cause := context.Cause(ctx); err != nil && (cause == nil || errors.Is(cause, call.ErrTimeSpent)) && p.fail(err) {
		klog.FromContext(ctx).Error(err, "Failed to publish the node state, will try again")
	}
	if err == nil {
		n.acknowledged(begun, 1)
	}
	n.endCall(p, err == nil)
}

// endCall ends the call for a publication and plans the next one.
func (n *nodeState) endCall(p *Publication, accepted bool) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.end(nil)
	n.end = nil
	switch {
	case n.owed != p: // a newer state waits, which has its call at once
		n.start()
	case accepted:
		n.owed = nil
		p.complete(struct{}{}, nil)
	case n.open != nil:
		n.timer = time.AfterFunc(n.pause, func() {
			n.mu.Lock()
			defer n.mu.Unlock()
			n.start()
		})
		n.pause = min(2*n.pause, publishPauseMost)
	}
}
