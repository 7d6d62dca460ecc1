package view

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// The words of this file are all that a reader gets, who may know neither this
// project nor its terms: no outcome or phase is shown by its name in the code.

// Doing says what a pod is doing, in a few words.
func (p Pod) Doing(draining bool) string {
	switch p.State {
	case Starting:
		return "is being started"
	case NotStarted:
		return "does not run: " + p.Problem
	case Waiting:
		return "waits to start a container again that has ended"
	case Finished:
		return "has ended by itself"
	case Ending:
		return p.containersDoing()
	case Gone:
		if notStopped(p.outcome()) {
			return fmt.Sprintf("not stopped after %s: %s", span(p.Took), p.ending())
		}
		return fmt.Sprintf("gone after %s: %s", span(p.Took), p.ending())
	case Stopped:
		return "was stopped: " + p.ending()
	case Running:
		if draining {
			return "runs until it is its bucket's turn"
		}
		return "runs"
	}
	return "not known"
}

// containersDoing says what each container is doing; the only one of a pod is
// not named.
func (p Pod) containersDoing() string {
	if len(p.Containers) == 1 {
		return p.Containers[0].doing()
	}
	parts := make([]string, 0, len(p.Containers))
	for _, c := range p.Containers {
		parts = append(parts, c.Name+" "+c.doing())
	}
	return strings.Join(parts, "; ")
}

// doing says what is being done about a container.
func (c Container) doing() string {
	switch c.Phase {
	case lifecycle.PhaseHook:
		return "runs its preStop hook: " + c.HookText
	case lifecycle.PhaseWaiting:
		return "waits, a sidecar stops last"
	case lifecycle.PhaseStopping:
		return "got " + c.Signal + ", is ending"
	case lifecycle.PhaseEnded:
		return outcomeWords(c.Outcome)
	}
	return "is about to stop"
}

// outcomeWords says how the stop of a container or of a pod ended.
func outcomeWords(o lifecycle.Outcome) string {
	switch o {
	case lifecycle.Graceful:
		return "stopped in time"
	case lifecycle.GraceExceeded:
		return "killed, its time was up"
	case lifecycle.Forced:
		return "killed, its stop had failed"
	case lifecycle.RuntimeStuck:
		return "may still run: the container runtime failed"
	case lifecycle.NotFound:
		return "had ended before"
	case lifecycle.LeftRunning:
		return "left running"
	}
	return "not known"
}

// ending says how the stop of a whole pod ended.
func (p Pod) ending() string {
	words := []string{outcomeWords(p.outcome())}
	if p.Finished {
		words[0] = "had ended by itself before"
	}
	if p.Problem != "" && !notStopped(p.outcome()) {
		words = append(words, "but with an error")
	}
	for _, c := range p.Containers {
		switch {
		case c.Hook.Outcome == lifecycle.HookCompleted:
			words = append(words, "after a preStop hook of "+span(c.Hook.Took))
		case c.Hook.Outcome == lifecycle.HookFailed:
			words = append(words, "its preStop hook failed")
		case c.Hook.Outcome == lifecycle.HookSkipped:
			words = append(words, "no time for its preStop hook")
		case c.hookWasCut():
			words = append(words, "its preStop hook was cut off")
		}
		if c.Sidecar && p.outcome() == lifecycle.Graceful {
			words = append(words, "the sidecar last")
		}
	}
	return strings.Join(words, ", ")
}

// notStopped tells whether a container may still run.
func notStopped(o lifecycle.Outcome) bool {
	return o == lifecycle.RuntimeStuck || o == lifecycle.LeftRunning
}

// hookWasCut tells whether a hook was not let run to its end. A sleep that ends
// with its container is what was wanted.
func (c Container) hookWasCut() bool {
	return c.Hook.Outcome == lifecycle.HookAbandoned ||
		c.Hook.Outcome == lifecycle.HookCut && c.Hook.Cause != lifecycle.ContainerExited
}

// span is a time as people say it: in tenths of a second up to a minute.
func span(d time.Duration) string {
	if d <= time.Minute {
		return fmt.Sprintf("%.1f s", max(d, 0).Seconds())
	}
	return d.Round(time.Second).String()
}
