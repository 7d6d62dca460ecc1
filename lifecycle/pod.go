package lifecycle

import (
	"context"
	"math"
	"sync"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/klog/v2"

	"github.com/kubegrace/kubegrace/internal/call"
)

// pod is what the terminator keeps about a pod: its termination, its starts, and the stops of its
// containers. Only the runtime knows what is running.
type pod struct {
	terminator *Terminator
	key        types.UID

	mu          sync.Mutex // guards the fields below, the stops and the termination; methods that do not lock it need it held
	dropped     bool       // no longer in Terminator.pods
	lists       lists
	starts      map[*start]struct{} // in progress, or returned without a list since
	stops       map[run]*stop
	termination *Termination
	unit        *unit         // the newest unit; nil: containers stop one by one
	postStarts  int           // number of PostStart calls in progress
	nextStop    chan struct{} // closed when the next stop begins; nil: nobody waits for it
}

// run identifies one run of a container.
type run struct {
	id    string
	began int64 // Unix time in nanoseconds; 0: unknown
}

// runOf returns the run that c identifies.
func runOf(c Container) run {
	if c.Began.IsZero() {
		return run{id: c.ID}
	}
	return run{id: c.ID, began: c.Began.UnixNano()}
}

func newPod(tr *Terminator, key types.UID) *pod {
	return &pod{terminator: tr, key: key, starts: map[*start]struct{}{}, stops: map[run]*stop{}}
}

// unlock unlocks the mutex. Before that, it drops the stops of containers that have ended, unless a
// termination or a PostStart may still read them, and the pod itself if nothing of it remains.
func (p *pod) unlock() {
	if !p.termination.inProgress() && p.postStarts == 0 {
		for key, s := range p.stops {
			if s.result.Outcome.hasEnded() && !s.inProgress() {
				delete(p.stops, key)
			}
		}
	}
	if p.termination == nil && len(p.stops)+len(p.starts)+p.postStarts == 0 && p.lists.inProgress == nil && !p.dropped {
		p.dropped = true
		p.terminator.mu.Lock()
		delete(p.terminator.pods, p.key)
		p.terminator.mu.Unlock()
	}
	p.mu.Unlock()
}

// forget drops everything except starts and stops in progress.
func (p *pod) forget() {
	if t := p.termination; t.inProgress() && t.needsList() {
		t.minList = math.MaxInt // no list can complete it any more
	}
	p.termination.wake()
	p.termination = nil
	for c := range p.starts {
		if c.returned {
			delete(p.starts, c)
		}
	}
	for key, s := range p.stops {
		if !s.inProgress() {
			delete(p.stops, key)
		}
	}
}

// stop returns the stop of a run. It begins the stop, or shortens one in progress. A stop that was
// given up resumes under its old deadline.
func (p *pod) stop(ctx context.Context, apiPod *v1.Pod, c Container, until deadline, options stopOptions) *stop {
	s := p.stopOf(c)
	if s == nil {
		s = newStop(p, c)
		p.stops[s.run] = s
	}
	if s.run.began == 0 && !c.Began.IsZero() { // its first caller did not know Began
		delete(p.stops, s.run)
		s.run, s.result.Began = runOf(c), c.Began
		p.stops[s.run] = s
	}
	if options.ignoreOrder && !s.options.ignoreOrder {
		s.options.ignoreOrder = true
		s.unblock()
	}
	if s.inProgress() {
		s.shorten(until)
		return s
	}
	s.begin(ctx, apiPod, until, options)
	if p.nextStop != nil {
		close(p.nextStop)
		p.nextStop = nil
	}
	return s
}

// stopOf returns the stop of a run; nil if there is none. If Began is zero, any run with the ID
// matches, preferably one that is being stopped.
func (p *pod) stopOf(c Container) *stop {
	if s := p.stops[runOf(c)]; s != nil {
		return s
	}
	if s := p.stops[run{id: c.ID}]; !c.Began.IsZero() {
		if s != nil && s.result.Outcome.hasEnded() && c.Began.After(s.firstCallAt) {
			return nil // it began after that stop
		}
		return s
	}
	var found *stop
	for _, s := range p.stops {
		if s.run.id == c.ID && (found == nil || s.inProgress()) {
			found = s
		}
	}
	return found
}

// dropEnded drops stops that were given up and whose runs have ended since.
func (p *pod) dropEnded(hasEnded func(*stop) bool) {
	for key, s := range p.stops {
		if hasEnded(s) && s.isGivenUp() {
			delete(p.stops, key)
		}
	}
}

// isBlocked reports whether containers of a role must wait. A sidecar waits for main containers, and
// for sidecars declared after it, that are being stopped, could not be stopped, or may have been
// started. A container that is not running blocks nothing (k/k#125880).
func (p *pod) isBlocked(r role) bool {
	if !r.isSidecar() {
		return false
	}
	main, last := p.blockers()
	return main || last > r
}

// blockers reports whether a main container blocks the sidecars, and returns the last sidecar that
// blocks the earlier ones; roleUnknown if there is none.
func (p *pod) blockers() (main bool, last role) {
	last = roleUnknown
	block := func(r role) {
		if main = main || r == roleMain; r.isSidecar() {
			last = max(last, r)
		}
	}
	for _, s := range p.stops {
		if !s.result.Outcome.hasEnded() || s.isListedAgain() {
			block(s.role)
		}
	}
	for c := range p.starts {
		block(c.role)
	}
	return main, last
}

// unblockStops unblocks the stops that no longer wait for another container. During a termination it
// also cancels the starts of such containers.
func (p *pod) unblockStops() {
	main, last := p.blockers()
	hasTurn := func(r role) bool { return !r.isSidecar() || !main && last <= r }
	for _, s := range p.stops {
		if s.role.isSidecar() && hasTurn(s.role) {
			s.unblock()
		}
	}
	for c := range p.starts {
		if p.termination.inProgress() && hasTurn(c.role) {
			c.cancel(ErrTerminating)
		}
	}
}

// cancelStarts cancels the contexts of all starts in progress.
func (p *pod) cancelStarts() {
	for c := range p.starts {
		c.cancel(ErrTerminating)
	}
}

// isFirstToFail marks a stop as failing, and reports whether no other stop in progress is failing. It
// locks the mutex.
func (p *pod) isFirstToFail(s *stop) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	s.failing = true
	for _, other := range p.stops {
		if other != s && other.failing && other.inProgress() {
			return false
		}
	}
	return true
}

// spawn runs callback, which calls embedder code, in a goroutine that Close waits for. It then passes
// the error to returned. A panic becomes an error that starts with name. container is "" if the
// callback is about the whole pod.
func (p *pod) spawn(ctx context.Context, name string, apiPod *v1.Pod, container string, callback func() error, returned func(error)) {
	p.spawnAfter(ctx, nil, name, apiPod, container, callback, returned)
}

// spawnAfter is spawn for a repeated call. It does not log a panic that is already in previous, the error
// of the call before.
func (p *pod) spawnAfter(ctx context.Context, previous error, name string, apiPod *v1.Pod, container string, callback func() error, returned func(error)) {
	p.terminator.calls.Go(func() string { return name + " of " + fullName(apiPod, container) }, func() {
		call.GuardAbout(ctx, name, previous, logValues(apiPod, container), callback, returned)
	})
}

// logValues returns a function that returns the key-value pairs for the log line of a panic.
func logValues(apiPod *v1.Pod, container string) func() []any {
	return func() []any { return []any{"pod", klog.KObj(apiPod), "containerName", container} }
}
