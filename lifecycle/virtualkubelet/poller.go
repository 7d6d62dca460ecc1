package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// minPollInterval is the least time between the beginnings of two lists, for lists that are requested before
// PollInterval has passed.
const minPollInterval = time.Second

var errNotListed = errors.New("the pod runtime has not listed its pods yet")

// poller lists the pods of a [PodRuntime]: once in each PollInterval, and sooner on request. Lists are numbered in
// the order in which they begin, so that a caller can wait for one that began after its request.
type poller struct {
	agent *agent

	startOnce     sync.Once
	firstListDone chan struct{} // closed after the first list
	requested     chan struct{} // of size 1: has an element if a list is requested

	mu      sync.Mutex // guards begun and lastErr
	begun   int        // the number of the newest list that has begun
	lastErr error      // of the last list; nil: it succeeded, or there was none

	orphans map[types.UID]time.Time // when orphans were first listed; only run uses it
}

func newPoller(a *agent) *poller {
	return &poller{agent: a, firstListDone: make(chan struct{}), requested: make(chan struct{}, 1)}
}

// start starts polling if it has not started yet. The calls have the values of ctx. With a [Runtime] the poller is
// nil, and start does nothing.
func (p *poller) start(ctx context.Context) {
	if p != nil {
		p.startOnce.Do(func() { p.agent.spawn(types.NamespacedName{Name: "(all)"}, func() { p.run(ctx) }) })
	}
}

// requestList makes run list soon, and returns the number of the first list that begins after the call.
func (p *poller) requestList() (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.requested <- struct{}{}:
	default:
	}
	return p.begun + 1
}

// beginList returns the number of a list that begins now, which satisfies all requests so far.
func (p *poller) beginList() (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.requested:
	default:
	}
	p.begun++
	return p.begun
}

// lastBegun returns the number of the last list that has begun. It may still be in progress.
func (p *poller) lastBegun() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// lastFailure returns why there is no new list: the error of the last one, or errNotListed.
func (p *poller) lastFailure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.lastErr != nil {
		return p.lastErr
	}
	return errNotListed
}

// hasListed reports whether the first list has arrived. With a [Runtime], the poller is nil and no list is
// needed.
func (p *poller) hasListed() bool { return p == nil || isClosed(p.firstListDone) }

// awaitFirstList waits until the pods of a PodRuntime are known. It returns at once with a [Runtime].
func (p *poller) awaitFirstList(ctx context.Context) error {
	if p.hasListed() {
		return nil
	}
	select {
	case <-p.firstListDone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", p.lastFailure(), context.Cause(ctx))
	case <-p.agent.ctx.Done():
		return fmt.Errorf("%w: %w", p.lastFailure(), lifecycle.ErrClosed)
	}
}

// run lists the pods once in each PollInterval, and sooner on request, but at most once in each minPollInterval, until
// the provider is closed.
func (p *poller) run(ctx context.Context) {
	ctx, cancel := p.agent.context(ctx)
	defer cancel()
	var listFailures failures
	for ctx.Err() == nil {
		began := time.Now()
		err := p.poll(ctx, began)
		listFailures.log(ctx, err, "Failed to list the pods of the pod runtime, will try again", "Listed the pods of the pod runtime after earlier failures")
		p.mu.Lock()
		p.lastErr = err
		p.mu.Unlock()
		select {
		case <-times.After(began.Add(p.agent.opts.PollInterval)):
			continue
		case <-p.requested: // the next list may begin after minPollInterval
		case <-ctx.Done():
		}
		select {
		case <-times.After(began.Add(min(minPollInterval, p.agent.opts.PollInterval))):
		case <-ctx.Done():
		}
	}
}
