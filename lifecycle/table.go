package lifecycle

import (
	"hash/maphash"
	"math"
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podTable is what a terminator knows of one pod, container by container: what was
// started, whether its hook has run, whether it has ended. Start, KillContainer and
// KillPod all work on it, so that none of them begins from a part of what is known.
//
// Code whose name ends in Locked has the mutex. It reads from top to bottom all the
// same: where it waits, waitLocked lets go of the mutex.
type podTable struct {
	terminator *Terminator

	mu         sync.Mutex   // guards all of the pod; never held while anything blocks
	current    *Termination // under way, or ended; nil: the pod is not being terminated
	containers []*container
	changed    chan struct{} // closed when something has changed; nil: nobody waits
	failing    int32         // containers whose StopContainer fails
	closed     bool          // the agent stops
	released   bool          // the terminator does not know it any more
}

// wakeLocked has everybody who waits look again.
func (p *podTable) wakeLocked() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// unlock lets go of the table after a change.
func (p *podTable) unlock() {
	p.wakeLocked()
	p.mu.Unlock()
}

// asideLocked lets go of the table for code that may block.
func (p *podTable) asideLocked(do func()) {
	p.mu.Unlock()
	defer p.mu.Lock()
	do()
}

// waitLocked lets go of the table until ready, which is asked after each change, until
// the time that at gives, which may move, or until alarm is closed. A nil at, and a
// zero time, mean that there is no limit.
func (p *podTable) waitLocked(ready func() bool, at func() time.Time, alarm <-chan struct{}) {
	for over := false; !over && !ready(); {
		left := time.Duration(math.MaxInt64)
		if at != nil && !at().IsZero() {
			left = time.Until(at())
		}
		if left <= 0 {
			return
		}
		if p.changed == nil {
			p.changed = make(chan struct{})
		}
		changed, timer := p.changed, time.AfterFunc(left, p.wake)
		p.mu.Unlock()
		select {
		case <-changed:
		case <-alarm:
			over = true
		}
		timer.Stop()
		p.mu.Lock()
	}
}

// wake has everybody who waits look again, as time has gone by. A timer that calls it takes
// less memory than one with a channel.
func (p *podTable) wake() {
	p.mu.Lock()
	p.unlock()
}

// podKey is how a pod is known: by its UID, or by its namespace and name where
// it has none.
func podKey(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(pod.Namespace + "/" + pod.Name)
}

// shard is a part of the pods that a terminator knows. One mutex for all of them would
// have the pods of a node, when they are killed at once, queue for it longer than all
// else takes.
type shard struct {
	mu   sync.Mutex // never held while anything blocks; may be taken with a table's held
	pods map[types.UID]*podTable
}

// shardOf finds the part that a pod belongs to.
func (tr *Terminator) shardOf(key types.UID) *shard {
	return &tr.shards[maphash.String(tr.seed, string(key))%uint64(len(tr.shards))]
}

// lock gives the table of a pod, locked. It is nil for a pod of which nothing is known,
// unless there is something to be entered. A terminator that is closed keeps no table of
// a pod that is new to it.
func (tr *Terminator) lock(key types.UID, enter bool) *podTable {
	for {
		p := tr.find(key, enter)
		if p == nil {
			return nil
		}
		p.mu.Lock()
		if !p.released {
			return p
		}
		p.mu.Unlock()
	}
}

// find gives the table of a pod as lock does, which may have been released when it is
// locked. The new one is made before the mutex is taken, whether it is needed or not: who
// allocates memory may have to help the garbage collector, while others wait.
func (tr *Terminator) find(key types.UID, enter bool) *podTable {
	s, fresh := tr.shardOf(key), (*podTable)(nil)
	if enter {
		fresh = &podTable{terminator: tr}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[key]; p != nil || !enter {
		return p
	}
	if fresh.closed = tr.closed.Load(); !fresh.closed {
		s.pods[key] = fresh
	}
	return fresh
}

// releaseLocked lets go of a table that has nothing in it any more.
func (p *podTable) releaseLocked(key types.UID) {
	if p.current != nil || len(p.containers) > 0 || p.released {
		return
	}
	p.released = true
	s := p.terminator.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[key] == p { // else the terminator was closed before it could know it
		delete(s.pods, key)
	}
}

// addLocked puts a container into the table. Those of the same name that have ended
// before leave it.
func (p *podTable) addLocked(pod *v1.Pod, name, id string) *container {
	c := &container{table: p, pod: pod, result: ContainerResult{Name: name, ID: id}}
	p.containers = append(p.containers, c)
	p.dropLocked(c, func(other *container) bool {
		return other.result.ID != id && (other.result.Outcome != "" || other.hooked && !other.started) // the hook was run on its exit
	})
	return c
}

// dropLocked has containers leave the table that were entered before another one of their
// name, unless they are being stopped, or a part of the termination that is under way. One
// that is stuck may run beside the one that has taken its place, and stays; not if that has
// its ID, which the runtime would not have given away.
func (p *podTable) dropLocked(since *container, which func(*container) bool) {
	for _, c := range p.containers[:slices.Index(p.containers, since)] {
		if c.result.Name == since.result.Name && c.run == nil && !c.isPartOf(p.current) &&
			(!c.isStuck() || c.result.ID == since.result.ID) && which(c) {
			c.obsolete, c.startErr = true, nil
		}
	}
}

// nameLocked finds what is known of a container that a request names, or adds it. An
// ID whose container has ended stands for another one if the pod's status dates its
// start after that end: runtimes of processes use their names again.
func (p *podTable) nameLocked(pod *v1.Pod, named Container) *container {
	began := startOf(pod, named.ID)
	var c *container
	for _, known := range p.containers { // the last of several that had the ID
		if known.result.ID == named.ID && named.ID != "" {
			c = known
		}
	}
	if c == nil || c.hasEnded() && !began.Equal(c.began) && !isBefore(began, c.endedAt) {
		if c != nil && c.isStuck() { // else what has its ID now would be killed in its place
			c.result.Outcome, c.result.Err = NotFound, nil
		}
		c = p.addLocked(pod, named.Name, named.ID)
		p.dropLocked(c, (*container).isLost) // this is what it has started
	}
	if c.run == nil {
		c.pod, c.began, c.unseen = pod, began, false
		c.hooked = c.hooked || named.PreStopDone
	}
	return c
}

// isBefore tells whether a date in a status is before a moment. Dates that have been through
// the API server are in whole seconds, and so say nothing within the second.
func isBefore(date, moment time.Time) bool {
	if date.Nanosecond() == 0 {
		moment = moment.Truncate(time.Second)
	}
	return date.Before(moment)
}

// chooseLocked gives the containers that the termination of a pod is about: those that the
// request, or else the pod's status, names, and always those that are being started or
// stopped, that got stuck, or that Start has started and that are not known to have
// exited. Those that may run, though nobody knows that, or their ID, are added beside the
// table, as stuck; the status is asked for them unless the request or an earlier end says
// what runs.
func (p *podTable) chooseLocked(pod *v1.Pod, named []Container, byStatus bool) []*container {
	if byStatus {
		named = append(named, p.withoutStateLocked(pod, named)...)
	}
	chosen := make([]*container, 0, max(len(named), len(p.containers)))
	for _, n := range named {
		isKnown := func(c *container) bool { // by Start
			return c.result.Name == n.Name && c.isOfStart() && c.mayRun(pod)
		}
		if n.ID == "" && !slices.ContainsFunc(p.containers, isKnown) {
			chosen = append(chosen, unknownContainer(p, n.Name))
		} else if n.ID == "" {
			continue // it is among those below
		} else if c := p.nameLocked(pod, n); !slices.Contains(chosen, c) {
			chosen = append(chosen, c)
		}
	}
	for _, c := range p.containers {
		if !slices.Contains(chosen, c) && c.mayRun(pod) {
			c.unseen = c.unseen || c.started && c.run == nil
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// withoutStateLocked gives the main containers and sidecars, but for those that run, of
// which neither the pod's status nor the table says whether they do, though they may.
// Where Start has started some, it has started all that run.
func (p *podTable) withoutStateLocked(pod *v1.Pod, running []Container) (unknown []Container) {
	if slices.Contains([]v1.PodPhase{v1.PodPending, v1.PodSucceeded, v1.PodFailed}, pod.Status.Phase) {
		return nil
	}
	for spec, role := range specsOf(pod) {
		runs := func(c Container) bool { return c.Name == spec.Name }
		known := func(c *container) bool {
			return c.isOfStart() || // where the pod goes on, one that has ended is started again
				c.result.Name == spec.Name && c.result.ID != "" && (p.current != nil || c.mayRun(pod))
		}
		if role >= roleMain && !slices.ContainsFunc(running, runs) && !slices.ContainsFunc(p.containers, known) && !hasState(pod, spec.Name) {
			unknown = append(unknown, Container{Name: spec.Name})
		}
	}
	return unknown
}

// reviveLocked puts the containers of an ended termination back into the table.
// tidyLocked removes those of them again that nobody has asked for.
func (p *podTable) reviveLocked() {
	t := p.current
	for i := range t.records {
		r := &t.records[i]
		known := func(c *container) bool { return c.result.ID == r.id }
		if r.id != "" && !slices.ContainsFunc(p.containers, known) {
			p.containers = append(p.containers, &container{
				table: p, result: r.unpack(), deadline: t.deadline,
				began: time.Unix(int64(r.began), 0), endedAt: time.Unix(0, t.endedAt), obsolete: true, told: true, hooked: true,
			})
		}
	}
}

// tidyLocked removes containers that nobody will ask for.
func (p *podTable) tidyLocked() {
	p.containers = slices.DeleteFunc(p.containers, func(c *container) bool {
		return c.obsolete && c.cancelStart == nil && c.run == nil && c.calls == 0
	})
	if len(p.containers) == 0 {
		p.containers = nil
	}
}
