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

// pod holds what the terminator remembers of a pod: its termination, its starts, and the stops of its
// containers. It does not know what runs; the runtime lists that.
type pod struct {
	terminator *Terminator
	key        types.UID

	mu          sync.Mutex // guards the fields below, and those of the stops and the termination; methods need it held
	dropped     bool       // it is no longer in Terminator.pods
	lists       lists
	starts      map[*start]struct{} // under way, or returned so recently that no list shows the result
	stops       map[run]*stop
	termination *Termination
	unit        *unit         // the newest one; nil: the containers stop one by one
	postStarts  int           // calls of PostStart under way
	nextStop    chan struct{} // closed when the next stop begins; nil: nobody waits for that
}

// run identifies one run of a container.
type run struct {
	id    string
	began int64 // in nanoseconds since 1970; 0: not known
}

// runOf returns the identity of a container's run.
func runOf(c Container) run {
	if c.Began.IsZero() {
		return run{id: c.ID}
	}
	return run{id: c.ID, began: c.Began.UnixNano()}
}

func newPod(tr *Terminator, key types.UID) *pod {
	return &pod{terminator: tr, key: key, starts: map[*start]struct{}{}, stops: map[run]*stop{}}
}

// unlock unlocks the mutex. Before that it drops the stops of containers that have ended, unless a
// termination or a PostStart may still read them, and the pod if nothing of it is left to remember.
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

// forget drops everything but starts and stops that are under way.
func (p *pod) forget() {
	if t := p.termination; t.inProgress() && t.needsList() {
		t.minList = math.MaxInt // no list answers it any more
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

// stop returns the stop of a run. It begins the stop if it is not under way, and shortens it otherwise.
// A stop that was given up resumes under its old deadline.
func (p *pod) stop(ctx context.Context, apiPod *v1.Pod, c Container, until deadline, options stopOptions) *stop {
	s := p.stopOf(c)
	if s == nil {
		s = newStop(p, c)
		p.stops[s.run] = s
	}
	if s.run.began == 0 && !c.Began.IsZero() { // the caller that began it did not know Began
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

// stopOf returns the stop of a run, nil if there is none. If Began is zero, any run with the ID matches,
// one that is being stopped first.
func (p *pod) stopOf(c Container) *stop {
	if s := p.stops[runOf(c)]; s != nil {
		return s
	}
	if s := p.stops[run{id: c.ID}]; !c.Began.IsZero() {
		if s != nil && s.result.Outcome.hasEnded() && c.Began.After(s.firstCallAt) {
			return nil // it began when that one had been stopped
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

// dropEnded drops stops that were given up, and whose runs have ended since.
func (p *pod) dropEnded(hasEnded func(*stop) bool) {
	for key, s := range p.stops {
		if hasEnded(s) && s.isGivenUp() {
			delete(p.stops, key)
		}
	}
}

// isBlocked reports whether containers of a role have to wait. A sidecar waits for main containers, and
// for sidecars that are declared after it, if they are being stopped, could not be stopped, or may have
// been started. A container that does not run blocks nothing (k/k#125880).
func (p *pod) isBlocked(r role) bool {
	if !r.isSidecar() {
		return false
	}
	main, last := p.blockers()
	return main || last > r
}

// blockers reports whether a main container blocks the sidecars, and returns the role of the last sidecar
// that blocks those before it; roleUnknown if none does.
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

// unblockStops gives their turn to the stops that nothing blocks any more. During a termination it also
// cancels the starts of such containers.
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

// cancelStarts ends the contexts of the starts that are under way.
func (p *pod) cancelStarts() {
	for c := range p.starts {
		c.cancel(ErrTerminating)
	}
}

// isFirstToFail marks a stop as failing, and reports whether it is the only one under way that fails. It
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

// spawn calls do, which runs code of the embedder, in a goroutine for which Close waits. It then calls
// then with the error; a panic becomes an error, which names the code by what. container is "" if the
// code is about the whole pod.
func (p *pod) spawn(ctx context.Context, what string, apiPod *v1.Pod, container string, do func() error, then func(error)) {
	p.spawnAfter(ctx, nil, what, apiPod, container, do, then)
}

// spawnAfter is spawn after a call with an error: the same panic is not logged again.
func (p *pod) spawnAfter(ctx context.Context, before error, what string, apiPod *v1.Pod, container string, do func() error, then func(error)) {
	p.terminator.calls.Go(func() string { return what + " of " + fullName(apiPod, container) }, func() {
		call.GuardAbout(ctx, what, before, logValues(apiPod, container), do, then)
	})
}

// logValues returns the function that makes the key-value pairs for the log line of a panic.
func logValues(apiPod *v1.Pod, container string) func() []any {
	return func() []any { return []any{"pod", klog.KObj(apiPod), "containerName", container} }
}
