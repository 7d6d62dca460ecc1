package lifecycle

import (
	"context"
	"errors"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
)

// Termination is the termination of one pod, in progress or ended. All methods are safe for concurrent
// use.
type Termination struct {
	pod       *pod // its mutex guards the fields below; most unexported methods need it held
	ctx       context.Context
	apiPod    *v1.Pod
	request   Request      // the newest one
	previous  *Termination // of the same pod; nil: there is none, or this one has ended
	deadline  deadline
	startedAt time.Time
	usesLists bool // the runtime lists the containers; false: the request names them
	minList   int  // the number of the first list that is new enough
	stops     []*stop
	wakeup    chan struct{} // has a value when run must check the termination again
	done      chan struct{}
	results   []ContainerResult // nil until the termination has ended

	overdueRecorded bool // the ExceededGracePeriod event was recorded
}

// endedTermination returns a termination that has ended with err and stopped nothing.
func endedTermination(outcome Outcome, err error) *Termination {
	t := &Termination{pod: &pod{}, done: make(chan struct{}), results: []ContainerResult{{Outcome: outcome, Phase: PhaseEnded, Err: err}}}
	close(t.done)
	return t
}

var errNoTermination = errors.New("there is no termination, Terminate begins one")

// orNone returns the termination, or one that has ended with an error for a nil or zero one.
func (t *Termination) orNone() *Termination {
	if t == nil || t.done == nil {
		return endedTermination(OutcomeRuntimeStuck, errNoTermination)
	}
	return t
}

// terminate begins a termination of the pod, or adds the request to the one in progress. The caller holds
// the mutex.
func (p *pod) terminate(ctx context.Context, apiPod *v1.Pod, req *Request) *Termination {
	t := p.termination
	if !t.inProgress() {
		t = p.newTermination(ctx, apiPod, req, deadlineIn(req.grace(apiPod, 0)))
	} else if granted := req.grace(apiPod, t.deadline.granted); granted < t.deadline.granted {
		t.shorten(granted)
	}
	t.request = *req
	if req.Containers == nil {
		t.requireList()
	} else {
		named := make(map[run]bool, len(req.Containers))
		for _, c := range req.Containers {
			if s := p.stopOf(c); s != nil {
				named[s.run] = true
			}
		}
		p.dropEnded(func(s *stop) bool { return !named[s.run] })
		for _, c := range req.Containers {
			t.stopContainer(c, p.stopOf(c), stopOptions{trustSuccess: true, oneAttempt: req.OneAttempt, message: req.Message, hooks: req.Hooks})
		}
		p.unblockStops()
	}
	t.wake()
	return t
}

// newTermination begins a termination and makes it the pod's current one. The caller holds the mutex.
func (p *pod) newTermination(ctx context.Context, apiPod *v1.Pod, req *Request, until deadline) *Termination {
	t := &Termination{
		pod: p, ctx: ctx, apiPod: apiPod, request: *req, previous: p.termination, deadline: until, startedAt: time.Now(),
		wakeup: make(chan struct{}, 1), done: make(chan struct{}),
	}
	p.termination = t
	p.cancelStarts()
	p.terminator.calls.Go(func() string { return "the termination of " + fullName(apiPod, "") }, t.run)
	return t
}

// requireList makes the termination wait for a list that starts from now on.
func (t *Termination) requireList() {
	t.usesLists, t.minList = true, t.pod.lists.started+1
	t.wake()
}

// run requests lists until the runtime lists nothing and no stop or start is in progress. pod.applyList
// stops what a list has.
func (t *Termination) run() {
	logger := klog.FromContext(t.ctx).WithValues("pod", klog.KObj(t.apiPod))
	logger.V(1).Info("Terminating pod")
	var failure error // of the last list
	pause := backoff(0)
	for {
		if t.logGivenUp(logger, failure); t.finishIfDone(failure) {
			break
		}
		l := t.nextList()
		if l == nil {
			t.waitForChange()
			continue
		}
		err := l.wait(t.ctx)
		switch {
		case t.ctx.Err() != nil:
		case err != nil:
			if t.pod.listFailed(err) {
				logger.Error(err, "Failed to list the pod's containers, will retry")
			}
			sleepContext(t.ctx, pause.next())
		default:
			if failures := t.pod.listSucceeded(); failures > 0 {
				logger.Info("Listed the pod's containers after earlier failures", "failures", failures)
			}
			pause = 0
		}
		failure = err
	}
	if logger.V(1).Enabled() {
		logger.V(1).Info("Pod terminated", "outcome", t.Result().Outcome(), "took", time.Since(t.startedAt))
	}
}

// logGivenUp logs the containers that the termination gives up now and that have no run: no list arrived,
// or their start did not return. A container with a run is logged by its stop. run calls logGivenUp before
// finishIfDone, so that the log is complete when the termination is done.
func (t *Termination) logGivenUp(logger klog.Logger, failure error) {
	for _, c := range t.givenUp(failure) {
		logger.Error(c.Err, "Gave up waiting for container", "containerName", c.Name)
	}
}

// givenUp returns the results of the containers without a run that finishIfDone gives up now. It locks
// the mutex.
func (t *Termination) givenUp(failure error) []ContainerResult {
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	if t.isStopping() || t.isComplete() || t.mustNotWait(failure) || !t.isOverdue() {
		return nil
	}
	return slices.DeleteFunc(t.finalResults(failure), func(c ContainerResult) bool { return c.ID != "" || c.Outcome != OutcomeRuntimeStuck })
}

// nextList requests the list that the termination waits for; nil if it waits for none.
func (t *Termination) nextList() *list {
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	if !t.needsList() || t.isForgotten() || t.ctx.Err() != nil {
		return nil
	}
	return t.pod.requestList(t.ctx, t.apiPod)
}

// needsList reports whether the termination waits for a list that is new enough.
func (t *Termination) needsList() bool {
	return t.usesLists && t.pod.lists.newestNumber < t.minList
}

// isForgotten reports whether Forget was called. The termination continues with the containers listed
// before, and gets no new ones.
func (t *Termination) isForgotten() bool { return t.pod.termination != t }

// waitForChange waits until run must check again: when a stop or a start ends, at the deadline,
// GiveUpAfter past it, and after another Terminate call.
func (t *Termination) waitForChange() {
	t.pod.mu.Lock()
	until := t.deadline.end
	if t.deadline.hasPassed() {
		until = t.giveUpAt()
	}
	var stopped <-chan struct{} // nil: nothing is being stopped
	if i := slices.IndexFunc(t.stops, (*stop).inProgress); i >= 0 {
		stopped = t.stops[i].done
	}
	nothingLeft := stopped == nil && !t.needsList() && (t.isForgotten() || len(t.pod.starts) == 0)
	t.pod.mu.Unlock()
	if nothingLeft { // the last stop has just ended
		return
	}
	if t.ctx.Err() != nil || !time.Now().Before(until) { // only stops can be in progress, which have their own limit
		if stopped != nil {
			select {
			case <-t.wakeup:
			case <-stopped:
			}
		}
		return
	}
	timer := time.NewTimer(time.Until(until))
	defer timer.Stop()
	select {
	case <-t.wakeup:
	case <-stopped:
	case <-timer.C:
	case <-t.ctx.Done():
	}
}

// wake makes run check the termination again. The receiver may be nil.
func (t *Termination) wake() {
	if !t.inProgress() {
		return
	}
	select {
	case t.wakeup <- struct{}{}:
	default: // an unread value is enough
	}
}

// giveUpAt returns the time at which the termination stops waiting for starts and lists: GiveUpAfter past the
// deadline, or past the start of the termination if that was later. Stops have their own limit.
func (t *Termination) giveUpAt() time.Time {
	return times.Later(t.deadline.end, t.startedAt).Add(t.pod.terminator.opts.GiveUpAfter)
}

// stopContainer stops a container, unless the termination has given it up, and returns its stop. s is
// its existing stop, nil if there is none. A stop in progress becomes part of the termination.
func (t *Termination) stopContainer(c Container, s *stop, options stopOptions) *stop {
	if s != nil && s.termination == t && (s.isGivenUp() || s.inProgress() && s.run == runOf(c)) {
		return s
	}
	if s == nil && t.isRestartedSidecar(c) {
		c.PreStopDone = true
	}
	s = t.pod.stop(t.ctx, t.apiPod, c, t.deadline, options)
	t.include(s)
	return s
}

// include makes a stop part of the termination, and moves its deadline to the termination's if that is
// earlier.
func (t *Termination) include(s *stop) {
	s.shorten(t.deadline)
	if s.termination != t {
		s.termination, t.stops = t, append(t.stops, s)
	}
}

// isRestartedSidecar reports whether c is a new run of a sidecar that the termination already includes.
// The preStop hook ran for the earlier run, and does not run again.
func (t *Termination) isRestartedSidecar(c Container) bool {
	_, role := findContainer(t.apiPod, c.Name)
	return role.isSidecar() && slices.ContainsFunc(t.stops, func(s *stop) bool { return s.container.Name == c.Name })
}

// finishIfDone ends the termination and returns true if no stop is in progress, and nothing else is
// waited for: the termination is complete, must not wait, or is overdue. failure is the last list's error.
func (t *Termination) finishIfDone(failure error) bool {
	p := t.pod
	p.mu.Lock()
	defer p.unlock()
	if t.deadline.hasPassed() {
		p.cancelStarts()
	}
	isGivenUp := t.mustNotWait(failure) || t.isOverdue()
	if t.isStopping() || !t.isComplete() && !isGivenUp {
		return false
	}
	reappeared := t.reappeared()
	if len(reappeared) > 0 && !isGivenUp {
		t.requireList()
		return false
	}
	for _, s := range reappeared {
		s.result.Outcome = OutcomeRuntimeStuck
		s.result.Err = errors.Join(s.result.Err, &stopError{name: s.container.Name, id: s.container.ID, err: s.errStillListed()})
	}
	if t.foundNothing() && t.previous != nil {
		t.results = t.previous.resultsSinceEnded()
	} else {
		t.results = t.finalResults(failure)
		t.recordMetrics()
	}
	t.stops, t.previous = nil, nil
	close(t.done)
	return true
}

// isStopping reports whether a container is being stopped.
func (t *Termination) isStopping() bool { return slices.ContainsFunc(t.stops, (*stop).inProgress) }

// isComplete reports whether no start is in progress and a list is new enough.
func (t *Termination) isComplete() bool { return !t.needsList() && len(t.pod.starts) == 0 }

// mustNotWait reports whether no list and no start can matter any more: the terminator was closed, the
// pod was forgotten, or the runtime cannot list. failure is the last list's error.
func (t *Termination) mustNotWait(failure error) bool {
	return t.ctx.Err() != nil || t.isForgotten() || errors.Is(failure, errors.ErrUnsupported)
}

// isOverdue reports whether GiveUpAfter has passed.
func (t *Termination) isOverdue() bool { return !time.Now().Before(t.giveUpAt()) }

// reappeared returns the stops of ended runs that are listed again.
func (t *Termination) reappeared() (stops []*stop) {
	for _, s := range t.stops {
		if t.usesLists && !t.isForgotten() && s.isListedAgain() {
			stops = append(stops, s)
		}
	}
	return stops
}

// foundNothing reports whether a list is new enough and the pod had neither a container nor a start.
func (t *Termination) foundNothing() bool {
	return !t.needsList() && len(t.stops) == 0 && (t.isForgotten() || len(t.pod.starts) == 0)
}

// recordMetrics counts the termination.
func (t *Termination) recordMetrics() {
	result, metrics := t.result(), t.pod.terminator.opts.Metrics
	metrics.PodTerminated(string(result.Outcome()), time.Since(t.startedAt))
	if slices.ContainsFunc(result.Containers, func(c ContainerResult) bool { return c.Outcome == OutcomeGraceExceeded }) {
		metrics.PodGraceExceeded()
	}
}

// inProgress reports whether the termination has not ended; false for a nil receiver.
func (t *Termination) inProgress() bool { return t != nil && !isClosed(t.done) }
