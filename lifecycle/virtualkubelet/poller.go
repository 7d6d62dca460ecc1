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
	// soonest is how long after the begin of a list the next one begins, if somebody asks for it
	// before the interval is over.
	soonest = time.Second
	// strangerTime is how long a pod that nobody has created here may be listed before it is
	// ended: virtual-kubelet creates every pod that the API server has meanwhile.
	strangerTime = time.Minute
)

var errNotListed = errors.New("the pod runtime has not listed its pods yet")

// poller asks a [PodRuntime] for all pods: once an interval, and sooner if somebody asks.
type poller struct {
	*agent

	begin  sync.Once
	first  chan struct{} // closed after the first list
	asked  chan struct{} // of size 1: has an element if somebody asks
	failed error         // why the last list failed; nil: it has not

	mu    sync.Mutex // guards begun and failed
	begun int        // how many lists have begun

	strangers map[types.UID]time.Time // since when pods are listed that are not known; only run uses it
}

func newPoller(a *agent) *poller {
	return &poller{agent: a, first: make(chan struct{}), asked: make(chan struct{}, 1)}
}

// start starts to poll, once. ctx gives values. With a [Runtime] the poller is nil, and nothing is
// polled.
func (p *poller) start(ctx context.Context) {
	if p != nil {
		p.begin.Do(func() { p.spawn(types.NamespacedName{Name: "(all)"}, func() { p.run(ctx) }) })
	}
}

// ask asks for a list, and returns the number of the first one that begins after the call.
func (p *poller) ask() (number int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	select {
	case p.asked <- struct{}{}:
	default:
	}
	return p.begun + 1
}

// beginList returns the number of a list that begins now. It answers all who have asked.
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

// lastFailure returns why there is no list.
func (p *poller) lastFailure() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.failed != nil {
		return p.failed
	}
	return errNotListed
}

// isListed reports whether there was a list; with a [Runtime] none is needed.
func (p *poller) isListed() bool { return p == nil || isClosed(p.first) }

// await waits for the first list.
func (p *poller) await(ctx context.Context) error {
	if p.isListed() {
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
	for failure := ""; ctx.Err() == nil; {
		began := time.Now()
		err := p.poll(ctx, began)
		failure = logFailure(ctx, err, failure, "Failed to list the pods of the pod runtime, which is tried again")
		p.mu.Lock()
		p.failed = err
		p.mu.Unlock()
		select {
		case <-time.After(time.Until(began.Add(p.opts.PollInterval))):
			continue
		case <-p.asked:
		case <-ctx.Done():
		}
		select {
		case <-time.After(time.Until(began.Add(min(soonest, p.opts.PollInterval)))):
		case <-ctx.Done():
		}
	}
}

// poll asks for one list, and hands it to the records.
func (p *poller) poll(ctx context.Context, began time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	number := p.beginList()
	var list []*v1.Pod
	err := guarded(ctx, "Statuses", func() (err error) {
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
		if twice := listed[pod.UID]; twice == nil || isTerminal(&twice.Status) { // one that runs counts
			listed[pod.UID] = pod
		}
	}
	p.take(ctx, listed, number, began)
	return nil
}

// take hands a list to the records.
func (p *poller) take(ctx context.Context, listed map[types.UID]*v1.Pod, number int, began time.Time) {
	for _, r := range p.pods.all() {
		r.whole().observe(listed[r.key], number)
		delete(listed, r.key)
	}
	isFirst, strangers := !p.isListed(), map[types.UID]time.Time{}
	for key, pod := range listed {
		since, known := p.strangers[key]
		switch {
		case isFirst:
			p.recover(ctx, pod, number, false)
		case !known:
			strangers[key] = began
		case began.Sub(since) < strangerTime:
			strangers[key] = since
		default:
			p.recover(ctx, pod, number, true)
		}
	}
	if p.strangers = strangers; isFirst {
		close(p.first)
	}
}

// recover adds a pod that the pod runtime has and that no CreatePod has added. A stranger is ended.
func (p *poller) recover(ctx context.Context, pod *v1.Pod, number int, isStranger bool) {
	r := newRecord(ctx, p.agent, pod)
	r.desired.adopted = true
	r.whole().runs = true
	if isStranger {
		_ = r.ender.setTerminating() // before CreatePod can find it
	}
	if known, _ := p.pods.add(r); known != nil {
		r.cancel()
		known.whole().observe(pod, number)
		return
	}
	p.spawn(r.name, r.notifier.run)
	r.whole().observe(pod, number)
	if isStranger {
		p.spawn(r.name, func() { _ = r.ender.end(r.ctx, r.remove(pod)) }) // fails only when the provider is closed
	}
}
