package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	// minPollInterval is the least time between the beginnings of two lists, for lists that are requested before
	// PollInterval has passed.
	minPollInterval = time.Second
	// orphanTimeout is how long an orphan may run: a pod that is listed but was never passed to CreatePod. It is
	// then stopped. virtual-kubelet calls CreatePod within this time for every pod that the API server has.
	orphanTimeout = time.Minute
)

var errNotListed = errors.New("the pod runtime has not listed its pods yet")

// poller lists the pods of a [PodRuntime]: once in each PollInterval, and sooner on request. Lists are numbered in
// the order in which they begin, so that a caller can wait for one that began after its request.
type poller struct {
	*agent

	startOnce sync.Once
	first     chan struct{} // closed after the first list
	asked     chan struct{} // of size 1: has an element if a list is requested

	mu      sync.Mutex // guards begun and lastErr
	begun   int        // the number of the last list that has begun
	lastErr error      // of the last list; nil: it succeeded, or there was none

	orphans map[types.UID]time.Time // when orphans were first listed; only run uses it
}

func newPoller(a *agent) *poller {
	return &poller{agent: a, first: make(chan struct{}), asked: make(chan struct{}, 1)}
}

// start starts polling if it has not started yet. The calls have the values of ctx. With a [Runtime] the poller is
// nil, and start does nothing.
func (p *poller) start(ctx context.Context) {
	if p != nil {
		p.startOnce.Do(func() { p.spawn(types.NamespacedName{Name: "(all)"}, func() { p.run(ctx) }) })
	}
}

// requestList makes run list soon, and returns the number of the first list that begins after the call.
func (p *poller) requestList() (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.asked <- struct{}{}:
	default:
	}
	return p.begun + 1
}

// beginList returns the number of a list that begins now, which satisfies all requests so far.
func (p *poller) beginList() (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case <-p.asked:
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
func (p *poller) hasListed() bool { return p == nil || isClosed(p.first) }

// awaitFirstList waits until the pods of a PodRuntime are known. It returns at once with a [Runtime].
func (p *poller) awaitFirstList(ctx context.Context) error {
	if p.hasListed() {
		return nil
	}
	select {
	case <-p.first:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", p.lastFailure(), context.Cause(ctx))
	case <-p.ctx.Done():
		return fmt.Errorf("%w: %w", p.lastFailure(), lifecycle.ErrClosed)
	}
}

// run lists the pods once in each PollInterval, and sooner on request, but at most once in each minPollInterval, until
// the provider is closed.
func (p *poller) run(ctx context.Context) {
	ctx, cancel := p.context(ctx)
	defer cancel()
	for failed := (failures{}); ctx.Err() == nil; {
		began := time.Now()
		err := p.poll(ctx, began)
		failed.log(ctx, err, "Failed to list the pods of the pod runtime, will try again", "Listed the pods of the pod runtime after earlier failures")
		p.mu.Lock()
		p.lastErr = err
		p.mu.Unlock()
		select {
		case <-times.After(began.Add(p.opts.PollInterval)):
			continue
		case <-p.asked: // wait for minPollInterval only, below
		case <-ctx.Done():
		}
		select {
		case <-times.After(began.Add(min(minPollInterval, p.opts.PollInterval))):
		case <-ctx.Done():
		}
	}
}

// poll gets one list, checks it and passes it to the records. A list with an invalid pod is an error as a whole,
// because a pod that is missing from a list counts as ended. began is when the list begins.
func (p *poller) poll(ctx context.Context, began time.Time) error {
	number := p.beginList()
	var list []*v1.Pod
	err := p.callWithin(ctx, "Statuses", types.NamespacedName{}, callTimeout, p.lastFailure(), func(ctx context.Context) (err error) {
		list, err = p.opts.Pods.Statuses(ctx)
		return err
	})
	if err != nil {
		return err
	}
	listed := make(map[types.UID]*v1.Pod, len(list))
	for i, pod := range list {
		switch {
		case pod == nil:
			return fmt.Errorf("the list of Statuses: pod %d is nil", i)
		case pod.UID == "":
			return fmt.Errorf("the list of Statuses: pod %s: UID: must be set", nameOf(pod))
		}
		if other := listed[pod.UID]; other == nil || isTerminal(&other.Status) { // of two with one UID, the one that runs counts
			listed[pod.UID] = pod
		}
	}
	p.distribute(ctx, listed, number, began)
	return nil
}

// distribute passes a list to the records of all known pods, also of those that it lacks. Unknown pods of the first
// list come from a previous agent and are adopted. Unknown pods of later lists are orphans, which are stopped
// if they are still listed and unknown orphanTimeout later. number and began are those of the list. It changes
// listed.
func (p *poller) distribute(ctx context.Context, listed map[types.UID]*v1.Pod, number int, began time.Time) {
	for _, r := range p.pods.all() {
		r.whole().observeList(listed[r.key], number)
		delete(listed, r.key)
	}
	isFirst, orphans := !p.hasListed(), map[types.UID]time.Time{} // orphans: when each was first listed
	for key, pod := range listed {                                // the unknown ones
		since, isKnownOrphan := p.orphans[key]
		switch {
		case isFirst:
			p.adopt(ctx, pod, number, false)
		case !isKnownOrphan:
			orphans[key] = began
		case began.Sub(since) < orphanTimeout:
			orphans[key] = since
		default: // it has run for too long: stop it
			p.adopt(ctx, pod, number, true)
		}
	}
	if p.orphans = orphans; isFirst {
		close(p.first)
	}
}

// adopt adds a listed pod that CreatePod has not added, and updates it from the list with this number. An orphan, a
// pod that the API server seems not to have, is stopped at once.
func (p *poller) adopt(ctx context.Context, pod *v1.Pod, number int, isOrphan bool) {
	added := newRecord(ctx, p.agent, pod)
	added.desired.adopted = true // its deletion may be older than this process
	added.whole().runs = true    // so that observeList ends a pod that is listed as ended
	if isOrphan {
		_ = added.ender.markTerminating() // before CreatePod can find the pod, so that CreatePod refuses it
	}
	if known, _ := p.pods.add(added); known != nil { // CreatePod has added the pod meanwhile
		added.cancel()
		known.whole().observeList(pod, number)
		return
	}
	p.spawn(added.name, added.notifier.run)
	added.whole().observeList(pod, number)
	if isOrphan {
		p.spawn(added.name, func() { _ = added.ender.end(added.ctx, added.markDeleted(pod)) }) // fails only after Close
	}
}
