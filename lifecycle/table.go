package lifecycle

import (
	"slices"
	"sync"
	"time"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podTable is what a terminator knows of one pod, container by container: what was
// started, whether its hook has run, whether it has ended. Start, KillContainer and
// KillPod all work on it, so that none of them begins from a part of what is known.
type podTable struct {
	terminator *Terminator

	mu         sync.Mutex   // guards all of the pod; never held while anything blocks
	current    *Termination // under way, or ended; nil: the pod is not being terminated
	containers []*container
	changed    chan struct{} // closed when something has changed; nil: nobody waits
	failing    int32         // containers whose StopContainer fails
	closed     bool          // the agent stops
}

// unlock lets go of the table after a change.
func (p *podTable) unlock() {
	if p.changed != nil {
		close(p.changed)
		p.changed = nil
	}
	p.mu.Unlock()
}

// changedLocked is closed at the next change.
func (p *podTable) changedLocked() <-chan struct{} {
	if p.changed == nil {
		p.changed = make(chan struct{})
	}
	return p.changed
}

// waitLocked lets go of the table until ready, which is asked after each change, or
// until over is closed.
func (p *podTable) waitLocked(ready func() bool, over <-chan struct{}) {
	for isOver := false; !isOver && !ready(); {
		changed := p.changedLocked()
		p.mu.Unlock()
		select {
		case <-changed:
		case <-over:
			isOver = true
		}
		p.mu.Lock()
	}
}

// podKey is how a pod is known: by its UID, or by its namespace and name where
// it has none.
func podKey(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(pod.Namespace + "/" + pod.Name)
}

// lock gives the table of a pod, locked.
func (tr *Terminator) lock(pod *v1.Pod) *podTable {
	key := podKey(pod)
	tr.mu.Lock()
	defer tr.mu.Unlock()
	p := tr.pods[key]
	if p == nil {
		p = &podTable{terminator: tr, closed: tr.closed}
		tr.pods[key] = p
	}
	p.mu.Lock()
	return p
}

// release lets go of a table that has nothing in it any more.
func (tr *Terminator) release(key types.UID) {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	p := tr.pods[key]
	if p == nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.current == nil && len(p.containers) == 0 {
		delete(tr.pods, key)
	}
}

// findLocked finds a container by its ID, the last of several that had it, nil if it
// is not in the table.
func (p *podTable) findLocked(id string) *container {
	for _, c := range slices.Backward(p.containers) {
		if c.result.ID == id && id != "" {
			return c
		}
	}
	return nil
}

// addLocked puts a container into the table. Those of the same name that have ended
// before leave it.
func (p *podTable) addLocked(name, id string) *container {
	for _, c := range p.containers {
		c.obsolete = c.obsolete || c.result.Name == name && c.result.ID != id && c.hasEnded() && !c.isPartOf(p.current)
	}
	c := &container{table: p, result: ContainerResult{Name: name, ID: id}}
	p.containers = append(p.containers, c)
	return c
}

// nameLocked finds what is known of a container that a request names, or adds it. An
// ID whose container has ended stands for another one if the pod's status dates its
// start after that end: runtimes of processes use their names again.
func (p *podTable) nameLocked(pod *v1.Pod, named Container) *container {
	if named.ID == "" {
		return p.unknownLocked(named.Name)
	}
	began := startOf(pod, named.ID)
	c := p.findLocked(named.ID)
	if c == nil || c.hasEnded() && began.After(c.endedAt) {
		c = p.addLocked(named.Name, named.ID)
	}
	if !c.ending {
		c.pod, c.began, c.unseen = pod, began, false
		c.hook.ran = c.hook.ran || named.PreStopDone
	}
	return c
}

// unknownLocked adds a container that may run, though nobody knows its ID: it cannot
// be stopped, and must not be said to have ended.
func (p *podTable) unknownLocked(name string) *container {
	for _, c := range p.containers {
		if c.result.Name == name && c.isUnknown() {
			return c
		}
	}
	c := p.addLocked(name, "")
	c.result.Phase, c.result.Outcome = PhaseEnded, RuntimeStuck
	c.result.Err = unknownContainer(name)
	c.endedAt = time.Now()
	return c
}

// chooseLocked gives the containers that the termination of a pod is about: those of the
// request, else those that run in the pod's status, and always those that are being
// started or stopped, that got stuck, or that Start has started and that are not known
// to have exited. Of a pod that is known to have ended no status is asked for.
func (p *podTable) chooseLocked(pod *v1.Pod, req Request, ended bool) []*container {
	named := req.Containers
	if named == nil {
		named = ContainersOf(pod)
		if !ended {
			named = append(named, p.withoutStateLocked(pod)...)
		}
	}
	chosen := make([]*container, 0, max(len(named), len(p.containers)))
	for _, n := range named {
		if c := p.nameLocked(pod, n); !slices.Contains(chosen, c) {
			chosen = append(chosen, c)
		}
	}
	for _, c := range p.containers {
		if !slices.Contains(chosen, c) && c.mayRun(pod) {
			c.unseen = c.started && !c.ending || c.unseen
			chosen = append(chosen, c)
		}
	}
	return chosen
}

// withoutStateLocked gives the containers of which neither the pod's status nor the
// table says whether they run. Where Start has started some, it has started all that
// run.
func (p *podTable) withoutStateLocked(pod *v1.Pod) (unknown []Container) {
	if slices.ContainsFunc(p.containers, func(c *container) bool { return c.started || c.starting() }) {
		return nil
	}
	for _, n := range stateless(pod) {
		if !slices.ContainsFunc(p.containers, func(c *container) bool { return c.result.Name == n.Name && c.result.ID != "" }) {
			unknown = append(unknown, n)
		}
	}
	return unknown
}

// reviveLocked puts the containers of an ended termination back into the table.
// tidyLocked removes those of them again that nobody has asked for.
func (p *podTable) reviveLocked() {
	t := p.current
	if t == nil || t.active != nil {
		return
	}
	for _, r := range t.records {
		if p.findLocked(r.id) == nil {
			p.containers = append(p.containers, r.revive(p, t))
		}
	}
}

// tidyLocked removes containers that nobody will ask for.
func (p *podTable) tidyLocked() {
	p.containers = slices.DeleteFunc(p.containers, func(c *container) bool {
		return c.obsolete && !c.starting() && !c.ending && c.calls == 0
	})
	if len(p.containers) == 0 {
		p.containers = nil
	}
}

// forgetLocked forgets the pod, but not what is under way.
func (p *podTable) forgetLocked() {
	p.current = nil
	for _, c := range p.containers {
		c.obsolete = true
	}
	p.tidyLocked()
}
