package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	// minPollInterval is the time between the beginnings of two lists if a list is requested before
	// PollInterval has passed.
	minPollInterval = time.Second
	// orphanTimeout is how long an orphan, a pod that is listed and was not created here, may run.
	// virtual-kubelet creates every pod that the API server has within this time.
	orphanTimeout = time.Minute
)

var errNotListed = errors.New("the pod runtime has not listed its pods yet")

// poller lists the pods of a [PodRuntime]: once in each PollInterval, and sooner on request.
type poller struct {
	*agent

	begin  sync.Once
	first  chan struct{} // closed after the first list
	asked  chan struct{} // of size 1: has an element if a list is requested
	failed error         // of the last list

	mu    sync.Mutex // guards begun and failed
	begun int        // the number of the last list that has begun

	orphans map[types.UID]time.Time // when orphans were first listed; only run uses it
}

func newPoller(a *agent) *poller {
	return &poller{agent: a, first: make(chan struct{}), asked: make(chan struct{}, 1)}
}

// start starts polling once, with the values of ctx. With a [Runtime] the poller is nil, and start does
// nothing.
func (p *poller) start(ctx context.Context) {
	if p != nil {
		p.begin.Do(func() { p.spawn(types.NamespacedName{Name: "(all)"}, func() { p.run(ctx) }) })
	}
}

// request requests a list, and returns the number of the first one that begins after the call.
func (p *poller) request() (number int) {
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

// newest returns the number of the last list that has begun.
func (p *poller) newest() int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.begun
}

// lastFailure returns why there is no new list.
func (p *poller) lastFailure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	return errNotListed
}

// hasListed reports whether the first list has arrived. With a [Runtime], the poller is nil and no list is
// needed.
func (p *poller) hasListed() bool { return p == nil || isClosed(p.first) }

// await waits for the first list.
func (p *poller) await(ctx context.Context) error {
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

// run polls until the provider is closed.
func (p *poller) run(ctx context.Context) {
	ctx, cancel := p.context(ctx)
	defer cancel()
	for failed := (failures{}); ctx.Err() == nil; {
		began := time.Now()
		err := p.poll(ctx, began)
		failed.log(ctx, err, "Failed to list the pods of the pod runtime, will try again", "Listed the pods of the pod runtime after earlier failures")
		p.mu.Lock()
		p.failed = err
		p.mu.Unlock()
		select {
		case <-after(began.Add(p.opts.PollInterval)):
			continue
		case <-p.asked:
		case <-ctx.Done():
		}
		select {
		case <-after(began.Add(min(minPollInterval, p.opts.PollInterval))):
		case <-ctx.Done():
		}
	}
}

// after returns a channel that delivers a time at t, or that is closed if t has passed.
func after(t time.Time) <-chan time.Time {
	if left := time.Until(t); left > 0 {
		return time.After(left)
	}
	passed := make(chan time.Time)
	close(passed)
	return passed
}

// poll gets one list and passes it to the records.
func (p *poller) poll(ctx context.Context, began time.Time) error {
	number := p.beginList()
	var list []*v1.Pod
	err := p.bounded(ctx, "Statuses", types.NamespacedName{}, callTimeout, p.lastFailure(), func(ctx context.Context) (err error) {
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
		if twice := listed[pod.UID]; twice == nil || isTerminal(&twice.Status) { // the one that runs wins
			listed[pod.UID] = pod
		}
	}
	p.distribute(ctx, listed, number, began)
	return nil
}

// distribute passes a list to the records. It adopts the unknown pods of the first list, and ends unknown
// pods of later lists after orphanTimeout.
func (p *poller) distribute(ctx context.Context, listed map[types.UID]*v1.Pod, number int, began time.Time) {
	for _, r := range p.pods.all() {
		r.whole().observe(listed[r.key], number)
		delete(listed, r.key)
	}
	isFirst, orphans := !p.hasListed(), map[types.UID]time.Time{}
	for key, pod := range listed {
		since, known := p.orphans[key]
		switch {
		case isFirst:
			p.adopt(ctx, pod, number, false)
		case !known:
			orphans[key] = began
		case began.Sub(since) < orphanTimeout:
			orphans[key] = since
		default:
			p.adopt(ctx, pod, number, true)
		}
	}
	if p.orphans = orphans; isFirst {
		close(p.first)
	}
}

// adopt adds a listed pod that CreatePod has not added. An orphan is ended.
func (p *poller) adopt(ctx context.Context, pod *v1.Pod, number int, isOrphan bool) {
	r := newRecord(ctx, p.agent, pod)
	r.desired.adopted = true
	r.whole().runs = true
	if isOrphan {
		_ = r.ender.setTerminating() // before CreatePod can find the pod
	}
	if known, _ := p.pods.add(r); known != nil {
		r.cancel()
		known.whole().observe(pod, number)
		return
	}
	p.spawn(r.name, r.notifier.run)
	r.whole().observe(pod, number)
	if isOrphan {
		p.spawn(r.name, func() { _ = r.ender.end(r.ctx, r.markDeleted(pod)) }) // fails only after Close
	}
}
