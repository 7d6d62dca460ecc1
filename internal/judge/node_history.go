package judge

import (
	"fmt"
	"slices"
	"time"
)

// nodeRule is one promise of package shutdown.
type nodeRule struct {
	name string
	kind NodeWhat // of the facts with which check is called; "": all facts
	// check is called before the fact is added to the history. It adds a violation if the fact breaks the promise.
	check func(*nodeHistory, NodeFact)
}

// nodeRules returns the promises of package shutdown. Each line is the promise in words, the kind of the facts with which it
// is checked ("": all facts), and the method that checks it.
func nodeRules() []nodeRule {
	return []nodeRule{
		{"a deadline only moves earlier", NodeKill, (*nodeHistory).deadlineOnlyMovesEarlier},
		{"no grace period ends after the drain's last wait", NodeKill, (*nodeHistory).noGraceAfterWaitEnd},
		{"a pod gets its grace period, or all that its bucket has left", NodeKill, (*nodeHistory).graceFillsTheWindow},
		{"buckets do not overlap", "", (*nodeHistory).bucketsDoNotOverlap},
		{"a new timetable of a shutdown moves no end later", "", (*nodeHistory).windowsOnlyMoveEarlier},
		{"a pod is logged before it is killed", NodeKill, (*nodeHistory).podIsLoggedBeforeKill},
		{"the state is published before a kill", NodeKill, (*nodeHistory).stateIsPublishedBeforeKill},
		{"no pod is signalled after a cancellation", NodeKill, (*nodeHistory).noNewKillAfterCancellation},
		{"a failed kill is repeated", NodeState, (*nodeHistory).failedKillIsRepeated},
		{"a kill that was given up is not repeated", NodeKill, (*nodeHistory).givenUpKillIsNotRepeated},
		{"the log is synced before the release", NodeReleased, (*nodeHistory).logIsSyncedBeforeRelease},
		{"the lock is released once, in time", "", (*nodeHistory).lockIsReleasedOnceInTime},
		{"a cancellation admits pods, requests a lock and publishes that at once", "", (*nodeHistory).cancellationRevertsEverything},
		{"a shutdown and TerminateAll refuse pods, and nothing else does", NodeState, (*nodeHistory).shutdownRefusesPods},
		{"killed pods stay refused, others are ready", NodeFinished, (*nodeHistory).killedPodsStayRefusedOthersAreReady},
		{"every end is published", NodeFinished, (*nodeHistory).everyEndIsPublished},
		{"only ended pods are published", NodeFinalStatusAccepted, (*nodeHistory).onlyEndedPodsArePublished},
		{"each shutdown is reported once, with all killed pods", "", (*nodeHistory).eachShutdownIsReportedOnce},
		{"the metrics count each pod once in a drain", NodeCounted, (*nodeHistory).eachPodIsCountedOnce},
		{"no call of a drain's step outlasts the step", "", (*nodeHistory).obsoleteStepIsAborted},
		{"the number of calls is bounded", NodeState, (*nodeHistory).callsAreBounded},
		{"no busy loop", "", (*nodeHistory).noBusyLoop},
		{"no panic", NodePanicked, (*nodeHistory).noPanic},
		{"every drain ends once the faults stop", NodeFinished, (*nodeHistory).drainEndsOnceFaultsStop},
	}
}

// Node returns the violations of package shutdown's promises in a record, sorted, one sentence each.
func Node(r *NodeRecord) []string {
	h := nodeHistory{
		NodeRecord: r, pods: map[string]*nodePod{},
		publishCalls: map[int]bool{}, syncBeganAt: map[int]int{}, expectedReports: map[int]*expectedReport{},
	}
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

// nodeHistory is what the facts so far say about the newest agent and the pods.
type nodeHistory struct {
	*NodeRecord

	rule       string // the name of the rule that is being checked
	violations []string

	factCount         int      // how many facts were added
	state             NodeFact // the newest NodeState fact
	runHasEnded       bool
	terminatesAll     bool         // TerminateAll was called
	timetable         NodeFact     // the newest NodeTimetable fact
	publishedShutdown int          // the shutdown that the agent has published last; 0: none
	publishCalls      map[int]bool // the calls in progress that publish the node's state
	syncBeganAt       map[int]int  // by call that syncs the log: factCount when the call began
	pods              map[string]*nodePod

	// Each of these belongs to one rule, which updates it.
	previousTimetable previousTimetable
	turn              bucketTurn
	lock              inhibitorLock
	isLockRequested   bool                    // since the last cancellation
	cancelled         NodeFact                // the cancellation that the agent is handling; zero: none
	expectedReports   map[int]*expectedReport // by shutdown
	awaitedStep       NodeFact                // the NodeDrainStepBegins fact whose answer the drain waits for; zero: none
	idleTicks         int                     // in a row
}

// nodePod is what the facts so far say about a pod since it runs.
type nodePod struct {
	name       string
	priority   int32
	grace      int64 // its own grace period in seconds; -1: none
	isRunning  bool
	isKillLost bool // a power cut has taken its kill from the state log
	wasKilled  bool // in any boot, by any agent
	// wasKilledInBoot says that the newest agent has killed it, or reads in the state log that an earlier agent of this boot has.
	wasKilledInBoot bool
	hasFinalStatus  bool      // the API server has its final status
	loggedKill      NodeFact  // the newest NodeKillLogged fact
	loggedAt        int       // factCount when loggedKill was added
	deadline        time.Time // of its last kill, if the agent can know it; zero: none
	knownEnd        NodeFact  // the fact that tells the agent that the killed pod has ended: NodeKillAnswered or NodeBooted; zero: none
	isEndLogged     bool      // the agent has handled knownEnd, so that the state log tells the next agent, too

	agentPod // what the newest agent has done with it
}

// agentPod is what one agent has done with a pod.
type agentPod struct {
	killsInProgress int
	unsyncedSince   int      // loggedAt of this agent's first kill, until a sync has saved it; 0: nothing must be synced
	killToRepeat    NodeFact // the answer to a failed kill, until the kill is repeated or need not be; zero: none
	isKillSettled   bool     // a kill has succeeded, or has failed in a way that makes a repetition useless
	firstKilledIn   int      // the shutdown whose current drain was the first to kill the pod; 0: none was
	isGivenUp       bool     // the last kill has failed in a way that makes a repetition useless
	counted         NodeFact // the NodeCounted fact of the current drain; zero: none
	mustAwaitEnd    bool     // this agent has killed it, so that the turn of a bucket must wait for its end
	wasAwaited      bool     // a turn of the current drain has waited for it
}

// pod returns what is known about the pod with a name.
func (h *nodeHistory) pod(name string) *nodePod {
	if h.pods[name] == nil {
		h.pods[name] = &nodePod{name: name}
	}
	return h.pods[name]
}

// addViolation records that a fact violates the rule that is being checked, and why.
func (h *nodeHistory) addViolation(f NodeFact, format string, args ...any) {
	h.violations = append(h.violations, fmt.Sprintf("%s: %s: %s", h.rule, f, fmt.Sprintf(format, args...)))
}

// add adds a fact to the history.
func (h *nodeHistory) add(f NodeFact) {
	h.factCount++
	switch f.What {
	case NodeAgentBegan:
		h.runHasEnded, h.terminatesAll, h.publishedShutdown = false, false, 0
		clear(h.publishCalls)
		clear(h.syncBeganAt)
	case NodeRunEnded:
		h.runHasEnded = true
	case NodeTerminateAll:
		h.terminatesAll = true
	case NodeState:
		h.state = f
	case NodeTimetable:
		h.timetable = f
	case NodePublishBegins:
		h.publishCalls[f.Call], h.publishedShutdown = true, f.Shutdown
	case NodePublishAnswered:
		delete(h.publishCalls, f.Call)
	case NodeSyncBegins:
		h.syncBeganAt[f.Call] = h.factCount
	default:
	}
	if f.Pod != "" {
		h.addPodFact(f)
		return
	}
	for _, p := range h.pods {
		h.applyAgentFact(p, f)
	}
}

// addPodFact adds a fact about one pod to the history.
func (h *nodeHistory) addPodFact(f NodeFact) {
	p := h.pod(f.Pod)
	switch f.What {
	case NodePodRuns: // nothing counts any more but its entry in the log
		*p = nodePod{name: f.Pod, priority: f.Priority, grace: f.Seconds, isRunning: true, loggedKill: p.loggedKill, loggedAt: p.loggedAt}
	case NodePodEnded:
		p.isRunning, p.mustAwaitEnd = false, false
	case NodeKillLostFromLog: // no agent can know of its kill any more
		p.isKillLost, p.wasKilledInBoot = true, false
		p.deadline, p.loggedKill, p.knownEnd = time.Time{}, NodeFact{}, NodeFact{}
	case NodeKillReadFromLog:
		p.wasKilled, p.wasKilledInBoot = true, true
	case NodeKillLogged:
		p.loggedKill, p.loggedAt = f, h.factCount
	case NodeKill:
		h.addKill(p, f)
	case NodeKillAnswered:
		h.addKillAnswer(p, f)
	case NodeCounted:
		p.counted = f
	case NodeStaticPodStarts:
		p.knownEnd = NodeFact{} // its previous run gets no final status any more
	case NodeFinalStatusAccepted:
		p.hasFinalStatus = true
	default:
	}
}

// addKill adds the beginning of a kill of a pod to the history.
func (h *nodeHistory) addKill(p *nodePod, kill NodeFact) {
	if isFirst := !p.wasKilledInBoot; isFirst {
		p.firstKilledIn, p.isGivenUp, p.unsyncedSince = kill.Shutdown, false, p.loggedAt
	}
	if p.isRunning && !p.mustAwaitEnd {
		p.mustAwaitEnd, p.wasAwaited = true, false
	}
	p.wasKilled, p.wasKilledInBoot = true, true
	p.deadline = kill.Until
	p.killToRepeat = NodeFact{} // this is the repetition
	p.killsInProgress++
}

// addKillAnswer adds to the history that a kill of a pod has returned. A failed kill must be repeated if the agent still kills
// pods, unless another kill of the pod is in progress, has succeeded, or has failed for good.
func (h *nodeHistory) addKillAnswer(p *nodePod, answer NodeFact) {
	p.killsInProgress--
	isLast := p.killsInProgress == 0
	// In the state "none" the agent still kills the pods whose grace periods began in a shutdown that was cancelled.
	killsInState := h.state.State == "draining" || h.state.State == "none"
	stillKills := killsInState && !h.runHasEnded && !h.terminatesAll
	switch {
	case !answer.Failed:
		p.knownEnd, p.isEndLogged = answer, false
		p.isKillSettled, p.killToRepeat = true, NodeFact{}
	case answer.NoRetry:
		p.isGivenUp = p.isGivenUp || isLast
		p.mustAwaitEnd = false
		p.isKillSettled, p.killToRepeat = true, NodeFact{}
	case isLast && !p.isKillSettled && stillKills:
		p.killToRepeat = answer
	}
}

// applyAgentFact notes what a fact about the agent or the machine means for a pod.
func (h *nodeHistory) applyAgentFact(p *nodePod, f NodeFact) {
	switch f.What {
	case NodeBooted:
		p.wasKilledInBoot = false
		p.forgetUnloggedEnd()
		isKillLogged := !p.loggedKill.Until.IsZero()
		if p.wasKilled && isKillLogged { // the next agent reads of the kill, and knows that the pod has ended with the machine
			p.knownEnd, p.isEndLogged = f, true
		}
	case NodeDied:
		p.forgetUnloggedEnd()
	case NodeAgentBegan:
		if f.NoLog { // without the log it does not know the deadlines
			p.deadline = time.Time{}
		}
		p.agentPod = agentPod{}
	case NodeRunEnded, NodeTerminateAll: // no kill is repeated any more
		p.killToRepeat = NodeFact{}
	case NodeCancelled, NodeRetaken: // the drain that has killed it is over
		p.firstKilledIn = 0
	case NodeTimetable:
		if !f.Planned { // a drain begins
			p.counted = NodeFact{}
		}
	case NodeSynced:
		if isSaved := p.unsyncedSince < h.syncBeganAt[f.Call]; isSaved { // a sync saves what was logged before it began
			p.unsyncedSince = 0
		}
	case NodeState:
		p.isEndLogged = true
		if f.State == "released" { // the drain is over, and no kill is repeated
			p.killToRepeat = NodeFact{}
		}
	default:
	}
}

// forgetUnloggedEnd drops the end of the pod if the agent has died before it could log that end: the next agent does not know
// of it.
func (p *nodePod) forgetUnloggedEnd() {
	if !p.isEndLogged {
		p.knownEnd = NodeFact{}
	}
}
