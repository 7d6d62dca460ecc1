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

// podTable has what a terminator knows of one pod: for each container whether it was
// started, whether its preStop hook has run, and whether it has ended. Start,
// KillContainer and KillPod all use the same table, so that each of them knows what the
// others have done.
//
// A function whose name ends in Locked is called with the mutex held. Where it waits,
// waitLocked unlocks the mutex meanwhile.
type podTable struct {
	terminator *Terminator

	mu         sync.Mutex   // guards everything about the pod; not held while anything blocks
	current    *Termination // under way or ended; nil: the pod was not terminated
	containers []*container
	changed    chan struct{} // closed when something has changed; nil: nothing waits for that
	failing    int32         // number of containers whose StopContainer fails
	closed     bool          // the terminator was closed
	removed    bool          // it is no longer in its shard
}

// wakeLocked makes each waitLocked check its condition again.
func (p *podTable) wakeLocked() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
}

// unlock unlocks the mutex after a change.
func (p *podTable) unlock() {
	p.wakeLocked()
	p.mu.Unlock()
}

// withoutMutexLocked calls do, which may block, with the mutex unlocked.
func (p *podTable) withoutMutexLocked(do func()) {
	p.mu.Unlock()
	defer p.mu.Lock()
	do()
}

// waitLocked waits until ready returns true, until the time that the function until
// returns, or until interrupt is closed. The mutex is unlocked meanwhile. ready is called
// after each change in the table, and so is until, whose result may change. If until is
// nil or returns the zero time, there is no time limit.
func (p *podTable) waitLocked(ready func() bool, until func() time.Time, interrupt <-chan struct{}) {
	for interrupted := false; !interrupted && !ready(); {
		left := time.Duration(math.MaxInt64)
		if until != nil && !until().IsZero() {
			left = time.Until(until())
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
		case <-interrupt:
			interrupted = true
		}
		timer.Stop()
		p.mu.Lock()
	}
}

// wake is called by the timer of waitLocked. Such a timer takes less memory than one with a
// channel.
func (p *podTable) wake() {
	p.mu.Lock()
	p.unlock()
}

// podKey returns the key of a pod: its UID, or NAMESPACE/NAME if it has none.
func podKey(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(pod.Namespace + "/" + pod.Name)
}

// shard has some of a terminator's pods. With one mutex for all pods, killing many pods at
// once would spend most of its time waiting for that mutex.
type shard struct {
	mu   sync.Mutex // not held while anything blocks; may be locked while a table's is held
	pods map[types.UID]*podTable
}

// shardOf returns the shard that a pod belongs to.
func (tr *Terminator) shardOf(key types.UID) *shard {
	return &tr.shards[maphash.String(tr.seed, string(key))%uint64(len(tr.shards))]
}

// lock returns the table of a pod, locked. If there is none, it makes one, or returns nil
// if create is false. A terminator that is closed does not keep the new table.
func (tr *Terminator) lock(key types.UID, create bool) *podTable {
	for {
		p := tr.find(key, create)
		if p == nil {
			return nil
		}
		p.mu.Lock()
		if !p.removed {
			return p
		}
		p.mu.Unlock()
	}
}

// find returns the table of a pod, not locked. It may be removed before the caller locks
// it. The new table is allocated before the shard is locked, even if it turns out not to be
// needed, because an allocation may have to help the garbage collector while others wait.
func (tr *Terminator) find(key types.UID, create bool) *podTable {
	s, created := tr.shardOf(key), (*podTable)(nil)
	if create {
		created = &podTable{terminator: tr}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if p := s.pods[key]; p != nil || !create {
		return p
	}
	if created.closed = tr.closed.Load(); !created.closed {
		s.pods[key] = created
	}
	return created
}

// removeIfEmptyLocked removes a table without termination and containers from its shard.
func (p *podTable) removeIfEmptyLocked(key types.UID) {
	if p.current != nil || len(p.containers) > 0 || p.removed {
		return
	}
	p.removed = true
	s := p.terminator.shardOf(key)
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.pods[key] == p { // it is not if it was made after the terminator was closed
		delete(s.pods, key)
	}
}

// addLocked adds a container to the table. It marks those of the same name that have ended,
// or whose hook RunOnExit has run, as obsolete.
func (p *podTable) addLocked(pod *v1.Pod, name, id string) *container {
	c := &container{table: p, pod: pod, result: ContainerResult{Name: name, ID: id}}
	p.containers = append(p.containers, c)
	p.markReplacedLocked(c, func(other *container) bool {
		return other.result.ID != id && (other.result.Outcome != "" || other.hookDone && !other.started)
	})
	return c
}

// markReplacedLocked marks containers as obsolete that c replaces: those that were added
// before it, have the same name and satisfy the condition. It leaves those that are being
// stopped, and those of the termination that is under way. It also leaves containers that
// are stuck, because they may still run beside c, unless c has the same ID.
func (p *podTable) markReplacedLocked(c *container, condition func(*container) bool) {
	for _, older := range p.containers[:slices.Index(p.containers, c)] {
		if older.result.Name == c.result.Name && older.run == nil && !older.isPartOf(p.current) &&
			(!older.isStuck() || older.result.ID == c.result.ID) && condition(older) {
			older.obsolete, older.starting.err = true, nil
		}
	}
}

// findOrAddLocked returns the container that a request names, and adds it if the table does
// not have it. If the container with this ID has ended, and the pod's status says that it
// was started later, it is another container: runtimes of processes reuse their IDs.
func (p *podTable) findOrAddLocked(pod *v1.Pod, named Container) *container {
	startedAt := startOf(pod, named.ID)
	var c *container
	for _, known := range p.containers { // the last one, if several had the ID
		if known.result.ID == named.ID && named.ID != "" {
			c = known
		}
	}
	if c == nil || c.hasEnded() && !startedAt.Equal(c.startedAt) && !isBefore(startedAt, c.endedAt) {
		if c != nil && c.isStuck() { // the ID is another container's now, which must not be stopped for this one
			c.result.Outcome, c.result.Err = NotFound, nil
		}
		c = p.addLocked(pod, named.Name, named.ID)
		p.markReplacedLocked(c, (*container).mayHaveStarted) // c is what that call has started
	}
	if c.run == nil {
		c.pod, c.startedAt, c.unlisted = pod, startedAt, false
		c.hookDone = c.hookDone || named.PreStopDone
	}
	return c
}

// isBefore reports whether a time in a pod's status is before another time. Times that the
// API server has stored have whole seconds, so the two are compared in whole seconds then.
func isBefore(statusTime, other time.Time) bool {
	if statusTime.Nanosecond() == 0 {
		other = other.Truncate(time.Second)
	}
	return statusTime.Before(other)
}

// chooseLocked returns the containers that a termination has to stop: those of the request,
// or of the pod's status if there are none, and always those that are being started or
// stopped, that are stuck, or that Start has started and that are not known to have
// exited.
//
// Containers that may run, but of which the state or the ID is not known, are added as
// unknown containers, which are not in the table. If byStatus is true, the containers are
// those of the status, and those without a state in it are unknown as well.
func (p *podTable) chooseLocked(pod *v1.Pod, named []Container, byStatus bool) []*container {
	if byStatus {
		named = append(named, p.withoutStateLocked(pod, named)...)
	}
	chosen := make([]*container, 0, max(len(named), len(p.containers)))
	for _, n := range named {
		isKnown := func(c *container) bool { // by Start
			return c.result.Name == n.Name && c.isOfStart() && c.mayRun(pod)
		}
		if n.ID != "" {
			if c := p.findOrAddLocked(pod, n); !slices.Contains(chosen, c) {
				chosen = append(chosen, c)
			}
		} else if !slices.ContainsFunc(p.containers, isKnown) { // the loop below adds one that is known
			chosen = append(chosen, unknownContainer(p, n.Name))
		}
	}
	for _, c := range p.containers {
		if !slices.Contains(chosen, c) && c.mayRun(pod) {
			c.unlisted = c.unlisted || c.started && c.run == nil
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// withoutStateLocked returns the main containers and sidecars that may run although they
// are not in running: neither the pod's status nor the table says how they are. If Start
// has started any container, it is taken to have started all that run.
func (p *podTable) withoutStateLocked(pod *v1.Pod, running []Container) (unknown []Container) {
	if slices.Contains([]v1.PodPhase{v1.PodPending, v1.PodSucceeded, v1.PodFailed}, pod.Status.Phase) {
		return nil
	}
	for spec, role := range specsOf(pod) {
		runs := func(c Container) bool { return c.Name == spec.Name }
		known := func(c *container) bool {
			return c.isOfStart() || // before a termination, a container that has ended may have been started again
				c.result.Name == spec.Name && c.result.ID != "" && (p.current != nil || c.mayRun(pod))
		}
		if role >= roleMain && !slices.ContainsFunc(running, runs) && !slices.ContainsFunc(p.containers, known) && !hasState(pod, spec.Name) {
			unknown = append(unknown, Container{Name: spec.Name})
		}
	}
	return unknown
}

// restoreRecordsLocked adds the containers of a termination that has ended to the table.
// removeObsoleteLocked removes them again unless something is done about them.
func (p *podTable) restoreRecordsLocked() {
	t := p.current
	for i := range t.records {
		r := &t.records[i]
		known := func(c *container) bool { return c.result.ID == r.id }
		if r.id != "" && !slices.ContainsFunc(p.containers, known) {
			p.containers = append(p.containers, &container{
				table: p, result: r.unpack(), deadline: t.deadline,
				startedAt: time.Unix(int64(r.startedAt), 0), endedAt: time.Unix(0, t.endedAt), obsolete: true, announced: true, hookDone: true,
			})
		}
	}
}

// removeObsoleteLocked removes obsolete containers for which nothing is under way.
func (p *podTable) removeObsoleteLocked() {
	p.containers = slices.DeleteFunc(p.containers, func(c *container) bool {
		return c.obsolete && c.starting.cancel == nil && c.run == nil && c.goroutines == 0
	})
	if len(p.containers) == 0 {
		p.containers = nil
	}
}
