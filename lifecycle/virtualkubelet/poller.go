package virtualkubelet

import (
	"cmp"
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
	caller

	provider *Provider

	startOnce     sync.Once
	firstListDone chan struct{} // closed after the first list
	requested     chan struct{} // of size 1: has an element if a list is requested

	mu    sync.Mutex // guards begun
	begun int        // the number of the newest list that has begun

	orphans map[types.UID]time.Time // when orphans were first listed; only run uses it
}

// newPoller returns a poller that has not started. If Options.Pods is nil, the provider has a [Runtime], and there is nothing
// to list: the first list counts as done, so that awaitFirstList does not wait.
func newPoller(provider *Provider) *poller {
	p := &poller{
		caller: caller{calls: &provider.calls}, provider: provider,
		firstListDone: make(chan struct{}), requested: make(chan struct{}, 1),
	}
	if provider.opts.Pods == nil {
		close(p.firstListDone)
	}
	return p
}

// start starts polling if it has not started yet. The calls of Statuses get the values of ctx.
func (p *poller) start(ctx context.Context) {
	if p.provider.opts.Pods != nil {
		p.startOnce.Do(func() { p.provider.spawn(types.NamespacedName{Name: "(all)"}, func() { p.run(ctx) }) })
	}
}

// requestList makes run list soon, and returns the number of the first list that begins after the call.
func (p *poller) requestList() (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.requested <- struct{}{}:
	default: // a list is requested already
	}
	return p.begun + 1
}

// beginList returns the number of a list that begins now, which satisfies all requests so far.
func (p *poller) beginList() (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.requested:
	default: // no list is requested
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
	return cmp.Or(p.lastError("Statuses"), errNotListed)
}

// hasListed reports whether the first list has arrived.
func (p *poller) hasListed() bool { return isClosed(p.firstListDone) }

// awaitFirstList waits until the pods of a PodRuntime are known.
func (p *poller) awaitFirstList(ctx context.Context) error {
	if p.hasListed() {
		return nil
	}
	select {
	case <-p.firstListDone:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", p.lastFailure(), context.Cause(ctx))
	case <-p.provider.ctx.Done():
		return fmt.Errorf("%w: %w", p.lastFailure(), lifecycle.ErrClosed)
	}
}

// run lists the pods once in each PollInterval, and sooner on request, but at most once in each minPollInterval, until
// the provider is closed.
func (p *poller) run(ctx context.Context) {
	ctx, cancel := p.provider.context(ctx)
	defer cancel()
	for ctx.Err() == nil {
		began := time.Now()
		p.poll(ctx, began)
		select {
		case <-times.After(began.Add(p.provider.opts.PollInterval)):
			continue
		case <-p.requested: // the next list may begin after minPollInterval
		case <-ctx.Done():
		}
		select {
		case <-times.After(began.Add(min(minPollInterval, p.provider.opts.PollInterval))):
		case <-ctx.Done():
		}
	}
}
