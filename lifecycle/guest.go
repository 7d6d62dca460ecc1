package lifecycle

import (
	"context"
	"slices"
	"strings"
)

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

// startingLocked are the starts under way for a pod, by the names of the containers.
func (tr *Terminator) startingLocked(state *podState) []*guest {
	var starting []*guest
	for g := range tr.guests {
		if g.state == state && g.starts {
			starting = append(starting, g)
		}
	}
	slices.SortFunc(starting, func(a, b *guest) int { return strings.Compare(a.name, b.name) })
	return starting
}

// bindGuestsLocked ties the calls under way for a pod to its termination: starts are
// told that they come too late, and postStart hooks end with the grace.
func (tr *Terminator) bindGuestsLocked(state *podState, t *Termination) {
	for g := range tr.guests {
		switch {
		case g.state != state:
		case g.starts:
			g.cancel(ErrTerminating)
		default:
			g.endWith(t)
		}
	}
}
