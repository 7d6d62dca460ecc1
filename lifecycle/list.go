package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// lists makes the Running calls for a pod, one at a time. A request needs a call that begins after
// it, because an earlier call may have missed what has changed. All requests that come during a call
// therefore share the next call.
type lists struct {
	started      int         // how many calls have begun
	newestNumber int         // the number of the newest call that has succeeded
	newestRuns   []Container // what that call has listed
	inProgress   *list
	queued       *list // nil: nobody has requested one
	failed       error // the last failure that was logged; nil: none since the last success
	failures     int   // since the last success
	shared       bool  // an ID that several containers have was logged
}

// listFailed notes that a list has failed, and reports whether that is to be logged: the first failure, and
// each change. It locks the mutex.
func (p *pod) listFailed(err error) (isNews bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists.failures++
	isNews = p.lists.failed == nil || p.lists.failed.Error() != err.Error()
	p.lists.failed = err
	return isNews
}

// listsSucceeded notes that a list has succeeded, and returns how many had failed. It locks the mutex.
func (p *pod) listsSucceeded() (failures int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failures = p.lists.failures
	p.lists.failed, p.lists.failures = nil, 0
	return failures
}

// list is one call of Running.
type list struct {
	ctx     context.Context
	pod     *v1.Pod
	number  int // from 1
	done    chan struct{}
	running []Container
	err     error
}

// has reports whether the newest list has a run. If Began is zero on either side, any run with the ID
// matches.
func (l *lists) has(c Container) bool {
	return slices.ContainsFunc(l.newestRuns, func(other Container) bool {
		return other.ID == c.ID && (c.Began.IsZero() || other.Began.IsZero() || runOf(other) == runOf(c))
	})
}

// requestList returns a list that begins after this request: now, or when the call that is under way has
// ended. The mutex is held.
func (p *pod) requestList(ctx context.Context, apiPod *v1.Pod) *list {
	l := p.lists.queued
	if l == nil {
		l = &list{ctx: ctx, pod: apiPod, done: make(chan struct{})}
		p.lists.queued = l
	}
	if p.lists.inProgress == nil {
		p.startList()
	}
	return l
}

// startList makes the next call, if one was requested. The mutex is held.
func (p *pod) startList() {
	l := p.lists.queued
	p.lists.queued = nil
	switch {
	case l == nil:
		return
	case l.ctx.Err() != nil: // the terminator was closed
		l.err = context.Cause(l.ctx)
		close(l.done)
		return
	}
	p.lists.inProgress = l
	p.lists.started++
	l.number = p.lists.started
	ctx, cancel := context.WithCancelCause(l.ctx)
	slow := time.AfterFunc(p.terminator.opts.StopTimeoutSlack, func() { // does not wait for a runtime that ignores its context
		err := fmt.Errorf("the runtime did not list what runs within %v (StopTimeoutSlack)", p.terminator.opts.StopTimeoutSlack)
		cancel(err)
		p.finishList(l, nil, err)
	})
	var running []Container
	p.spawnAfter(ctx, p.lists.failed, "the list of the runtime", l.pod, "", func() (err error) {
		if pods := p.terminator.opts.Pods; pods != nil {
			running, err = pods.Running(ctx, l.pod)
		} else {
			running, err = p.terminator.opts.Runtime.Running(ctx, l.pod)
		}
		return err
	}, func(err error) {
		slow.Stop()
		p.finishList(l, running, err)
		cancel(nil)
	})
}

// finishList sets the answer of a list, applies it to the pod, and begins the next list. An answer that comes
// too late changes nothing.
func (p *pod) finishList(l *list, running []Container, err error) {
	shared := sharedIDs(running)
	if p.isNewShared(shared) {
		shared.log(l.ctx, l.pod)
	}
	p.mu.Lock()
	defer p.unlock()
	if isClosed(l.done) {
		return
	}
	for i := range running {
		if invalid := running[i].check(); err == nil && invalid != nil {
			err = fmt.Errorf("the list of the runtime: %w", invalid)
		}
	}
	l.running, l.err = running, err
	if p.lists.inProgress = nil; err == nil {
		p.lists.newestNumber, p.lists.newestRuns = l.number, running
		p.applyList(l, shared)
	}
	close(l.done)
	p.startList()
}

// isNewShared reports whether a list has an ID that several containers have, and none before had. It
// locks the mutex.
func (p *pod) isNewShared(shared idNames) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	wasShared := p.lists.shared
	p.lists.shared = shared != nil
	return shared != nil && !wasShared
}

// applyList brings the pod up to date with a list. A run that is not listed has ended. If the pod is
// being terminated, every listed run is stopped. The mutex is held.
func (p *pod) applyList(l *list, shared idNames) {
	t := p.termination
	stopsAll := t.inProgress() && t.usesLists
	for _, c := range l.running {
		s := p.stopOf(c)
		if stopsAll {
			s = t.stopContainer(c, s, stopOptions{oneAttempt: t.request.OneAttempt, message: t.request.Message, hooks: t.request.Hooks})
		}
		if s != nil {
			s.listedBy = l.number
		}
	}
	if stopsAll {
		t.share(shared)
	}
	p.dropEnded(func(s *stop) bool { return s.listedBy != l.number })
	for c := range p.starts {
		if c.returned && c.listedBy <= l.number { // the list shows what this start has started
			delete(p.starts, c)
		}
	}
	p.unblockStops()
}

// find returns the listed run with the ID of c and, unless it is zero, with c.Began.
func (l *list) find(c Container) (listed Container, found bool) {
	for _, other := range l.running {
		if other.ID == c.ID && (c.Began.IsZero() || runOf(other) == runOf(c)) {
			other.Name, other.PreStopDone = c.Name, c.PreStopDone || other.PreStopDone
			return other, true
		}
	}
	return Container{}, false
}

// wait waits for the answer of a list, at most until ctx ends, and returns its error.
func (l *list) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ctx.Done(): // the terminator was closed
		return context.Cause(l.ctx)
	}
}
