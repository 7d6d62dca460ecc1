package shutdown

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/shutdown/internal/call"
	"github.com/kubegrace/kubegrace/shutdown/internal/statuses"
)

const (
	// eventReason and the two messages are those of the kubelet's node shutdown.
	eventReason      = "Shutdown"
	messageDetected  = "Shutdown manager detected shutdown event"
	messageCancelled = "Shutdown manager detected shutdown cancellation"
)

const (
	publishName = "Options.Reporter.PublishNode"
	// publishPause is the pause after the first failed attempt. It doubles after each.
	publishPause = 100 * time.Millisecond
	// publishAttempt bounds one call of PublishNode if the plan reserves no time for it.
	publishAttempt = 5 * time.Second
	// publishLead is how much earlier a call of PublishNode ends than the wait for it, so that
	// the one who waits sees the error of the call.
	publishLead = 20 * time.Millisecond
)

// errSuperseded ends the publication of a state that is no longer true.
var errSuperseded = errors.New("a newer node state has to be published")

// announcer tells the cluster about the node: it records events, in order, and publishes the
// newest node state. It works in goroutines of its own. A drain waits for a publication only
// through [publication.await].
type announcer struct {
	ctx      context.Context // of Run
	calls    *call.Group
	reporter Reporter      // nil: nothing is published
	events   EventRecorder // nil: nothing is recorded
	node     runtime.Object
	queue    *statuses.Queue // is told that the API server has answered
	attempt  time.Duration   // bounds one call of PublishNode

	mu        sync.Mutex // guards all below
	lastEvent *call.Future[struct{}]
	current   *publication // nil: none yet
}

// publication is one state of the node, from the request to publish it until it is accepted.
type publication struct {
	*call.Future[struct{}]

	startedAt     time.Time
	answersBefore uint64 // of the API server before this publication
	supersede     context.CancelCauseFunc

	mu      sync.Mutex // guards failure
	lastErr error      // of the last failed attempt; nil: none has failed
}

func (p *publication) setLastError(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lastErr = err
}

// lastError returns the error of the last failed attempt, or nil if none has failed.
func (p *publication) lastError() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.lastErr
}

// recordEvent records an event on the node after all earlier ones.
func (a *announcer) recordEvent(eventtype, message string) {
	if a.events == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.lastEvent
	a.lastEvent = call.Start(a.ctx, a.calls, "Options.Events", func(ctx context.Context) (struct{}, error) {
		if before != nil {
			select {
			case <-before.Done():
			case <-ctx.Done():
			}
		}
		a.events.Event(a.node, eventtype, eventReason, message)
		return struct{}{}, nil
	})
}

// publish starts to publish a state and does not wait. The attempts go on until the reporter
// accepts the state or a newer state supersedes it. Without a reporter the publication is
// complete at once.
func (a *announcer) publish(state NodeState) *publication {
	ctx, supersede := context.WithCancelCause(a.ctx)
	future, complete := call.NewFuture[struct{}]()
	p := &publication{Future: future, startedAt: time.Now(), answersBefore: a.queue.Answers(), supersede: supersede}
	a.mu.Lock()
	before := a.current
	a.current = p
	a.mu.Unlock()
	if a.reporter == nil {
		supersede(nil)
		complete(struct{}{}, nil)
		return p
	}
	if before != nil {
		before.supersede(errSuperseded)
	}
	a.calls.Go(func() string { return publishName }, func() {
		var err error = &call.PanicError{Call: publishName} // stays if the reporter ends the goroutine
		defer func() {
			supersede(nil)
			complete(struct{}{}, err)
		}()
		if before != nil {
			<-before.Done() // one call at a time, in order
		}
		err = a.publishUntilAccepted(ctx, p, state)
	})
	return p
}

// publishUntilAccepted calls the reporter until it accepts the state, the state is superseded, or
// Run ends.
func (a *announcer) publishUntilAccepted(ctx context.Context, p *publication, state NodeState) error {
	for pause := publishPause; ctx.Err() == nil; pause = min(2*pause, backoffMost) {
		err := a.publishOnce(ctx, state)
		if err == nil {
			a.queue.Acknowledged()
			return nil
		}
		if ctx.Err() == nil && p.lastError() == nil {
			klog.FromContext(ctx).Error(err, "Failed to publish the node state, will try again")
		}
		p.setLastError(err)
		wait(ctx, pause, nil)
	}
	return context.Cause(ctx)
}

// publishOnce calls the reporter once.
func (a *announcer) publishOnce(ctx context.Context, state NodeState) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.attempt, errTimeSpent)
	defer cancel()
	call.Guard(ctx, publishName, func() error { return a.reporter.PublishNode(ctx, state) }, func(e error) { err = e })
	return err
}

// recordDetected records the event of an announced shutdown.
func (a *announcer) recordDetected() { a.recordEvent(v1.EventTypeNormal, messageDetected) }

// announceCancelled records the event of a cancelled shutdown and publishes that the node does
// not shut down.
func (a *announcer) announceCancelled() {
	a.recordEvent(v1.EventTypeNormal, messageCancelled)
	a.publish(NodeState{})
}

// await waits for the publication until a time. If that is in vain it returns the error of the
// last attempt.
func (p *publication) await(ctx context.Context, until time.Time) error {
	_, err := p.Await(ctx, until)
	if err == nil {
		return nil
	}
	if trouble := p.lastError(); trouble != nil {
		err = trouble
	}
	return fmt.Errorf("failed to publish the node state: %w", err)
}
