package judge

import (
	"fmt"
	"slices"
	"time"
)

// nodeRule is one promise of package shutdown. check is called with each fact of one kind, or with each fact if kind is "",
// before the fact is added to the history. It adds a violation if the fact breaks the promise.
type nodeRule struct {
	name  string
	kind  NodeWhat
	check func(*nodeHistory, NodeFact)
}

// nodeRules returns the rules that each recorded history of a node must keep: the name, the kind of fact with which the rule is
// checked ("": each fact), and the check.
func nodeRules() []nodeRule {
	return []nodeRule{
		{"a deadline only moves earlier", NodeKill, (*nodeHistory).deadlineOnlyMovesEarlier},
		{"no grace period ends after WaitEnd", NodeKill, (*nodeHistory).noGraceAfterWaitEnd},
		{"a grace period fills the window", NodeKill, (*nodeHistory).graceFillsTheWindow},
		{"buckets do not overlap", "", (*nodeHistory).bucketsDoNotOverlap},
		{"windows only move earlier", "", (*nodeHistory).windowsOnlyMoveEarlier},
		{"a pod is logged before it is killed", NodeKill, (*nodeHistory).podIsLoggedBeforeKill},
		{"the state is published before a kill", NodeKill, (*nodeHistory).stateIsPublishedBeforeKill},
		{"no pod is signalled after a cancellation", NodeKill, (*nodeHistory).noNewKillAfterCancellation},
		{"a failed kill is repeated", NodeState, (*nodeHistory).failedKillIsRepeated},
		{"a kill that was given up is not repeated", NodeKill, (*nodeHistory).givenUpKillIsNotRepeated},
		{"the log is synced before the release", NodeReleased, (*nodeHistory).logIsSyncedBeforeRelease},
		{"the lock is released once, in time", "", (*nodeHistory).lockIsReleasedOnceInTime},
		{"a cancellation reverts everything", "", (*nodeHistory).cancellationRevertsEverything},
		{"a shutdown refuses pods", NodeState, (*nodeHistory).shutdownRefusesPods},
		{"killed pods stay refused, others are ready", NodeFinished, (*nodeHistory).killedPodsStayRefusedOthersAreReady},
		{"every end is published", NodeFinished, (*nodeHistory).everyEndIsPublished},
		{"only ended pods are published", NodeTold, (*nodeHistory).onlyEndedPodsArePublished},
		{"each shutdown is reported once, with all killed pods", "", (*nodeHistory).eachShutdownIsReportedOnce},
		{"each pod is counted once in a drain", NodeCounted, (*nodeHistory).eachPodIsCountedOnce},
		{"a step that nobody waits for is aborted", "", (*nodeHistory).obsoleteStepIsAborted},
		{"the number of calls is bounded", NodeState, (*nodeHistory).callsAreBounded},
		{"no busy loop", "", (*nodeHistory).noBusyLoop},
		{"no panic", NodePanicked, (*nodeHistory).noPanic},
		{"every drain ends once the faults stop", NodeFinished, (*nodeHistory).drainEndsOnceFaultsStop},
	}
}

// Node returns all violations of package shutdown's promises, sorted, one sentence each.
func Node(r *NodeRecord) []string {
	h := nodeHistory{NodeRecord: r, pods: map[string]*nodePod{}, publishCalls: map[int]bool{}, syncs: map[int]int{}, reports: map[int]*nodeReport{}}
	rules := nodeRules()
	for _, f := range r.Facts {
		for _, rule := range rules {
			if rule.kind == "" || rule.kind == f.What {
				h.rule = rule.name
				rule.check(&h, f)
			}
		}
		h.add(f)
	}
	slices.Sort(h.violations)
	return h.violations
}

// nodeHistory is what the facts so far say: about the newest agent, and about the pods.
type nodeHistory struct {
	*NodeRecord

	rule       string // the name of the rule that is checked
	violations []string

	factCount         int      // the number of facts so far
	state             NodeFact // the newest NodeState fact
	runHasEnded       bool
	terminatesAll     bool         // TerminateAll was called
	windows           NodeFact     // the newest timetable
	publishedShutdown int          // the shutdown that the agent has published last; 0: none
	publishCalls      map[int]bool // those in progress
	syncs             map[int]int  // by call that syncs the log: factCount when it began
	pods              map[string]*nodePod

	// Each of these belongs to one rule, which updates it.
	timetable       nodeTimetable
	turn            nodeTurn
	lock            nodeLock
	isLockRequested bool // the lock was requested since the last cancellation
	cancelled       NodeFact
	reports         map[int]*nodeReport // by shutdown
	waitingFor      NodeFact            // the step that the drain waits for; zero: none
	idleTicks       int                 // in a row
}

// nodePod is what the facts so far say about a pod since it runs.
type nodePod struct {
	name       string
	priority   int32
	grace      int64 // its own grace period in seconds; -1: none
	isRunning  bool
	isKillLost bool // a power cut has taken its kill from the log
	isKilled   bool
	// isSignalled says that it was signalled in this boot, as far as the agent can know: it has killed the pod, or reads in
	// the log that an earlier agent has.
	isSignalled    bool
	hasFinalStatus bool      // the API server has its final status
	stored         NodeFact  // the newest NodeStored fact
	storedAt       int       // factCount when it was stored
	deadline       time.Time // of its last kill, as far as the agent can know; zero: none
	knownEnd       NodeFact  // the fact by which the agent knows that the killed pod has ended: NodeKilled, or the next NodeBooted; zero: none
	isEndLogged    bool      // the step that handles knownEnd is over, so that the next agent knows of it too

	agentPod // what the newest agent has done with it
}

// agentPod is what one agent has done with a pod.
type agentPod struct {
	calls       int      // kills in progress
	unsynced    int      // storedAt of the entry with its first kill by this agent; 0: there is none, or it is synced
	failedKill  NodeFact // the answer to a kill that must be repeated; zero: none
	needsNoKill bool     // a kill has succeeded, or a repetition is useless
	drain       int      // the shutdown in whose current drain the pod was signalled first; 0: there is none, for example because it was signalled earlier
	isGivenUp   bool     // a repetition of the last kill is useless
	counted     NodeFact // the NodeCounted fact of the current drain; zero: not counted in it yet
	awaitEnd    bool     // this agent has killed it, so that a turn must wait for its end
	wasAwaited  bool     // a turn of the current drain has waited for it
}

// pod returns the history of a pod.
func (h *nodeHistory) pod(name string) *nodePod {
	if h.pods[name] == nil {
		h.pods[name] = &nodePod{name: name}
	}
	return h.pods[name]
}

// violation records that a fact violates the rule that is checked.
func (h *nodeHistory) violation(f NodeFact, format string, args ...any) {
	h.violations = append(h.violations, fmt.Sprintf("%s: %s: %s", h.rule, f, fmt.Sprintf(format, args...)))
}

// add adds a fact to the history.
func (h *nodeHistory) add(f NodeFact) {
	h.factCount++
	switch f.What {
	case NodeAgentBegan:
		h.runHasEnded, h.terminatesAll, h.publishedShutdown = false, false, 0
		clear(h.publishCalls)
		clear(h.syncs)
	case NodeRunEnded:
		h.runHasEnded = true
	case NodeTerminateAll:
		h.terminatesAll = true
	case NodeState:
		h.state = f
	case NodeWindows:
		h.windows = f
	case NodePublish:
		h.publishCalls[f.Call], h.publishedShutdown = true, f.Shutdown
	case NodePublished:
		delete(h.publishCalls, f.Call)
	case NodeSync:
		h.syncs[f.Call] = h.factCount
	default:
	}
	if f.Pod != "" {
		h.addPodFact(f)
		return
	}
	for _, p := range h.pods {
		h.addAgentFact(p, f)
	}
}

// addPodFact adds a fact about a pod to the history.
func (h *nodeHistory) addPodFact(f NodeFact) {
	p := h.pod(f.Pod)
	switch f.What {
	case NodePodRuns:
		*p = nodePod{name: f.Pod, priority: f.Priority, grace: f.Seconds, isRunning: true, stored: p.stored, storedAt: p.storedAt} // the log keeps its entry
	case NodePodEnded:
		p.isRunning, p.awaitEnd = false, false
	case NodePodLost: // nobody knows of its kill any more
		p.isKillLost, p.isSignalled = true, false
		p.deadline, p.stored, p.knownEnd = time.Time{}, NodeFact{}, NodeFact{}
	case NodeLogged:
		p.isKilled, p.isSignalled = true, true
	case NodeStored:
		p.stored, p.storedAt = f, h.factCount
	case NodeKill:
		h.addKill(p, f)
	case NodeKilled:
		h.addAnswer(p, f)
	case NodeCounted:
		p.counted = f
	case NodeStarts:
		p.knownEnd = NodeFact{} // its previous run gets no final status any more
	case NodeTold:
		p.hasFinalStatus = true
	default:
	}
}

// addKill adds a kill of a pod to the history.
func (h *nodeHistory) addKill(p *nodePod, kill NodeFact) {
	if isFirst := !p.isSignalled; isFirst {
		p.drain, p.isGivenUp, p.unsynced = kill.Shutdown, false, p.storedAt
	}
	if !p.awaitEnd && p.isRunning { // from now on a turn must wait for its end
		p.awaitEnd, p.wasAwaited = true, false
	}
	p.isSignalled, p.isKilled, p.deadline, p.failedKill = true, true, kill.Until, NodeFact{}
	p.calls++
}

// addAnswer adds the answer to a kill of a pod to the history. A failed kill must be repeated if no other kill of the pod
// is in progress or has succeeded, and the agent still kills pods.
func (h *nodeHistory) addAnswer(p *nodePod, answer NodeFact) {
	p.calls--
	isLast := p.calls == 0
	stillKills := !h.runHasEnded && !h.terminatesAll && (h.state.State == "draining" || h.state.State == "none")
	switch {
	case !answer.Failed:
		p.knownEnd, p.isEndLogged = answer, false
		p.needsNoKill, p.failedKill = true, NodeFact{}
	case answer.NoRetry:
		p.isGivenUp = p.isGivenUp || isLast
		p.awaitEnd = false
		p.needsNoKill, p.failedKill = true, NodeFact{}
	case isLast && !p.needsNoKill && stillKills:
		p.failedKill = answer
	}
}

// addAgentFact adds what a fact about the agent or the machine says about a pod.
func (h *nodeHistory) addAgentFact(p *nodePod, f NodeFact) {
	switch f.What {
	case NodeBooted:
		p.isSignalled = false
		p.forgetUnloggedEnd()
		if isLogged := !p.stored.Until.IsZero(); p.isKilled && isLogged { // the next agent knows that it has ended with the machine
			p.knownEnd, p.isEndLogged = f, true
		}
	case NodeDied:
		p.forgetUnloggedEnd()
	case NodeAgentBegan:
		if f.NoLog { // the agent has no log, and does not know the deadlines
			p.deadline = time.Time{}
		}
		p.agentPod = agentPod{}
	case NodeRunEnded, NodeTerminateAll:
		p.failedKill = NodeFact{} // no kill is repeated any more
	case NodeCancelled, NodeRetaken: // the drain that has signalled it is over
		p.drain = 0
	case NodeWindows:
		if !f.Planned { // a drain begins
			p.counted = NodeFact{}
		}
	case NodeSynced: // this saves what was stored before the sync began
		if p.unsynced < h.syncs[f.Call] {
			p.unsynced = 0
		}
	case NodeState:
		p.isEndLogged = true
		if f.State == "released" { // the drain is over: no kill is repeated
			p.failedKill = NodeFact{}
		}
	default:
	}
}

// forgetUnloggedEnd drops knownEnd if the agent has died in the step that handles it: the next agent does not know of it.
func (p *nodePod) forgetUnloggedEnd() {
	if !p.isEndLogged {
		p.knownEnd = NodeFact{}
	}
}
