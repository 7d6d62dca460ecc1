package judge

import "time"

const (
	nodeLag   = 101 * time.Millisecond            // how late a timer may fire (100 ms), and rounding (1 ms)
	nodeRetry = time.Second + 50*time.Millisecond // the pause before a failed kill is repeated, and a late timer
)

// graceEnd returns when the grace period of a kill ends.
func (f NodeFact) graceEnd() time.Time { return f.At.Add(time.Duration(f.Seconds) * time.Second) }

// deadlineOnlyMovesEarlier: each kill of a pod gets at most the seconds that are left until the pod's deadline. If another
// drain, shutdown or agent of the same boot kills the pod again, the deadline is not later than before. A pod that was
// started again has no earlier deadline, and neither has one whose deadline the log has lost in a power cut.
func (h *nodeHistory) deadlineOnlyMovesEarlier(f NodeFact) {
	if f.What != NodeKill {
		return
	}
	if f.Seconds > 0 && f.graceEnd().After(f.Until.Add(nodeLag)) {
		h.violation(f, "more seconds than its deadline leaves")
	}
	if previous := h.pod(f.Pod).deadline; !previous.IsZero() && f.Until.After(previous) {
		h.violation(f, "it had until %v", sinceBoot(previous))
	}
}

// noGraceAfterWaitEnd: no grace period of a drain ends after WaitEnd, at which the drain stops waiting for pods. Only a
// pod's first kill counts: a repeated one keeps the pod's earlier deadline.
//
// Twice nodeLag is tolerated. The longest grace period of a bucket may end 100 ms after WaitEnd. Another 100 ms are added
// by plan.Window.Seconds before it rounds down to seconds, so that a late timer does not cost the pod a second.
func (h *nodeHistory) noGraceAfterWaitEnd(f NodeFact) {
	isJudged := h.isFirstKill(f) && f.Shutdown != 0 && f.Seconds > 0
	if latest := h.windows.WaitEnd.Add(2 * nodeLag); isJudged && f.graceEnd().After(latest) {
		h.violation(f, "the waits end at %v", sinceBoot(h.windows.WaitEnd))
	}
}

// graceFillsTheWindow checks the seconds that a pod gets with its first kill in a drain:
//
//   - They are not too few: the pod gets its own grace period, or all the time that its bucket's window has left if that
//     is less (leastGrace). A bucket without time is not checked.
//   - With NoRollOver they are not too many: a bucket does not get the time that lower ones left unused, so the pod gets
//     no more than its bucket's own time.
//
// A pod that came late may be killed with a higher bucket, so both limits allow for all buckets from its own upwards.
func (h *nodeHistory) graceFillsTheWindow(f NodeFact) {
	windows := h.windows.Windows
	if !h.isFirstKill(f) || f.Shutdown == 0 || len(windows) == 0 {
		return
	}
	p := h.pod(f.Pod)
	possible := windows[nodeBucket(windows, p.Priority):] // the pod may be killed with its own bucket or a higher one
	if most := mostTime(possible); h.NoRollOver && most > 0 && f.Seconds > int64((most+nodeLag)/time.Second) {
		h.violation(f, "its bucket has only %v", most)
	}
	if least := h.leastGrace(p, possible, f.At); possible[0].OwnTime > 0 && f.Seconds < least {
		h.violation(f, "its window leaves %d s", least)
	}
}

// mostTime returns the most time that one of several windows gives to pods.
func mostTime(windows []NodeWindow) (most time.Duration) {
	for _, w := range windows {
		most = max(most, w.OwnTime)
	}
	return most
}

// leastGrace returns the seconds that a pod must get at least if it is killed at the time at: the time until its bucket's
// KillsEnd, or its own grace period if that is shorter. A pod without a grace period, and each pod with NoRollOver, may
// also be limited to a bucket's own time. windows are those of its bucket and of the higher ones: the shortest own time
// counts, because a pod that came late may be killed with any of them.
func (h *nodeHistory) leastGrace(p *nodePod, windows []NodeWindow, at time.Time) int64 {
	remaining, hasGrace := windows[0].KillsEnd.Sub(at), p.Seconds >= 0
	if !hasGrace || h.NoRollOver {
		for _, w := range windows {
			remaining = min(remaining, w.OwnTime)
		}
	}
	least := int64(remaining / time.Second)
	if hasGrace {
		least = min(least, p.Seconds)
	}
	if h.NoRollOver { // marking the pods as not ready may have taken up to 2 s of the bucket's own time
		least -= 2
	}
	return least
}

// podIsLoggedBeforeKill: a pod's deadline is in the log before the pod is killed, so that the next agent knows it if this
// one dies.
func (h *nodeHistory) podIsLoggedBeforeKill(f NodeFact) {
	if f.What != NodeKill {
		return
	}
	if stored := h.pod(f.Pod).stored.Until; !stored.Equal(f.Until) {
		h.violation(f, "the log has %v", sinceBoot(stored))
	}
}

// stateIsPublishedBeforeKill: before a drain kills a pod, it has published to the API server that the node shuts down.
// Otherwise a replacement of the pod could be scheduled on this node. A publish call in progress is enough: one that hangs
// must not delay the kill. A drain of TerminateAll (Own) need not publish.
func (h *nodeHistory) stateIsPublishedBeforeKill(f NodeFact) {
	mustPublish := h.Publishes && f.Shutdown != 0 && !f.Own
	isPublished := h.publishedShutdown == f.Shutdown || len(h.publishCalls) > 0
	if mustPublish && h.isFirstKill(f) && !isPublished {
		h.violation(f, "the node's state is not published")
	}
}

// noNewKillAfterCancellation: no pod is signalled for the first time after the shutdown was cancelled. A pod that was
// signalled before may be killed again, because its grace period continues.
func (h *nodeHistory) noNewKillAfterCancellation(f NodeFact) {
	if h.isFirstKill(f) && f.Shutdown == 0 {
		h.violation(f, "no drain is in progress")
	}
}

// failedKillIsRepeated: the agent repeats a failed kill after 1 s. It need not repeat it if
//   - another kill of the pod is in progress or has succeeded,
//   - an error said that a repetition is useless (NoRetry),
//   - the drain is over, or the agent ends.
func (h *nodeHistory) failedKillIsRepeated(f NodeFact) {
	if f.What != NodeState || f.State == "released" {
		return
	}
	for _, p := range h.pods {
		if p.failed.What != "" && f.At.Sub(p.failed.At) > nodeRetry {
			h.violation(p.failed, "not repeated by %v", sinceBoot(f.At))
			p.failed = NodeFact{}
		}
	}
}

// givenUpKillIsNotRepeated: a drain does not repeat a kill of its own whose error says that a repetition is useless. A pod
// that an earlier agent or drain has signalled is not judged: this drain may continue the kill early, and repeat it once
// when the turn of the pod's bucket comes.
func (h *nodeHistory) givenUpKillIsNotRepeated(f NodeFact) {
	if f.What != NodeKill {
		return
	}
	p := h.pod(f.Pod)
	wasOwnKill := p.isSignalled && p.drain != 0 && p.drain == f.Shutdown
	if wasOwnKill && p.isGivenUp {
		h.violation(f, "its kill was given up")
	}
}
