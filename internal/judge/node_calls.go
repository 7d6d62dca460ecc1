package judge

const (
	nodeMaxIdleTicks = 40 // ticks in a row without an effect; more are a busy loop
	nodeExtraCalls   = 20 // calls in progress besides three for each pod
)

// callsAreBounded: even if calls hang, few are in progress at the same time: at most three for each pod, such as its kills
// and messages about it, and nodeExtraCalls others.
func (h *nodeHistory) callsAreBounded(state NodeFact) {
	if state.Calls > nodeExtraCalls+3*len(h.pods) {
		h.violation(state, "for %d pods", len(h.pods))
	}
}

// obsoleteStepIsAborted: the drain waits for one step at a time, such as Prepare or the unmount. When the next step begins,
// or the drain is over, the call of the previous step has returned or was aborted.
func (h *nodeHistory) obsoleteStepIsAborted(f NodeFact) {
	isNextStep, isDrainOver := f.What == NodeStep, f.What == NodeState && f.Drain == 0
	if h.waitingFor.isSet() && (isNextStep || isDrainOver) {
		h.violation(f, "%s (call %d) goes on", h.waitingFor.Text, h.waitingFor.Call)
		h.waitingFor = NodeFact{}
	}
	switch f.What {
	case NodeAgentBegan:
		h.waitingFor = NodeFact{}
	case NodeStep:
		h.waitingFor = f
	case NodeStepped, NodeAborted:
		if f.Call == h.waitingFor.Call {
			h.waitingFor = NodeFact{}
		}
	default:
	}
}

// noBusyLoop: the agent does not run Step again and again without an effect. A few ticks without an effect are no fault,
// because a time that has come need not change anything.
func (h *nodeHistory) noBusyLoop(f NodeFact) {
	switch {
	case f.What == NodeInput, f.What == NodeTicked && f.Effects > 0:
		h.idleTicks = 0
	case f.What == NodeTicked:
		if h.idleTicks++; h.idleTicks == nodeMaxIdleTicks+1 {
			h.violation(f, "%d ticks without an effect", h.idleTicks)
		}
	}
}

// noPanic: Step does not panic.
func (h *nodeHistory) noPanic(f NodeFact) { h.violation(f, "Step must not panic") }

// drainEndsOnceFaultsStop: no drain is in progress at the end. By then the faults have stopped and nothing is pending, so
// every drain should have ended. An agent whose Run has ended is exempt.
func (h *nodeHistory) drainEndsOnceFaultsStop(NodeFact) {
	if h.state.State != "none" && !h.runHasEnded {
		h.violation(h.state, "the drain has not ended")
	}
}
