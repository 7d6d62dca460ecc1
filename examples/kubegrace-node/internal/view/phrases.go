package view

import (
	"fmt"
	"strings"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// The texts in this file are for readers who may not know this project or its terms. They never use the name
// of an outcome or of a phase in the code.

// doing says in a few words what a pod does. A pod that is ending has no such text, because each of its
// containers has one. draining says that a shutdown is under way, in which a running pod waits for its bucket.
func (p Pod) doing(draining bool) string {
	switch p.State {
	case Gone:
		if mayStillRun(p.outcome()) {
			return fmt.Sprintf("not stopped after %s: %s", duration.Text(p.Took), p.stopText())
		}
		return fmt.Sprintf("gone after %s: %s", duration.Text(p.Took), p.stopText())
	case Ending: // each of its containers has a text of its own
	case Running:
		if draining {
			return "runs until it is its bucket's turn"
		}
		return "runs"
	}
	return "not known"
}

// doing says in a few words how far the stop of a container has got.
func (c Container) doing() string {
	switch c.Phase {
	case lifecycle.PhaseHook:
		return "runs its preStop hook: " + c.HookText
	case lifecycle.PhaseWaiting:
		return "waits, a sidecar stops last"
	case lifecycle.PhaseStopping:
		return "got " + c.Signal + ", is ending"
	case lifecycle.PhaseEnded:
		return output.OutcomeText(c.Outcome)
	}
	return "is about to stop"
}

// stopText says how the stop of a whole pod ended.
func (p Pod) stopText() string {
	parts := []string{output.OutcomeText(p.outcome())}
	if p.Problem != "" && !mayStillRun(p.outcome()) {
		parts = append(parts, "but with an error")
	}
	for _, c := range p.Containers {
		switch {
		case c.Hook.Outcome == lifecycle.HookCompleted:
			parts = append(parts, "after a preStop hook of "+duration.Text(c.Hook.Took))
		case c.Hook.Outcome == lifecycle.HookFailed:
			parts = append(parts, "its preStop hook failed")
		case c.Hook.Outcome == lifecycle.HookSkipped:
			parts = append(parts, "its preStop hook had no time, or has run before")
		case c.hookWasCutOff():
			parts = append(parts, "its preStop hook was cut off")
		}
		if c.Sidecar && p.outcome() == lifecycle.OutcomeGraceful {
			parts = append(parts, "the sidecar last")
		}
	}
	return strings.Join(parts, ", ")
}

// mayStillRun reports whether an outcome means that the container may still run although its stop is over.
func mayStillRun(o lifecycle.Outcome) bool {
	return o == lifecycle.OutcomeRuntimeStuck || o == lifecycle.OutcomeLeftRunning
}

// hookWasCutOff reports whether the preStop hook was ended before it was complete. If a hook was ended because
// its container had exited, it does not count as cut off: it had nothing left to prepare.
func (c Container) hookWasCutOff() bool {
	return c.Hook.Outcome == lifecycle.HookAbandoned ||
		c.Hook.Outcome == lifecycle.HookCut && c.Hook.Cause != lifecycle.CauseContainerExited
}
