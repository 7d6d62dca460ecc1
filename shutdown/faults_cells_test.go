//go:build linux

package shutdown_test

import (
	"slices"
	"time"
)

// cell is one fault of one step.
type cell struct {
	step  step
	fault fault
}

// senseless says why a cell has nothing to test; "": it has.
func (c cell) senseless() string {
	switch c {
	case cell{atStore, panics}:
		return "our own code"
	case cell{atPolicy, failsOnce}, cell{atPolicy, failsForEver}:
		return "cannot fail"
	default:
		return ""
	}
}

// lockless tells whether no lock is held when the shutdown is announced.
func (c cell) lockless() bool {
	switch c.step {
	case atConnect, atDelay, atInhibit:
		return c.fault == hangs || c.fault == failsForEver || c.fault == panics || c.fault == agentEnds
	case atEvent:
		return c.fault == panics
	default:
		return false
	}
}

// passing is how much longer a shutdown may take for a fault that comes once: until the call is
// made again.
func (c cell) passing() time.Duration {
	switch c.step {
	case atResume: // and until the agent was killed and started again
		return 4 * time.Second
	case atEvent, atKill: // the host and the killer are asked again a second later
		return 1100 * time.Millisecond
	default:
		return 200 * time.Millisecond
	}
}

// isTriedAgain tells whether the fault comes once, in a call that is made again.
func (c cell) isTriedAgain() bool {
	return c.fault == failsOnce && slices.Contains([]step{atPublish, atReady, atKill, atStop, atStatus}, c.step)
}

// victim is the number of the agent that meets the fault first, and that is killed by it.
func (c cell) victim() int {
	if c.step == atResume {
		return 2
	}
	return 1
}

// unadoptable tells whether the host holds itself by the copy of a lock that no agent comes to
// adopt, because it cannot ask the host.
func (c cell) unadoptable() bool {
	return c.step == atResume && (c.fault == hangs || c.fault == failsForEver || c.fault == panics)
}

// unstoppable are the pods that the fault keeps from being stopped.
func (c cell) unstoppable() []string {
	switch {
	case c.fault == agentEnds: // who has ended stops nobody
		return []string{"db", "etcd", "web"}
	case c.step == atPlan && (c.fault == hangs || c.fault == failsForEver || c.fault == panics): // nobody knows them
		return []string{"db", "etcd", "web"}
	case c.step == atKill && (c.fault == hangs || c.fault == failsForEver || c.fault == panics):
		return []string{"web"}
	case c.step == atStop && (c.fault == failsForEver || c.fault == panics):
		return []string{"web"}
	default:
		return nil
	}
}

// isSaid tells whether the fault is one that somebody has to be told of.
func (c cell) isSaid() bool {
	switch {
	case c.fault != hangs && c.fault != failsForEver && c.fault != panics:
		return false
	case c.step == atPlan && c.fault == failsForEver: // an empty list is no failure
		return false
	case c.step == atEvent && c.fault != panics: // nobody knows of an event that does not come
		return false
	case c == cell{atReport, panics}: // the report was complete before; the log says it
		return false
	default:
		return true
	}
}

// isFollowed tells whether an agent sees each pod to its end.
func (c cell) isFollowed() bool {
	return c.fault != agentEnds && c.fault != agentIsKilled && c.step != atKill && c.step != atResume
}

// forgets tells whether the disk fails, so that the next agent knows nothing.
func (c cell) forgets() bool {
	return c.step == atStore && (c.fault == hangs || c.fault == failsForEver)
}

// losesTheEnd tells whether the disk fails when the report is written.
func (c cell) losesTheEnd() bool {
	return c.step == atReport && (c.fault == hangs || c.fault == failsForEver)
}
