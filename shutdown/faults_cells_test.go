//go:build linux && go1.25

package shutdown_test

import (
	"slices"
	"time"
)

// cell is one fault at one step, as a cell of the table in testdata/faults.md.
type cell struct {
	step  step
	fault fault
}

// noSuchFault returns why the fault cannot happen at the step; "" if it can.
func (c cell) noSuchFault() string {
	switch c {
	case cell{atStore, panics}:
		return "our own code"
	case cell{atPolicy, failsOnce}, cell{atPolicy, failsAlways}:
		return "cannot fail"
	default:
		return ""
	}
}

// hasNoLock reports whether no lock is held when the shutdown is announced.
func (c cell) hasNoLock() bool {
	switch c.step {
	case atConnect, atInhibit:
		return c.fault == hangs || c.fault == failsAlways || c.fault == panics || c.fault == agentEnds
	case atDelay: // after an error the lock is taken all the same; a call that hangs is given up later
		return c.fault == hangs || c.fault == agentEnds
	case atEvent:
		return c.fault == panics
	default:
		return false
	}
}

// costOfOneFailure returns how much longer a shutdown may take if one call fails: the time
// until the call is made again.
func (c cell) costOfOneFailure() time.Duration {
	switch c.step {
	case atResume: // includes the kill and the start of the agent
		return 4 * time.Second
	case atEvent, atKill: // the host and the killer are asked again a second later
		return 1100 * time.Millisecond
	default:
		return 200 * time.Millisecond
	}
}

// isTriedAgain reports whether the fault is one failure of a call that is then tried again.
func (c cell) isTriedAgain() bool {
	return c.fault == failsOnce && slices.Contains([]step{atPublish, atReady, atKill, atStop, atStatus}, c.step)
}

// faultyAgent returns the number of the first agent whose calls have the fault. If the fault
// kills, only this agent is killed.
func (c cell) faultyAgent() int {
	if c.step == atResume {
		return 2
	}
	return 1
}

// leavesLockWithSystemd reports whether the copy of the lock in systemd's FD store delays the
// host until its limit: no agent can ask the host what is pending, so none adopts the lock.
func (c cell) leavesLockWithSystemd() bool {
	return c.step == atResume && (c.fault == failsAlways || c.fault == panics)
}

// podsNotStopped returns the names of the pods that cannot be stopped because of the fault.
func (c cell) podsNotStopped() []string {
	switch {
	case c.fault == agentEnds: // and no other agent is started
		return []string{"db", "etcd", "web"}
	case c.step == atPlan && (c.fault == hangs || c.fault == failsAlways || c.fault == panics): // the agent has no list of pods
		return []string{"db", "etcd", "web"}
	case c.step == atKill && (c.fault == hangs || c.fault == failsAlways || c.fault == panics):
		return []string{"web"}
	case c.step == atStop && (c.fault == failsAlways || c.fault == panics):
		return []string{"web"}
	default:
		return nil
	}
}

// isReported reports whether the fault has to be named in the report, in the error of Run, in
// the state of the lock or in an event.
func (c cell) isReported() bool {
	switch {
	case c.fault != hangs && c.fault != failsAlways && c.fault != panics:
		return false
	case c.step == atPlan && c.fault == failsAlways: // an empty list is no failure
		return false
	case c.step == atEvent && c.fault != panics: // the agent cannot know of an event that does not come
		return false
	case c == cell{atReport, panics}: // the report is complete before OnReport is called; the log has the panic
		return false
	default:
		return true
	}
}

// seesPodsEnd reports whether one agent waits for the end of each pod that it has signalled.
func (c cell) seesPodsEnd() bool {
	return c.fault != agentEnds && c.fault != agentIsKilled && c.step != atKill && c.step != atResume
}

// losesState reports whether no state file is written, so that the next agent finds none.
func (c cell) losesState() bool {
	return c.step == atStore && (c.fault == hangs || c.fault == failsAlways)
}

// losesReport reports whether the complete report is not written at the end of the shutdown.
func (c cell) losesReport() bool {
	return c.step == atReport && (c.fault == hangs || c.fault == failsAlways)
}
