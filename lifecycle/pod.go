package lifecycle

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
	"github.com/kubegrace/kubegrace/internal/times"
)

// podState is what the terminator keeps about a pod: its termination, the calls of Start, and the stops of its
// containers. It does not know what is running; only the runtime does.
type podState struct {
	terminator *Terminator
	key        types.UID

	// mu guards the fields below, the stops and the termination. The caller of a method holds it, unless the
	// method locks it.
	mu          sync.Mutex
	dropped     bool // no longer in Terminator.pods
	lists       lists
	starts      map[*startCall]struct{} // in progress, or returned, but no list has arrived since
	stops       map[containerRun]*containerStop
	termination *Termination  // the newest one; nil: none since Forget
	podStop     *podStop      // the newest one; nil: none, or containers stop one by one
	readers     int           // number of calls of PostStart and KillContainer in progress that read the stops or lists
	changed     chan struct{} // closed at the next change (wake); nil: nobody waits for one
}

// containerRun identifies one run of a container, from a start to the exit. A runtime may use an ID again for the
// next run.
type containerRun struct {
	id    string
	began int64 // Unix time in nanoseconds; 0: unknown
}

// runOf returns the run that c identifies.
func runOf(c Container) containerRun {
	if c.Began.IsZero() {
		return containerRun{id: c.ID}
	}
	return containerRun{id: c.ID, began: c.Began.UnixNano()}
}

// newPodState returns the state of a pod of which nothing is known yet.
func newPodState(tr *Terminator, key types.UID) *podState {
	return &podState{terminator: tr, key: key, starts: map[*startCall]struct{}{}, stops: map[containerRun]*containerStop{}}
}

// unlock drops what nobody needs any more, and unlocks the mutex. It drops the stops of containers that
// have ended, unless a termination or a reader may still need them. It drops the pod itself if nothing
// of it remains.
func (p *podState) unlock() {
	mayReadStops := p.termination.inProgress() || p.readers > 0
	if !mayReadStops {
		maps.DeleteFunc(p.stops, func(_ containerRun, s *containerStop) bool {
			hasEnded := s.result.Outcome.hasEnded() || !s.mayRun()
			return !s.inProgress && hasEnded
		})
	}
	hasNoUser := len(p.stops)+len(p.starts)+p.readers == 0
	isIdle := hasNoUser && p.termination == nil && p.lists.inProgress == nil
	if isIdle && !p.dropped {
		p.dropped = true
		p.terminator.mu.Lock()
		delete(p.terminator.pods, p.key)
		p.terminator.mu.Unlock()
	}
	p.mu.Unlock()
}

// wake makes everybody who waits for a change of the pod (waitWhile) look again: the termination, the stops, PostStart and
// KillContainer. Call it after a change for which they may wait. The caller holds the mutex.
func (p *podState) wake() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// nextChange returns a channel that the next wake closes. The caller holds the mutex.
func (p *podState) nextChange() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// waitWhile waits as long as mustWait returns true. It calls mustWait, with the mutex held, at once, after each change of
// the pod (wake), when ctx ends, and at the time recheckAt that mustWait has returned. A zero or past recheckAt is ignored.
func (p *podState) waitWhile(ctx context.Context, mustWait func() (wait bool, recheckAt time.Time)) {
	for {
		now, ended := time.Now(), ctx.Done()
		if ctx.Err() != nil {
			ended = nil // mustWait, which is called next, sees the end of ctx. It need not be called for it again
		}
		p.mu.Lock()
		wait, recheckAt := mustWait()
		if !wait {
			p.unlock()
			return
		}
		changed := p.nextChange()
		p.unlock()
		var timer <-chan time.Time // nil: it never fires
		if recheckAt.After(now) {
			timer = times.After(recheckAt)
		}
		select {
		case <-changed:
		case <-timer:
		case <-ended:
		}
	}
}

// forget implements [Terminator.Forget]: it drops everything except starts and stops in progress.
func (p *podState) forget() {
	if t := p.termination; t.inProgress() {
		p.cancelStarts() // nothing would stop what they start
		if t.needsList() {
			// The list that t needs never comes: from here on, lists are applied to the pod's next termination.
			t.awaitedList = math.MaxInt
		}
	}
	p.termination = nil
	p.wake()
	maps.DeleteFunc(p.starts, func(start *startCall, _ struct{}) bool { return start.returned })
	maps.DeleteFunc(p.stops, func(_ containerRun, s *containerStop) bool { return !s.inProgress })
}

// stop begins to stop a run and returns its stop. If the run is being stopped already, it only shortens
// the deadline to newDeadline. If the run could not be stopped before, it tries again, under the old deadline if
// that is earlier.
func (p *podState) stop(ctx context.Context, apiPod *v1.Pod, c Container, newDeadline deadline, options stopOptions) *containerStop {
	s := p.stopOf(c)
	if s == nil {
		s = newStop(p, c)
		p.stops[s.run] = s
	}
	if s.run.began == 0 && !c.Began.IsZero() { // the caller who began the stop did not know Began, this one does
		delete(p.stops, s.run)
		s.run, s.result.Began = runOf(c), c.Began
		p.stops[s.run] = s
	}
	if s.inProgress {
		s.options.ignoreOrder = s.options.ignoreOrder || options.ignoreOrder // a sidecar that waits for its turn is stopped now
		s.shorten(newDeadline)
	} else {
		s.begin(ctx, apiPod, newDeadline, options)
	}
	p.wake()
	return s
}

// stopOf returns the stop of a run, in progress or ended; nil if there is none:
//
//   - the stop of a run with c's ID and Began;
//   - else, if c has a Began: the stop that was begun with the ID alone, unless it has ended a run before c;
//   - else, if c has no Began: the stop of any run with the ID, preferably one in progress.
func (p *podState) stopOf(c Container) *containerStop {
	if s := p.stops[runOf(c)]; s != nil {
		return s
	}
	if !c.Began.IsZero() {
		s := p.stops[containerRun{id: c.ID}]
		if s != nil && s.result.Outcome.hasEnded() && c.Began.After(s.firstCallAt) {
			return nil // c is a later run than the one that s ended: it began after the first StopContainer call of s
		}
		return s
	}
	var found *containerStop
	for _, s := range p.stops {
		if s.run.id == c.ID && (found == nil || s.inProgress) {
			found = s
		}
	}
	return found
}

// dropStopOfEarlierRun drops the stop with c's ID if the stop was for an earlier run of the container. The caller knows that c
// runs. If the stop has ended its run, c is therefore a later run, unless both have the same Began: then c is that run, listed
// again. During a termination nothing is dropped: c counts as the same run.
func (p *podState) dropStopOfEarlierRun(c Container) {
	s := p.stopOf(c)
	if s == nil || p.termination.inProgress() {
		return
	}
	hasEndedRun := !s.inProgress && s.result.Outcome.hasEnded()
	lacksBegan := c.Began.IsZero() || s.run.began == 0 // otherwise both are the same, which stopOf has checked
	if hasEndedRun && lacksBegan {
		delete(p.stops, s.run)
	}
}

// isBlocked reports whether containers of a role must not stop yet. A sidecar waits for main containers
// and for sidecars declared after it, because they may need it. Only a container that may be running is
// waited for (k/k#125880): one whose stop has not ended it (mayRun), or one that is being started. After Forget a start belongs
// to a new pod, which does not need the sidecars of the old one.
func (p *podState) isBlocked(r role) bool {
	if !r.isSidecar() {
		return false
	}
	needsIt := func(other role) bool { return other == roleMain || other > r } // a later sidecar has a higher role
	for _, s := range p.stops {
		if needsIt(s.role) && s.mayRun() {
			return true
		}
	}
	for start := range p.starts {
		if p.termination != nil && needsIt(start.role) {
			return true
		}
	}
	return false
}

// unblockStops lets each sidecar stop that no other container needs any more (isBlocked). During a termination it also cancels
// each start in progress of a container that is not blocked, because that container would be stopped at once. Call it whenever a
// container that sidecars wait for may have ended. The caller holds the mutex.
func (p *podState) unblockStops() {
	for start := range p.starts {
		if p.termination.inProgress() && !p.isBlocked(start.role) {
			start.cancel(ErrTerminating)
		}
	}
	p.wake()
}

// cancelStarts cancels the contexts of all calls of [Terminator.Start] in progress.
func (p *podState) cancelStarts() {
	for start := range p.starts {
		start.cancel(ErrTerminating)
	}
}

// markFailing notes that StopContainer has failed for a stop. isOnlyOne is false if another stop of the pod
// is failing too: the caller records only one event per pod. It locks the mutex.
func (p *podState) markFailing(s *containerStop) (isOnlyOne bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.failing = true
	for _, other := range p.stops {
		if other != s && other.failing && other.inProgress {
			return false
		}
	}
	return true
}

// agentCall is one call of the agent's code, such as a hook or a list, for spawn.
type agentCall struct {
	ctx       context.Context // has the logger for a panic
	name      string          // of the call, for the log and for Close
	apiPod    *v1.Pod
	container string       // the container that the call is about; "": the whole pod
	do        func() error // makes the call
	returned  func(error)  // is called next, with the error of do; if do panicked, the error starts with name
	// previousErr is the error of the call before this one, if the agent's code is called again and again; nil: none. A panic
	// like that of the previous call is not logged again.
	previousErr error
}

// spawn makes a call of the agent's code in another goroutine, and then calls c.returned with its error. A panic becomes an
// error. It is logged, unless the previous call (c.previousErr) panicked in the same way. Close waits for the goroutine, and
// names it if it hangs.
func (p *podState) spawn(c agentCall) {
	p.terminator.calls.Go(func() string { return c.name + " of " + fullName(c.apiPod, c.container) }, func() {
		call.GuardRepeated(c.ctx, c.name, c.previousErr, logValues(c.apiPod, c.container), c.do, c.returned)
	})
}

// watchCall starts to watch a call of the agent's code: if returned is not called within 5 s, watchCall logs that.
func watchCall(ctx context.Context, name string, apiPod *v1.Pod, container string) (returned func() bool) {
	const limit = 0 // the call should return at once
	return call.Watch(ctx, name, limit, logValues(apiPod, container)()...)
}

// logValues returns a function that makes the keys and values for a log line about a call of the agent's code. Most calls
// log nothing, and then nothing is made.
func logValues(apiPod *v1.Pod, container string) func() []any {
	return func() []any { return []any{"pod", klog.KObj(apiPod), "containerName", container} }
}
