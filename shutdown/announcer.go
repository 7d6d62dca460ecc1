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
	// eventReason and the messages are those of the kubelet's node shutdown.
	eventReason      = "Shutdown"
	messageDetected  = "Shutdown manager detected shutdown event"
	messageCancelled = "Shutdown manager detected shutdown cancellation"
)

const (
	publishName = "Options.Reporter.PublishNode"
	// publishPause is the first pause after an attempt that has failed; it doubles.
	publishPause = 100 * time.Millisecond
	// publishAttempt is the longest call of the reporter where no time is kept for it.
	publishAttempt = 5 * time.Second
	// hearing is how much earlier than those who wait for it a call of the reporter ends,
	// so that they learn what was in its way.
	hearing = 20 * time.Millisecond
)

// errSuperseded is the end of a publication whose state is no longer true.
var errSuperseded = errors.New("a newer node state has to be published")

// announcer tells what becomes of the node: events, in their order, and the state that
// is true now. Nobody waits for a recorder, and for a reporter only who wants to.
type announcer struct {
	ctx      context.Context // of Run
	calls    *call.Group
	reporter Reporter      // nil: nothing is published
	events   EventRecorder // nil: nothing is recorded
	node     runtime.Object
	queue    *statuses.Queue // learns that the API server has answered
	attempt  time.Duration   // the longest call of the reporter

	mu       sync.Mutex // guards all below
	recorded *call.Future[struct{}]
	current  *publication // nil: none yet
}

// publication is one state of the node that is to be published.
type publication struct {
	*call.Future[struct{}]

	began     time.Time
	answers   uint64 // of the API server, before it
	supersede context.CancelCauseFunc

	mu      sync.Mutex // guards failure
	failure error      // of the last attempt; nil: there was none
}

func (p *publication) failed(err error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.failure = err
}

// trouble is why the last attempt has failed; nil: none has.
func (p *publication) trouble() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.failure
}

// record records an event on the node, after those before it.
func (a *announcer) record(eventtype, message string) {
	if a.events == nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	before := a.recorded
	a.recorded = call.Start(a.ctx, a.calls, "Options.Events", func(ctx context.Context) (struct{}, error) {
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

// publish has a state published, until it is accepted or superseded by the next one. It
// does not wait. Where there is no reporter the state counts as published.
func (a *announcer) publish(state NodeState) *publication {
	ctx, supersede := context.WithCancelCause(a.ctx)
	future, complete := call.NewFuture[struct{}]()
	p := &publication{Future: future, began: time.Now(), answers: a.queue.Answers(), supersede: supersede}
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
		var err error = &call.PanicError{Call: publishName} // stands if the reporter ends the goroutine
		defer func() {
			supersede(nil)
			complete(struct{}{}, err)
		}()
		if before != nil {
			<-before.Done() // one call at a time, in order
		}
		err = a.insist(ctx, p, state)
	})
	return p
}

// insist calls the reporter until the state is accepted or superseded, or Run ends.
func (a *announcer) insist(ctx context.Context, p *publication, state NodeState) error {
	for pause := publishPause; ctx.Err() == nil; pause = min(2*pause, backoffMost) {
		err := a.once(ctx, state)
		if err == nil {
			a.queue.Acknowledged()
			return nil
		}
		if ctx.Err() == nil && p.trouble() == nil {
			klog.FromContext(ctx).Error(err, "Failed to publish the node state, will try again")
		}
		p.failed(err)
		wait(ctx, pause, nil)
	}
	return context.Cause(ctx)
}

// once is one call of the reporter.
func (a *announcer) once(ctx context.Context, state NodeState) (err error) {
	ctx, cancel := context.WithTimeoutCause(ctx, a.attempt, errTimeSpent)
	defer cancel()
	call.Guard(ctx, publishName, func() error { return a.reporter.PublishNode(ctx, state) }, func(e error) { err = e })
	return err
}

// detected records that a shutdown was announced.
func (a *announcer) detected() { a.record(v1.EventTypeNormal, messageDetected) }

// cancelled tells that a shutdown will not happen.
func (a *announcer) cancelled() {
	a.record(v1.EventTypeNormal, messageCancelled)
	a.publish(NodeState{})
}

// await waits for the publication until a time, and gives what was in its way.
func (p *publication) await(ctx context.Context, until time.Time) error {
	_, err := p.Await(ctx, until)
	if err == nil {
		return nil
	}
	if trouble := p.trouble(); trouble != nil {
		err = trouble
	}
	return fmt.Errorf("failed to publish the node state: %w", err)
}
