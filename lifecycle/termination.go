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

// Termination is the termination of one pod, under way or ended. All methods may be called
// concurrently.
type Termination struct {
	pod       *pod // its mutex guards the fields below; most unexported methods need it held
	ctx       context.Context
	apiPod    *v1.Pod
	request   Request      // the newest one
	previous  *Termination // of the same pod; nil: none, or this one has ended
	deadline  deadline
	startedAt time.Time
	usesLists bool // the runtime lists what runs; false: the request names it
	minList   int  // the number of the first list that is new enough
	stops     []*stop
	wakeup    chan struct{} // has a value while run has to look at the termination again
	done      chan struct{}
	results   []ContainerResult // nil until the termination has ended

	overdueRecorded bool // the ExceededGracePeriod event was recorded
}

// endedTermination returns a termination that has ended with an error and stopped nothing.
func endedTermination(outcome Outcome, err error) *Termination {
	t := &Termination{pod: &pod{}, done: make(chan struct{}), results: []ContainerResult{{Outcome: outcome, Phase: PhaseEnded, Err: err}}}
	close(t.done)
	return t
}

var errNoTermination = errors.New("there is no termination: Terminate begins one")

// orNone returns the termination or, for one that Terminate has not returned, one that has ended with an
// error.
func (t *Termination) orNone() *Termination {
	if t == nil || t.done == nil {
		return endedTermination(OutcomeRuntimeStuck, errNoTermination)
	}
	return t
}

// terminate begins a termination of the pod, or adds the request to the one that is under way. The
// mutex is held.
func (p *pod) terminate(ctx context.Context, apiPod *v1.Pod, req *Request, shared idNames) *Termination {
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
		t.share(shared)
		p.unblockStops()
	}
	t.wake()
	return t
}

// newTermination begins a termination and makes it the pod's current one. The mutex is held.
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

// requireList makes the termination wait for a list that begins from now on.
func (t *Termination) requireList() {
	t.usesLists, t.minList = true, t.pod.lists.started+1
	t.wake()
}

// run requests lists until the runtime lists nothing and nothing is being stopped or started. Applying
// a list stops what it shows.
func (t *Termination) run() {
	logger := klog.FromContext(t.ctx).WithValues("pod", klog.KObj(t.apiPod))
	logger.V(1).Info("Terminating pod")
	var failure error // of the last list
	for pause := backoff(0); !t.finishIfDone(failure); {
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
				logger.Error(err, "Failed to list the containers of a pod, will try again")
			}
			sleepContext(t.ctx, pause.next())
		default:
			if failures := t.pod.listsSucceeded(); failures > 0 {
				logger.Info("Listed the containers of a pod after earlier failures", "failures", failures)
			}
			pause = 0
		}
		failure = err
	}
	t.logGivenUp(logger, failure)
	if logger.V(1).Enabled() {
		logger.V(1).Info("Pod terminated", "outcome", t.Result().Outcome(), "took", time.Since(t.startedAt))
	}
}

// logGivenUp logs what the termination has given up without having stopped it: lists and starts. A
// stop logs that itself.
func (t *Termination) logGivenUp(logger klog.Logger, failure error) {
	if t.ctx.Err() != nil || errors.Is(failure, errors.ErrUnsupported) {
		return
	}
	for _, c := range t.Result().Containers {
		if c.Outcome == OutcomeRuntimeStuck && c.ID == "" {
			logger.Error(c.Err, "Gave up waiting for a container", "containerName", c.Name)
		}
	}
}

// nextList requests the list that the termination waits for, nil if it waits for none.
func (t *Termination) nextList() *list {
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	if !t.needsList() || t.isForgotten() || t.ctx.Err() != nil {
		return nil
	}
	return t.pod.requestList(t.ctx, t.apiPod)
}

// needsList reports whether the termination still waits for a list that is new enough.
func (t *Termination) needsList() bool {
	return t.usesLists && t.pod.lists.newestNumber < t.minList
}

// isForgotten reports whether Forget was called. The termination then goes on with the containers that
// it has listed before, and gets no new ones.
func (t *Termination) isForgotten() bool { return t.pod.termination != t }

// waitForChange waits until run has to look again: after the end of a stop or a start, at the deadline or
// GiveUpAfter after it, and after another call of Terminate.
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
	if nothingLeft { // the last stop has ended since run looked
		return
	}
	if t.ctx.Err() != nil || !time.Now().Before(until) { // only stops can still be under way, and no time limit is left
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

// wake makes run look at the termination again. The receiver may be nil.
func (t *Termination) wake() {
	if !t.inProgress() {
		return
	}
	select {
	case t.wakeup <- struct{}{}:
	default: // an earlier value is unread
	}
}

// giveUpAt returns when the termination stops waiting for starts and lists: GiveUpAfter after the
// deadline, or after the termination began if that was later. Stops have their own limit.
func (t *Termination) giveUpAt() time.Time {
	return times.Later(t.deadline.end, t.startedAt).Add(t.pod.terminator.opts.GiveUpAfter)
}

// stopContainer stops a container, unless the termination has given it up, and returns its stop. s is the stop of
// the container so far, nil if there is none. A stop that is under way joins the termination.
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

// include adds a stop to the termination, whose deadline it gets if that is earlier.
func (t *Termination) include(s *stop) {
	s.shorten(t.deadline)
	if s.termination != t {
		s.termination, t.stops = t, append(t.stops, s)
	}
}

// isRestartedSidecar reports whether a container is a new run of a sidecar that belongs to the termination
// already. The preStop hook was for the earlier run, and does not run again.
func (t *Termination) isRestartedSidecar(c Container) bool {
	_, role := findContainer(t.apiPod, c.Name)
	return role.isSidecar() && slices.ContainsFunc(t.stops, func(s *stop) bool { return s.container.Name == c.Name })
}

// finishIfDone ends the termination, and reports true, when every stop has ended and one of two things
// holds. Either no start is under way and a list that is new enough has succeeded. Or waiting for them
// is over: the terminator was closed, the pod was forgotten, the runtime cannot list, or GiveUpAfter has
// passed. failure is the error of the last list.
func (t *Termination) finishIfDone(failure error) bool {
	p := t.pod
	p.mu.Lock()
	defer p.unlock()
	if t.deadline.hasPassed() {
		p.cancelStarts()
	}
	isStopping := slices.ContainsFunc(t.stops, (*stop).inProgress)
	isComplete := !t.needsList() && len(p.starts) == 0
	isGivenUp := t.ctx.Err() != nil || t.isForgotten() || errors.Is(failure, errors.ErrUnsupported) || !time.Now().Before(t.giveUpAt())
	if isStopping || !isComplete && !isGivenUp {
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

// reappeared returns the stops of runs that are listed again.
func (t *Termination) reappeared() (stops []*stop) {
	for _, s := range t.stops {
		if t.usesLists && !t.isForgotten() && s.isListedAgain() {
			stops = append(stops, s)
		}
	}
	return stops
}

// foundNothing reports whether a list is new enough and the termination has seen neither a container nor
// a start of the pod.
func (t *Termination) foundNothing() bool {
	return !t.needsList() && len(t.stops) == 0 && (t.isForgotten() || len(t.pod.starts) == 0)
}

// recordMetrics counts the termination in the metrics.
func (t *Termination) recordMetrics() {
	result, metrics := t.result(), t.pod.terminator.opts.Metrics
	metrics.PodTerminated(string(result.Outcome()), time.Since(t.startedAt))
	if slices.ContainsFunc(result.Containers, func(c ContainerResult) bool { return c.Outcome == OutcomeGraceExceeded }) {
		metrics.PodGraceExceeded()
	}
}

// inProgress reports whether the termination has not ended; false for a nil receiver.
func (t *Termination) inProgress() bool { return t != nil && !isClosed(t.done) }
