package lifecycle

import (
	"maps"
	"slices"

	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// podState is what a terminator knows of one pod, until [Terminator.Forget]. The
// terminator's mutex guards it.
type podState struct {
	termination *Termination            // nil: the pod is not being terminated
	kills       map[string]*Termination // of single containers, under way, by container ID
	hooksRun    map[string]string       // the ID of each container, by name, whose preStop has run
	started     map[string]string       // the ID of each container, by name, that Start has started
}

// podKey is how a pod is known: by its UID, or by its namespace and name where
// it has none.
func podKey(pod *v1.Pod) types.UID {
	if pod.UID != "" {
		return pod.UID
	}
	return types.UID(pod.Namespace + "/" + pod.Name)
}

// stateLocked finds what is known of a pod.
func (tr *Terminator) stateLocked(pod *v1.Pod) *podState {
	key := podKey(pod)
	state := tr.pods[key]
	if state == nil {
		state = &podState{}
		tr.pods[key] = state
	}
	return state
}

// put sets a key of a map that is made when it is first needed.
func put[K comparable, V any](m *map[K]V, key K, value V) {
	if *m == nil {
		*m = map[K]V{}
	}
	(*m)[key] = value
}

// exitedOf asks which of the containers that [Terminator.Start] has started for a pod
// have exited; nil if nobody knows. It holds no lock while it asks.
func (tr *Terminator) exitedOf(pod *v1.Pod) map[string]bool {
	if tr.opts.Exits == nil {
		return nil
	}
	exited := map[string]bool{}
	for _, id := range tr.startedOf(pod) {
		exited[id] = isClosed(tr.opts.Exits.Exited(id))
	}
	return exited
}

// startedOf are the IDs of the containers that were started for a pod.
func (tr *Terminator) startedOf(pod *v1.Pod) []string {
	tr.mu.Lock()
	defer tr.mu.Unlock()
	return slices.Collect(maps.Values(tr.stateLocked(pod).started))
}

// isClosed tells whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// withStarted adds to the containers that run those that [Terminator.Start] has
// started and that the caller, who looked before that, has not seen. Where nobody
// knows which of them have exited, the caller is believed. Those whose preStop has
// run are marked.
func (s *podState) withStarted(running []Container, exited map[string]bool) []Container {
	all := slices.Clone(running)
	for _, name := range slices.Sorted(maps.Keys(s.started)) {
		id := s.started[name]
		known := slices.ContainsFunc(running, func(c Container) bool { return c.ID == id })
		if exited != nil && !exited[id] && !known {
			all = append(all, Container{Name: name, ID: id})
		}
	}
	for i, c := range all {
		all[i].PreStopDone = c.PreStopDone || s.hookRan(c)
	}
	return all
}

// hookRan tells whether the preStop hook of a container has run already, or has had
// its chance.
func (s *podState) hookRan(c Container) bool {
	if id, ran := s.hooksRun[c.Name]; ran && id == c.ID {
		return true
	}
	return s.termination != nil && s.termination.has(c.ID)
}

// bindKills has the kills of single containers under way stand for them in the
// termination of their pod.
func (s *podState) bindKills(t *Termination) {
	for i := range t.containers {
		if kill := s.kills[t.containers[i].result.ID]; kill != nil && !t.containers[i].starting {
			t.containers[i].kill = &kill.containers[0]
		}
	}
}
