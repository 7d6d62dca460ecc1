package lifecycle

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/times"
)

// Termination is the termination of one pod, in progress or ended. All methods are safe for concurrent
// use.
type Termination struct {
	// The mutex of pod guards the fields below. The caller of an unexported method holds it, unless the method
	// locks it.
	pod         *podState
	ctx         context.Context
	apiPod      *v1.Pod
	request     Request      // the newest one that names no containers; the first one if all name them
	previous    *Termination // of the same pod; nil: there is none, or this one has ended
	deadline    deadline
	startedAt   time.Time
	awaitedList int               // the number of the first list that is new enough (requireList); 0: no list is required
	stops       []*containerStop  // of the containers that belong to the termination, in progress or ended
	done        chan struct{}     // closed when results are set and logged
	results     []ContainerResult // not nil once the termination has ended

	exceededRecorded bool // the ExceededGracePeriod event was recorded
}

// endedTermination returns a termination that has ended with err and stopped nothing. Terminate, which returns no
// error, reports its errors with it.
func endedTermination(outcome Outcome, err error) *Termination {
	results := []ContainerResult{{Outcome: outcome, Phase: PhaseEnded, Err: err}}
	t := &Termination{pod: &podState{}, done: make(chan struct{}), results: results} // podState has the mutex that the methods lock
	close(t.done)
	return t
}

var errNoTermination = errors.New("there is no termination, Terminate begins one")

// orEndedIfUnset returns t or, if t is nil or zero, a Termination that has ended with an error, so that the exported methods can
// be called on every Termination.
func (t *Termination) orEndedIfUnset() *Termination {
	if t == nil || t.done == nil {
		return endedTermination(OutcomeRuntimeStuck, errNoTermination)
	}
	return t
}

// terminate begins a termination of the pod. If one is in progress, it adds the request to that one, and shortens its
// grace period if that of the request is shorter. The caller holds the mutex.
func (p *podState) terminate(ctx context.Context, apiPod *v1.Pod, req *Request) *Termination {
	t := p.termination
	if !t.inProgress() {
		t = p.newTermination(ctx, apiPod, req, deadlineIn(req.grace(apiPod, 0))) // 0: no grace period is in progress
	} else if granted := req.grace(apiPod, t.deadline.granted); granted < t.deadline.granted {
		t.shorten(granted)
	}
	if req.Containers == nil {
		t.request = *req
		t.requireList() // stopListed then stops every container that the list has
	} else {
		t.stopNamed(req)
	}
	p.wake()
	return t
}

// stopNamed stops the containers that the request names. The caller knows what is running, so a container that
// could not be stopped before and is not named now has ended, and no longer blocks the others.
func (t *Termination) stopNamed(req *Request) {
	p := t.pod
	named := make([]*containerStop, 0, len(req.Containers)) // nil for a container that has no stop yet
	for _, c := range req.Containers {
		named = append(named, p.stopOf(c))
	}
	maps.DeleteFunc(p.stops, func(_ containerRun, s *containerStop) bool { return s.isGivenUp() && !slices.Contains(named, s) })
	for _, c := range req.Containers {
		t.stopContainer(c, p.stopOf(c), stopOptions{trustSuccess: true, oneAttempt: req.OneAttempt, hooks: req.Hooks})
	}
	p.unblockStops() // sidecars may have waited for the stops that were dropped
}

// newTermination begins a termination, makes it the pod's current one, and cancels the starts of
// containers that are in progress. The caller holds the mutex.
func (p *podState) newTermination(ctx context.Context, apiPod *v1.Pod, req *Request, newDeadline deadline) *Termination {
	pod := *apiPod // a copy: the caller may give its pod another name, and the runtime would then look for another pod
	t := &Termination{
		pod: p, ctx: ctx, apiPod: &pod, request: *req, previous: p.termination, deadline: newDeadline, startedAt: time.Now(),
		done: make(chan struct{}),
	}
	p.termination = t
	p.cancelStarts()
	p.terminator.calls.Go(func() string { return "the termination of " + fullName(&pod, "") }, t.run)
	if t.previous == nil { // otherwise the previous termination has logged it
		t.logGraceWarning()
	}
	return t
}

// logGraceWarning logs a warning if the grace period is probably a mistake. It does so in another goroutine, because a logger
// that blocks must not keep the pod running. The caller holds the mutex.
func (t *Termination) logGraceWarning() {
	granted := t.deadline.granted
	warning := t.request.graceWarning(t.apiPod, granted)
	if warning == "" {
		return
	}
	t.pod.terminator.calls.Go(func() string { return "the log line about the grace period of " + fullName(t.apiPod, "") }, func() {
		klog.FromContext(t.ctx).Info(warning, "pod", klog.KObj(t.apiPod), "gracePeriod", granted)
	})
}

// requireList makes the termination wait for a list that begins from now on. A list that has already begun
// may miss a container that was started since.
func (t *Termination) requireList() {
	t.awaitedList = t.pod.lists.started + 1 // the number of the next list to begin
	t.pod.wake()
}

// usesLists reports whether the runtime's lists say which containers to stop. If not, the requests name them (Containers).
func (t *Termination) usesLists() bool { return t.awaitedList > 0 }

// run is the goroutine of the termination. It requests lists until the runtime lists nothing more, and no
// stop or start is in progress. It stops nothing itself: stopListed stops the containers of each list that
// arrives.
func (t *Termination) run() {
	logger := klog.FromContext(t.ctx).WithValues("pod", klog.KObj(t.apiPod))
	logger.V(1).Info("Terminating pod")
	var failure error // of the last list
	pause := backoff(0)
	for {
		list := t.nextList(failure)
		if list == nil { // the termination has ended
			break
		}
		if failure = list.wait(t.ctx); failure != nil {
			_ = times.Sleep(t.ctx, pause.next()) // the end of ctx ends the termination below
		} else {
			pause = 0
		}
	}
	t.logGivenUp(logger)
	close(t.done) // last, so that a caller who waits for it finds the log complete
	if logger.V(1).Enabled() {
		logger.V(1).Info("Pod terminated", "outcome", t.Result().Outcome(), "took", time.Since(t.startedAt))
	}
}

// nextList waits until the termination needs a new list of the pod's containers. It then requests the list, and returns the
// request. It returns nil if the termination has ended. During the wait containers stop and start, and Terminate may be called
// again. At the deadline nextList cancels the starts, and at giveUpAt it ends the termination. failure is the last list's error.
func (t *Termination) nextList(failure error) (list *listCall) {
	var never time.Time
	t.pod.waitWhile(t.ctx, func() (wait bool, recheckAt time.Time) {
		if t.deadline.hasPassed() && !t.isForgotten() { // after Forget the starts are those of a new pod
			t.pod.cancelStarts()
		}
		canUseList := !t.isForgotten() && t.ctx.Err() == nil // after Forget or Close a list adds no container
		switch {
		case t.finishIfDone(failure):
			return false, never
		case t.needsList() && canUseList:
			list = t.pod.requestList(t.ctx, t.apiPod)
			return false, never
		case t.deadline.hasPassed():
			return true, t.giveUpAt()
		default:
			return true, t.deadline.end
		}
	})
	return list
}

// logGivenUp logs the containers that the termination has given up without a stop: no list arrived, their start did not
// return, or they were listed too late. Other containers have a stop, which logs.
func (t *Termination) logGivenUp(logger klog.Logger) {
	for _, c := range t.results {
		wasNotStopped := c.ID == "" || errors.Is(c.Err, errListedTooLate)
		if c.Outcome == OutcomeRuntimeStuck && wasNotStopped {
			logger.Error(c.Err, "Gave up waiting for container", "containerName", c.Name)
		}
	}
}

// needsList reports whether the termination still waits for a list that is new enough, that is, one that began after the newest
// request and start (requireList). Until then, a running container may be unknown.
func (t *Termination) needsList() bool {
	return t.pod.lists.newestNumber < t.awaitedList
}

// isForgotten reports whether [Terminator.Forget] was called since the termination began. The termination then
// continues with the containers that were listed before, and gets no new ones.
func (t *Termination) isForgotten() bool { return t.pod.termination != t }

// giveUpAt returns the time at which the termination gives up on calls that start a container or list the
// running ones: GiveUpAfter past the deadline, or past its own beginning if that was later, because an
// earlier termination had used up the time. Each stop has its own limit (stopCalls.giveUpAt).
func (t *Termination) giveUpAt() time.Time {
	return times.Later(t.deadline.end, t.startedAt).Add(t.pod.terminator.opts.GiveUpAfter)
}

// stopListed stops a run that the newest list has, and returns the run's stop. s is its existing stop, nil if there is none.
// If it is too late to begin a stop (isOverdue), the run is given up: otherwise a runtime that lists another run in each list
// could keep the termination from ending.
func (t *Termination) stopListed(c Container, s *containerStop) *containerStop {
	if t.isOverdue() && !s.isStopping() {
		return t.giveUp(c, s)
	}
	return t.stopContainer(c, s, stopOptions{oneAttempt: t.request.OneAttempt, hooks: t.request.Hooks})
}

// stopContainer makes a container part of the termination, begins to stop it if nobody does yet, and
// returns its stop. s is its existing stop, nil if there is none.
func (t *Termination) stopContainer(c Container, s *containerStop, options stopOptions) *containerStop {
	if t.isHandled(c, s) {
		return s
	}
	if s == nil && t.isHookOfEarlierRun(c) {
		c.PreStopDone = true
	}
	s = t.pod.stop(t.ctx, t.apiPod, c, t.deadline, options)
	t.include(s)
	return s
}

// isHandled reports whether this termination is already stopping the run c, or has given it up, because an earlier list or request
// had it too. s is the run's stop, nil if there is none. A stop in progress that a request began without c's Began is not counted,
// so that podState.stop adds Began to it.
func (t *Termination) isHandled(c Container, s *containerStop) bool {
	if s == nil || !slices.Contains(t.stops, s) {
		return false
	}
	isStoppingRun := s.inProgress && s.run == runOf(c)
	return isStoppingRun || s.isGivenUp()
}

// giveUp reports the run c as stuck without an attempt to stop it, because the termination has no time left (isOverdue). It returns
// the run's stop. s is the stop that the run already has, perhaps from an earlier termination, and must not be in progress. If s
// is nil, giveUp adds a stop.
func (t *Termination) giveUp(c Container, s *containerStop) *containerStop {
	if t.isHandled(c, s) {
		return s
	}
	if s == nil {
		s = t.addUnbegunStop(c)
	}
	s.result.Phase, s.result.Outcome = PhaseEnded, OutcomeRuntimeStuck
	s.result.Err = errors.Join(s.result.Err, &stopError{name: c.Name, id: c.ID, err: errListedTooLate})
	s.newestListAtEnd = t.pod.lists.newestNumber
	t.include(s)
	return s
}

// addUnbegunStop adds the stop of a run that giveUp reports as stuck without an attempt to stop it. The stop never begins:
// giveUp sets its phase and outcome.
func (t *Termination) addUnbegunStop(c Container) *containerStop {
	s := newStop(t.pod, c)
	s.ctx, s.apiPod = t.ctx, t.apiPod
	s.spec, s.role = findContainer(t.apiPod, c.Name)
	s.result.GrantedSeconds = t.deadline.granted
	t.pod.stops[s.run] = s
	return s
}

// include makes a stop part of the termination, which then waits for it. The earlier of both deadlines
// applies to the stop.
func (t *Termination) include(s *containerStop) {
	s.shorten(t.deadline)
	if !slices.Contains(t.stops, s) {
		t.stops = append(t.stops, s)
	}
}

// isHookOfEarlierRun reports whether c is a sidecar that was started again during this termination, and whose preStop hook must
// not run, because it has begun or will begin for an earlier run of the sidecar. c must not have a stop yet.
func (t *Termination) isHookOfEarlierRun(c Container) bool {
	_, role := findContainer(t.apiPod, c.Name)
	return role.isSidecar() && slices.ContainsFunc(t.stops, func(earlier *containerStop) bool {
		hasBegun := earlier.container.PreStopDone || !earlier.hook.startedAt.IsZero()
		willBegin := earlier.run.id != c.ID && !earlier.isUnlisted() // false: the earlier run has ended, and beginHook skips its hook
		return earlier.container.Name == c.Name && (hasBegun || willBegin)
	})
}

// finishIfDone ends the termination if there is nothing left to wait for, and reports whether it did. It waits for each stop in
// progress, which gives up by itself, and for lists and starts that may add a container, as long as canWaitForMore allows.
// failure is the last list's error. The caller holds the mutex.
func (t *Termination) finishIfDone(failure error) (ended bool) {
	awaitsMore := t.mayFindMore() && t.canWaitForMore(failure)
	if t.isStopping() || awaitsMore {
		return false
	}
	if t.foundNothing() && t.previous != nil { // the earlier termination's containers are all gone: keep its results
		t.results = t.previous.resultsOnceAllEnded()
	} else {
		t.results = t.finalResults(failure)
		t.recordMetrics()
	}
	t.stops, t.previous = nil, nil // from now on only results is read
	return true
}

// isStopping reports whether a container of the termination is being stopped.
func (t *Termination) isStopping() bool {
	return slices.ContainsFunc(t.stops, (*containerStop).isStopping)
}

// awaitsStart reports whether a start of the pod may still add a container to the termination: the start is
// in progress, or no list has arrived since it returned. After [Terminator.Forget] no start adds one.
func (t *Termination) awaitsStart() bool { return len(t.pod.starts) > 0 && !t.isForgotten() }

// canWaitForMore reports whether waiting for a list or a start can still help the termination. It cannot after Close or Forget,
// if the runtime cannot list, or once lists and starts have had enough time (isOverdue). failure is the last list's error.
func (t *Termination) canWaitForMore(failure error) bool {
	isCutOff := t.ctx.Err() != nil || t.isForgotten()
	cannotList := errors.Is(failure, errors.ErrUnsupported)
	return !isCutOff && !cannotList && !t.isOverdue()
}

// isOverdue reports whether starts and lists have been waited for long enough: GiveUpAfter has passed since the
// deadline, or since the termination began if that was later (giveUpAt).
func (t *Termination) isOverdue() bool { return !time.Now().Before(t.giveUpAt()) }

// mayFindMore reports whether a list or a start may still add a container to the termination.
func (t *Termination) mayFindMore() bool { return t.needsList() || t.awaitsStart() }

// foundNothing reports whether there was nothing to stop.
func (t *Termination) foundNothing() bool { return len(t.stops) == 0 && !t.mayFindMore() }

// recordMetrics counts the termination by its outcome, and also as one that exceeded its grace period if a
// container did.
func (t *Termination) recordMetrics() {
	metrics := t.pod.terminator.opts.Metrics
	metrics.PodTerminated(string(Result{Containers: t.results}.Outcome()), time.Since(t.startedAt))
	if slices.ContainsFunc(t.results, func(c ContainerResult) bool { return c.Outcome == OutcomeGraceExceeded }) {
		metrics.PodGraceExceeded()
	}
}

// inProgress reports whether the termination has not ended; false for a nil receiver.
func (t *Termination) inProgress() bool { return t != nil && t.results == nil }
