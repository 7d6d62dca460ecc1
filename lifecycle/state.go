package lifecycle

import (
	"iter"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
)

// state is what is known of a pod: a slot for each container, and the termination. All
// methods of a [Pod] use it, so that each of them knows what the others have done. After
// [Pod.Forget] the next life of the pod takes it over, with what is still under way.
type state struct {
	mu      sync.Mutex   // guards everything about the pod; not held while anything blocks
	pod     *v1.Pod      // as last passed to [Terminator.Pod]; nil: it was passed to no handle
	current *Termination // under way or ended; nil: the pod was not terminated
	live    *live        // nil: no attempt is known
}

// live has what is needed while attempts are known.
type live struct {
	settings  *settings
	owner     *Pod   // whose life it is
	namespace string // of the pod
	name      string
	slots     []*slot
	first     [1]*slot         // where slots begins
	byName    map[string]*slot // nil while there are few slots
	turns     turns
	stopping  *unit // whose StopPod is under way; nil: none
	inherited bool  // from a former life, and nothing else is known
	failing   int   // number of containers whose StopContainer fails
}

// fewSlots is up to how many slots a pod is searched without a map, which takes memory.
const fewSlots = 8

// slot returns the slot of a name, nil if there is none.
func (l *live) slot(name string) *slot {
	if l == nil {
		return nil
	}
	if l.byName != nil {
		return l.byName[name]
	}
	if i := slices.IndexFunc(l.slots, func(s *slot) bool { return s.name == name }); i >= 0 {
		return l.slots[i]
	}
	return nil
}

// find returns the last attempt with an ID other than except, nil if there is none.
func (l *live) find(id string, except *attempt) *attempt {
	for _, s := range l.slots {
		if a := s.find(id, except); a != nil {
			return a
		}
	}
	return nil
}

// addSlot adds a slot.
func (l *live) addSlot(name string) *slot {
	s := &slot{name: name}
	if s.attempts = s.first[:0]; l.slots == nil {
		l.slots = l.first[:0]
	}
	l.slots = append(l.slots, s)
	if l.byName == nil && len(l.slots) > fewSlots {
		l.byName = make(map[string]*slot, 2*fewSlots)
		for _, other := range l.slots {
			l.byName[other.name] = other
		}
	}
	if l.byName != nil {
		l.byName[name] = s
	}
	return s
}

// attempts yields all attempts of the pod. The slots must not be changed meanwhile.
func (s *state) attempts() iter.Seq[*attempt] {
	return func(yield func(*attempt) bool) {
		if s.live == nil {
			return
		}
		for _, slot := range s.live.slots {
			for _, a := range slot.attempts {
				if !yield(a) {
					return
				}
			}
		}
	}
}

// add adds an attempt in the slot of a name.
func (s *state) add(pod *v1.Pod, name, id string) *attempt {
	a := &attempt{state: s, pod: pod, result: ContainerResult{Name: name, ID: id}, knownAt: time.Now()}
	a.calls, a.exits.of = calls{mu: &s.mu, idle: a}, a
	slot := s.live.slot(name)
	if slot == nil {
		slot = s.live.addSlot(name)
	}
	slot.add(a)
	return a
}

// named returns the attempt that has the ID that a request names, and adds it if there is
// none. It is the last one that had the ID, in whichever slot, which may have ended, unless the
// pod's status says that it was started again since.
func (s *state) named(pod *v1.Pod, named Container) *attempt {
	if slot := s.live.slot(named.Name); slot != nil {
		slot.removeUnknown(func(a *attempt) bool { return a.start.returnedAt.IsZero() })
	}
	a := s.find(pod, named.ID)
	startedAt := startOf(pod, named.ID)
	if a != nil && a.isReused(startedAt) {
		s.end(a) // the ID is another container's now, which must not be stopped for this one
		a = nil
	}
	if a == nil {
		a = s.add(pod, named.Name, named.ID)
	}
	if a.run == nil {
		a.pod, a.startedAt, a.flags.unlisted = pod, startedAt, false
		a.flags.hookDone = a.flags.hookDone || named.PreStopDone
	}
	return a
}

// find returns the last attempt with an ID, nil if there is none. It adds again one that has
// ended in the current termination.
func (s *state) find(pod *v1.Pod, id string) *attempt {
	if a := s.live.find(id, nil); a != nil {
		return a
	}
	r := s.current.recordOf(id)
	if r == nil {
		return nil
	}
	a := s.add(pod, r.name, id)
	a.result, a.startedAt, a.endedAt = r.unpack(), r.startTime(), time.Unix(0, s.current.endedAt)
	a.flags = flags{hookDone: true, announced: true, obsolete: true}
	return a
}

// end says that an attempt that is not being stopped has ended.
func (s *state) end(a *attempt) {
	if a.isStuck() {
		a.result.Outcome, a.result.Err = NotFound, nil
	}
	s.drop(a)
}

// drop removes an attempt of which nothing is to be known any more, once nothing is at work
// for it.
func (s *state) drop(a *attempt) {
	a.flags.obsolete = true
	if slot := s.live.slot(a.result.Name); slot != nil {
		slot.sweep()
	}
}

// removeIfEmpty ends a life of which nothing is known.
func (s *state) removeIfEmpty() {
	if s.live == nil || slices.ContainsFunc(s.live.slots, func(slot *slot) bool { return len(slot.attempts) > 0 }) {
		return
	}
	owner := s.live.owner
	s.live = nil
	if s.current == nil {
		owner.leave()
	}
}

// sweep removes the attempts of which nothing is to be known any more, and ends a life
// without any.
func (s *state) sweep() {
	if s.live == nil {
		return
	}
	for _, slot := range s.live.slots {
		slot.sweep()
	}
	s.removeIfEmpty()
}
