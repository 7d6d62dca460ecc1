package judge

const (
	maxIdleTicks   = 40 // ticks in a row without an effect; more are a busy loop
	maxCallsPerPod = 3  // calls in progress for one pod, such as its kills and messages about it
	maxOtherCalls  = 20 // calls in progress that are for no pod
)

// callsAreBounded: the agent does not pile up calls, even if calls hang.
func (h *nodeHistory) callsAreBounded(state NodeFact) {
	if state.Calls > maxOtherCalls+maxCallsPerPod*len(h.pods) {
		h.addViolation(state, "for %d pods", len(h.pods))
	}
}

// obsoleteStepIsAborted: a drain calls its steps, such as Prepare and Unmount, one after another. When the next step begins,
// or the drain is over, the call of the previous step must have returned, or have been aborted.
func (h *nodeHistory) obsoleteStepIsAborted(f NodeFact) {
	isNextStep := f.What == NodeDrainStepBegins
	isDrainOver := f.What == NodeState && f.Draining == 0
	if isObsolete := isNextStep || isDrainOver; isObsolete && h.awaitedStep.isSet() {
		h.addViolation(f, "%s (call %d) goes on", h.awaitedStep.Text, h.awaitedStep.Call)
		h.awaitedStep = NodeFact{}
	}
	switch f.What {
	case NodeAgentBegan: // the calls of the previous agent have died with it
		h.awaitedStep = NodeFact{}
	case NodeDrainStepBegins:
		h.awaitedStep = f
	case NodeDrainStepAnswered, NodeAborted:
		if f.Call == h.awaitedStep.Call {
			h.awaitedStep = NodeFact{}
		}
	default:
	}
}

// noBusyLoop: the agent's timers do not fire again and again without an effect. A few such ticks are no fault, because a time
// that the agent has waited for need not change anything.
func (h *nodeHistory) noBusyLoop(f NodeFact) {
	isProgress := f.What == NodeInput || f.What == NodeTicked && f.Effects > 0
	switch {
	case isProgress:
		h.idleTicks = 0
	case f.What == NodeTicked:
		if h.idleTicks++; h.idleTicks == maxIdleTicks+1 {
			h.addViolation(f, "%d ticks without an effect", h.idleTicks)
		}
	}
}

// noPanic: the agent's state machine never panics. The rule is checked only with the record of a panic.
func (h *nodeHistory) noPanic(panicked NodeFact) { h.addViolation(panicked, "Step must not panic") }

// drainEndsOnceFaultsStop: at the end of the record no drain is in progress. The simulated faults have stopped by then, so
// nothing excuses a drain that goes on, unless the agent's Run has ended.
func (h *nodeHistory) drainEndsOnceFaultsStop(NodeFact) {
	if h.state.State != "none" && !h.runHasEnded {
		h.addViolation(h.state, "the drain has not ended")
	}
}
