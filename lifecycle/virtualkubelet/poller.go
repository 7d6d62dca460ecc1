package virtualkubelet

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/lifecycle"
)

const (
	// callTimeout bounds each call of a [PodRuntime] but Create, so that one that gets no answer is
	// made again.
	callTimeout = 30 * time.Second
	// createTimeout bounds Create.
	createTimeout = 2 * time.Minute
	// strangerTime is how long a pod that nobody has created here may be listed before it is
	// ended: virtual-kubelet creates every pod that the API server has meanwhile.
	strangerTime = time.Minute
)

var errNotListed = errors.New("the place has not told yet which pods it has")

// poller asks a [PodRuntime] once an interval for all pods, or a [RunningLister] for all containers.
type poller struct {
	*agent

	begun     sync.Once
	listed    chan struct{}           // closed after the first list
	strangers map[types.UID]time.Time // since when pods are listed that are not known; only run uses it
	failing   bool                    // the last call failed; only run uses it
}

// start starts to poll, once. ctx gives values.
func (p *poller) start(ctx context.Context) {
	if p.opts.Pods != nil || p.exits.lister != nil {
		p.begun.Do(func() { p.workers.spawn(pollerName(), func() { p.run(context.WithoutCancel(ctx)) }) })
	}
}

// pollerName is the name of the poller among those of pods.
func pollerName() types.NamespacedName { return types.NamespacedName{Name: "(poller)"} }

// isListed reports whether there was a list; without a PodRuntime none is needed.
func (p *poller) isListed() bool { return p.opts.Pods == nil || isClosed(p.listed) }

// await waits for the first list.
func (p *poller) await(ctx context.Context) error {
	if p.isListed() {
		return nil
	}
	select {
	case <-p.listed:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("%w: %w", errNotListed, context.Cause(ctx))
	case <-p.workers.closing:
		return fmt.Errorf("%w: %w", errNotListed, lifecycle.AgentStopping)
	}
}

// run polls until the agent stops.
func (p *poller) run(ctx context.Context) {
	ctx, cancel := p.workers.context(ctx, pollerName(), nil)
	defer cancel()
	ticker := time.NewTicker(p.opts.PollInterval)
	defer ticker.Stop()
	for ctx.Err() == nil {
		p.poll(ctx)
		select {
		case <-ticker.C:
		case <-ctx.Done():
		}
	}
}

// poll asks once.
func (p *poller) poll(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, callTimeout)
	defer cancel()
	asked := time.Now()
	err := guarded(ctx, "polling", func() error {
		if p.opts.Pods == nil {
			return p.pollRunning(ctx, asked)
		}
		list, err := p.opts.Pods.Statuses(ctx)
		if err == nil {
			p.take(ctx, list, asked)
		}
		return err
	})
	if err != nil && !p.failing && !p.workers.isClosed() {
		klog.FromContext(ctx).Error(err, "Failed to poll, which is tried again")
	}
	p.failing = err != nil
}

// take hands a list to the records.
func (p *poller) take(ctx context.Context, list []*v1.Pod, asked time.Time) {
	there := make(map[types.UID]*v1.Pod, len(list))
	for _, pod := range list {
		if pod == nil {
			continue
		}
		if twice := there[keyOf(pod)]; twice == nil || isTerminal(&twice.Status) { // one that runs counts
			there[keyOf(pod)] = pod
		}
	}
	for _, r := range p.pods.all() {
		r.remote().observe(there[r.key], asked)
		delete(there, r.key)
	}
	isFirst, strangers := !p.isListed(), map[types.UID]time.Time{}
	for key, pod := range there {
		since, known := p.strangers[key]
		switch {
		case isFirst:
			p.recover(ctx, pod, asked, false)
		case !known:
			strangers[key] = asked
		case asked.Sub(since) < strangerTime:
			strangers[key] = since
		default:
			p.recover(ctx, pod, asked, true)
		}
	}
	if p.strangers = strangers; isFirst {
		close(p.listed)
	}
}

// recover adds a pod that the place has and that no CreatePod has added. A stranger is ended.
func (p *poller) recover(ctx context.Context, pod *v1.Pod, asked time.Time, isStranger bool) {
	r := newRecord(ctx, p.agent, pod)
	r.desired.adopted = true
	if isStranger {
		_, _, _ = r.ender.setTerminating() // before CreatePod can find it
	}
	known, _ := p.pods.add(r)
	if known != nil {
		known.remote().observe(pod, asked)
		return
	}
	p.workers.spawn(r.name, r.notifier.run)
	r.remote().observe(pod, asked)
	if isStranger {
		p.workers.spawn(r.name, func() { _ = r.ender.end(r.ctx, r.remove(pod)) }) // fails only when the agent stops
	}
}

// safely calls code of the author that returns no error; a panic is one, and is logged.
func safely(ctx context.Context, name string, f func()) error {
	return guarded(ctx, name, func() error {
		f()
		return nil
	})
}

// guarded calls code of the author; a panic is an error.
func guarded(ctx context.Context, name string, f func() error) (err error) {
	call.Guard(ctx, name, f, func(failed error) { err = failed })
	return err
}
