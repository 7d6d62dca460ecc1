package lifecycle

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"
)

// lists makes the Running calls for a pod, one at a time. A list that is requested during a call comes from
// the next call, because the one in progress may miss the latest change. All requests that arrive during a
// call share the next one.
type lists struct {
	started      int         // number of calls begun
	newestNumber int         // number of the newest call that succeeded
	newestRuns   []Container // what that call returned
	inProgress   *listCall
	queued       *listCall // is made when the one in progress has returned; nil: none is requested
	failure      error     // the newest failure since the last success; nil: none
	failures     int       // number of failures since the last success
}

// logList logs that a list has failed with err, unless the previous list failed with the same text. With nil it logs the first
// success after failures. It does not log that Close has cancelled the list, or that the runtime cannot list at all. logList
// locks the mutex.
func (p *podState) logList(list *listCall, err error) {
	isCancelled := list.ctx.Err() != nil && (errors.Is(err, context.Canceled) || errors.Is(err, CauseTerminatorClosed))
	if isCancelled || errors.Is(err, errors.ErrUnsupported) {
		return
	}
	p.mu.Lock()
	previousErr, failures := p.lists.failure, p.lists.failures
	p.lists.failure, p.lists.failures = err, failures+1
	if err == nil {
		p.lists.failures = 0
	}
	p.mu.Unlock()

	isRepeated := err != nil && previousErr != nil && err.Error() == previousErr.Error()
	switch logger := klog.FromContext(list.ctx).WithValues("pod", klog.KObj(list.pod)); {
	case err == nil && previousErr != nil:
		logger.Info("Listed the pod's containers after earlier failures", "failures", failures)
	case err != nil && !isRepeated:
		logger.Error(err, "Failed to list the pod's containers")
	}
}

// listCall is one call of Runtime.Running, or of PodStopper.Running: queued, in progress or returned.
type listCall struct {
	ctx     context.Context
	pod     *v1.Pod
	number  int           // from 1, in the order of the calls; 0: not begun
	done    chan struct{} // closed when the fields below are set
	running []Container
	err     error
}

// requestList returns a list that begins after this call: at once or, if a list is in progress, when that has returned.
// The caller holds the mutex, and must unlock it before it waits for the list (listCall.wait).
func (p *podState) requestList(ctx context.Context, apiPod *v1.Pod) *listCall {
	list := p.lists.queued
	if list == nil {
		list = &listCall{ctx: ctx, pod: apiPod, done: make(chan struct{})}
		p.lists.queued = list
	}
	if p.lists.inProgress == nil {
		p.beginQueuedList()
	}
	return list
}

// beginQueuedList begins the queued list, if there is one. The caller holds the mutex.
func (p *podState) beginQueuedList() {
	list := p.lists.queued
	p.lists.queued = nil
	switch {
	case list == nil: // none is requested
	case list.ctx.Err() != nil: // the terminator was closed
		list.err = context.Cause(list.ctx)
		close(list.done)
	default:
		p.callRunning(list)
	}
}

// callRunning begins a list: it calls Running in another goroutine. A call that takes longer than StopTimeoutSlack is
// cancelled and counts as failed. The next call can then be made even if that one does not return; a result that
// comes later is ignored. The caller holds the mutex.
func (p *podState) callRunning(list *listCall) {
	p.lists.inProgress = list
	p.lists.started++
	list.number = p.lists.started
	ctx, cancel := context.WithCancelCause(list.ctx)
	timeout := time.AfterFunc(p.terminator.opts.StopTimeoutSlack, func() {
		err := fmt.Errorf("the runtime did not list the pod's containers within %v (StopTimeoutSlack)", p.terminator.opts.StopTimeoutSlack)
		cancel(err)
		p.finishList(list, nil, err)
	})
	var running []Container
	p.spawn(agentCall{ctx: ctx, name: "the runtime's list", apiPod: list.pod, previousErr: p.lists.failure, do: func() (err error) {
		running, err = p.terminator.opts.running(ctx, list.pod)
		return err
	}, returned: func(err error) {
		if isInTime := timeout.Stop(); isInTime {
			p.finishList(list, running, err)
		} else {
			<-list.done // the timer finishes the list; Close must wait for that
		}
		cancel(nil)
	}})
}

// running asks the agent which containers of the pod run.
func (o *TerminatorOptions) running(ctx context.Context, apiPod *v1.Pod) ([]Container, error) {
	if o.Pods != nil {
		return o.Pods.Running(ctx, apiPod)
	}
	return o.Runtime.Running(ctx, apiPod)
}

// finishList logs and sets the result of a list, applies it to the pod, and makes the next call if one is queued. It locks
// the mutex.
func (p *podState) finishList(list *listCall, running []Container, err error) {
	if invalid := checkContainers(running); err == nil && invalid != nil {
		err = fmt.Errorf("the runtime's list: %w", invalid)
	}
	p.logList(list, err) // without the mutex, because a logger may block
	p.mu.Lock()
	defer p.unlock()
	list.running, list.err = running, err
	p.lists.inProgress = nil
	if err == nil {
		p.lists.newestNumber, p.lists.newestRuns = list.number, running
		p.applyList(list)
	}
	p.beginQueuedList()
	close(list.done) // those who wait for the list may now read its fields
}

// applyList updates the pod from a list that has arrived. The caller holds the mutex.
//
//   - During a termination whose requests do not name the containers, each run of a container on the list is stopped.
//   - The record of a start is dropped if the start had returned before this list began: what it started is on the list or has
//     ended.
func (p *podState) applyList(list *listCall) {
	t := p.termination
	stopsAll := t.inProgress() && t.usesLists()
	for _, c := range list.running {
		s := p.stopOf(c)
		if stopsAll {
			s = t.stopListed(c, s)
		}
		if s != nil {
			s.lastListedIn = list.number
		}
	}
	maps.DeleteFunc(p.starts, func(start *startCall, _ struct{}) bool { return start.returned && start.firstListAfter <= list.number })
	p.unblockStops() // a run that was given up and is not listed has ended after all (mayRun), and blocks no sidecar any more
}

// find returns the run that the newest list has with c.ID and c.Began. If c or the listed run has no Began, the ID alone
// decides. The result has c's name, by which its caller knows it. Its PreStopDone is set if c or the listed run has it set.
func (l *lists) find(c Container) (listed Container, found bool) {
	for _, run := range l.newestRuns {
		if run.ID == c.ID && (c.Began.IsZero() || run.Began.IsZero() || runOf(run) == runOf(c)) {
			run.Name, run.PreStopDone = c.Name, c.PreStopDone || run.PreStopDone
			return run, true
		}
	}
	return Container{}, false
}

// wait waits until the list has arrived, and returns its error. If ctx ends first or the terminator is
// closed, it returns the cause.
func (l *listCall) wait(ctx context.Context) error {
	select {
	case <-l.done:
		return l.err
	case <-ctx.Done():
		return context.Cause(ctx)
	case <-l.ctx.Done(): // the terminator was closed
		return context.Cause(l.ctx)
	}
}
