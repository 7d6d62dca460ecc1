package lifecycle

import (
	"context"
	"maps"
	"slices"
	"strings"

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
	guests      map[*guest]struct{}     // the agent's calls that are under way
}

// guest is a call of the agent's that runs in the agent's own goroutine, and that
// ends when its pod does.
type guest struct {
	name   string // of its container
	starts bool   // it starts the container; else it runs a postStart hook
	cancel context.CancelCauseFunc
	state  *podState  // of its pod
	awaits *container // what stands for its container in the pod's termination; nil: nothing
}

// endWith ends the context of a postStart hook with the grace of its pod.
func (g *guest) endWith(t *Termination) {
	context.AfterFunc(t.grace, func() { g.cancel(context.Cause(t.grace)) })
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

// withStarted adds to the containers that run those that [Terminator.Start] has
// started and that the caller, who looked before that, has not seen. Without an
// ExitWatcher nobody knows which of them still run, and the caller is believed. Those
// whose preStop has run are marked.
func (s *podState) withStarted(running []Container, exits ExitWatcher) []Container {
	all := slices.Clone(running)
	for _, name := range slices.Sorted(maps.Keys(s.started)) {
		id := s.started[name]
		known := func(c Container) bool { return c.ID == id }
		if exits != nil && !slices.ContainsFunc(running, known) && !isClosed(exits.Exited(id)) {
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

// isClosed tells whether a channel is closed.
func isClosed(c <-chan struct{}) bool {
	select {
	case <-c:
		return true
	default:
		return false
	}
}

// starting are the starts under way, in the order of their containers' names.
func (s *podState) starting() []*guest {
	starting := slices.DeleteFunc(slices.Collect(maps.Keys(s.guests)), func(g *guest) bool { return !g.starts })
	slices.SortFunc(starting, func(a, b *guest) int { return strings.Compare(a.name, b.name) })
	return starting
}

// bind ties what is under way for a pod to its termination: starts are told that
// they come too late, postStart hooks end with the grace, and kills of single
// containers stand for the containers they kill.
func (s *podState) bind(t *Termination) {
	for g := range s.guests {
		if g.starts {
			g.cancel(ErrTerminating)
		} else {
			g.endWith(t)
		}
	}
	for i := range t.containers {
		if kill := s.kills[t.containers[i].result.ID]; kill != nil && !t.containers[i].starting {
			t.containers[i].kill = &kill.containers[0]
		}
	}
}
