package lifecycle

import (
	"context"
	"fmt"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
)

// lists makes the Running calls for a pod, one at a time. A request needs a call that starts after it,
// because an earlier call may miss the latest change. All requests that arrive during a call share the
// next one.
type lists struct {
	started      int         // number of calls started
	newestNumber int         // number of the newest call that succeeded
	newestRuns   []Container // what that call returned
	inProgress   *list
	queued       *list // nil: not requested
	failed       error // the newest failure since the last success; nil: none
	failures     int   // number of failures since the last success
}

// listFailed notes the failure of a list, and reports whether it must be logged: if it is the first, or
// differs from the one before. It locks the mutex.
func (p *pod) listFailed(err error) (isNews bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.lists.failures++
	isNews = p.lists.failed == nil || p.lists.failed.Error() != err.Error()
	p.lists.failed = err
	return isNews
}

// listSucceeded notes the success of a list, and returns the number of failures before it. It locks the
// mutex.
func (p *pod) listSucceeded() (failures int) {
	p.mu.Lock()
	defer p.mu.Unlock()
	failures = p.lists.failures
	p.lists.failed, p.lists.failures = nil, 0
	return failures
}

// list is one Running call.
type list struct {
	ctx     context.Context
	pod     *v1.Pod
	number  int // from 1, in the order of the calls
	done    chan struct{}
	running []Container
	err     error
}

// has reports whether the newest list has the run. If Began is zero on either side, any run with the ID
// matches.
func (l *lists) has(c Container) bool {
	return slices.ContainsFunc(l.newestRuns, func(other Container) bool {
		return other.ID == c.ID && (c.Began.IsZero() || other.Began.IsZero() || runOf(other) == runOf(c))
	})
}

// requestList returns a list that is requested now, or when the call in progress returns. The caller
// holds the mutex.
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

// startList makes the next call, if one is queued. The caller holds the mutex.
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
	slow := time.AfterFunc(p.terminator.opts.StopTimeoutSlack, func() { // the runtime may ignore its context
		err := fmt.Errorf("the runtime did not list the pod's containers within %v (StopTimeoutSlack)", p.terminator.opts.StopTimeoutSlack)
		cancel(err)
		p.finishList(l, nil, err)
	})
	var running []Container
	p.spawnAfter(ctx, p.lists.failed, "the runtime's list", l.pod, "", func() (err error) {
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

// finishList sets a list's result, applies it to the pod, and starts the next list. It ignores a result
// that arrives after the timeout.
func (p *pod) finishList(l *list, running []Container, err error) {
	p.mu.Lock()
	defer p.unlock()
	if isClosed(l.done) {
		return
	}
	if invalid := checkContainers(running); err == nil && invalid != nil {
		err = fmt.Errorf("the runtime's list: %w", invalid)
	}
	l.running, l.err = running, err
	if p.lists.inProgress = nil; err == nil {
		p.lists.newestNumber, p.lists.newestRuns = l.number, running
		p.applyList(l)
	}
	close(l.done)
	p.startList()
}

// applyList updates the pod from a list. A run that is not listed has ended. During a termination,
// every listed run is stopped. The caller holds the mutex.
func (p *pod) applyList(l *list) {
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
	p.dropEnded(func(s *stop) bool { return s.listedBy != l.number })
	for c := range p.starts {
		if c.returned && c.listedBy <= l.number { // the list includes what this start created
			delete(p.starts, c)
		}
	}
	p.unblockStops()
}

// find returns the listed run with c.ID and, unless it is zero, with c.Began.
func (l *list) find(c Container) (listed Container, found bool) {
	for _, other := range l.running {
		if other.ID == c.ID && (c.Began.IsZero() || runOf(other) == runOf(c)) {
			other.Name, other.PreStopDone = c.Name, c.PreStopDone || other.PreStopDone
			return other, true
		}
	}
	return Container{}, false
}

// wait waits for the list until ctx ends, and returns its error.
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
