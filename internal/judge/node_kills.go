package judge

import "time"

const (
	nodeLag   = 101 * time.Millisecond            // how late a timer may fire (100 ms), and rounding (1 ms)
	nodeRetry = time.Second + 50*time.Millisecond // the pause before a failed kill is repeated, and a late timer
)

// deadlineOnlyMovesEarlier: each kill of a pod gets at most the seconds that are left until the pod's deadline. If another
// drain, shutdown or agent of the same boot kills the pod again, the deadline is not later than before.
func (h *nodeHistory) deadlineOnlyMovesEarlier(kill NodeFact) {
	if kill.Seconds > 0 && kill.graceEnd().After(kill.Until.Add(nodeLag)) {
		h.violation(kill, "more seconds than its deadline leaves")
	}
	if previous := h.pod(kill.Pod).deadline; !previous.IsZero() && kill.Until.After(previous) {
		h.violation(kill, "it had until %v", sinceBoot(previous))
	}
}

// graceEnd returns when the grace period of a kill ends.
func (f NodeFact) graceEnd() time.Time { return f.At.Add(time.Duration(f.Seconds) * time.Second) }

// noGraceAfterWaitEnd: no grace period of a drain ends after WaitEnd, at which the drain stops waiting for pods. Only a
// pod's first kill counts: a repeated one keeps the pod's earlier deadline.
//
// Twice nodeLag is tolerated. The longest grace period of a bucket may end 100 ms after WaitEnd. Another 100 ms are added
// by plan.Window.Seconds before it rounds down to seconds, so that a late timer does not cost the pod a second.
func (h *nodeHistory) noGraceAfterWaitEnd(kill NodeFact) {
	latest := h.windows.WaitEnd.Add(2 * nodeLag)
	if h.isFirstOfDrain(kill) && kill.graceEnd().After(latest) {
		h.violation(kill, "the waits end at %v", sinceBoot(h.windows.WaitEnd))
	}
}

// isFirstOfDrain reports whether a drain makes a kill, and the kill is the first one of its pod as far as the agent can know.
func (h *nodeHistory) isFirstOfDrain(kill NodeFact) bool {
	return kill.Shutdown != 0 && !h.pod(kill.Pod).isSignalled
}

// graceFillsTheWindow checks the grace period that a pod gets with its first kill in a drain.
//   - It is at least the pod's own grace period or, if that is less, the time that the bucket's window has left. With
//     NoRollOver, or without a grace period of its own, less may be enough (leastGrace). A bucket whose configured time is 0
//     need not give any.
//   - With NoRollOver it is at most the configured time of the pod's bucket, because time that lower buckets leave unused is
//     lost. A pod that came late may be killed with a higher bucket, so the most of these buckets' times is allowed.
func (h *nodeHistory) graceFillsTheWindow(kill NodeFact) {
	windows := h.windows.Windows
	if !h.isFirstOfDrain(kill) {
		return
	}
	p := h.pod(kill.Pod)
	possibleWindows := windows[nodeBucket(windows, p.priority):] // of its own bucket and of the higher ones
	if most := mostTime(possibleWindows); h.NoRollOver && most > 0 && kill.Seconds > int64((most+nodeLag)/time.Second) {
		h.violation(kill, "the buckets from its own on have at most %v", most)
	}
	bucketHasTime := possibleWindows[0].OwnTime > 0
	if least := h.leastGrace(p, possibleWindows, kill.At); bucketHasTime && kill.Seconds < least {
		h.violation(kill, "its window leaves %d s", least)
	}
}

// mostTime returns the most time that one of several windows gives to pods.
func mostTime(windows []NodeWindow) (most time.Duration) {
	for _, w := range windows {
		most = max(most, w.OwnTime)
	}
	return most
}

// leastGrace returns the seconds that a pod must get at least if it is killed now with one of several windows: the time until
// the first one's KillsEnd, or its own grace period if that is shorter. A pod without a grace period, and each pod with
// NoRollOver, may also be limited to the own time of its window, which may be the shortest of these.
func (h *nodeHistory) leastGrace(p *nodePod, windows []NodeWindow, now time.Time) int64 {
	remaining, hasGrace := windows[0].KillsEnd.Sub(now), p.grace >= 0
	if !hasGrace || h.NoRollOver {
		for _, w := range windows {
			remaining = min(remaining, w.OwnTime)
		}
	}
	least := int64(remaining / time.Second)
	if hasGrace {
		least = min(least, p.grace)
	}
	return least
}

// podIsLoggedBeforeKill: a pod's deadline is in the log before the pod is killed, so that the next agent knows it if this
// one dies.
func (h *nodeHistory) podIsLoggedBeforeKill(kill NodeFact) {
	if logged := h.pod(kill.Pod).stored.Until; !logged.Equal(kill.Until) {
		h.violation(kill, "the log has %v", sinceBoot(logged))
	}
}

// stateIsPublishedBeforeKill: before a drain kills a pod, it has published to the API server that the node shuts down.
// Otherwise a replacement of the pod could be scheduled on this node. A publish call in progress is enough: one that hangs
// must not delay the kill. After a drain of TerminateAll the node stays up.
func (h *nodeHistory) stateIsPublishedBeforeKill(kill NodeFact) {
	mustPublish := h.Publishes && !kill.ByTerminateAll && h.isFirstOfDrain(kill)
	isPublished := h.publishedShutdown == kill.Shutdown || len(h.publishCalls) > 0
	if mustPublish && !isPublished {
		h.violation(kill, "the node's state is not published")
	}
}

// noNewKillAfterCancellation: no pod is signalled for the first time after the shutdown was cancelled. A pod that was
// signalled before may be killed again, because its grace period continues.
func (h *nodeHistory) noNewKillAfterCancellation(kill NodeFact) {
	isInDrain, isFirst := kill.Shutdown != 0, !h.pod(kill.Pod).isSignalled
	if isFirst && !isInDrain {
		h.violation(kill, "no drain is in progress")
	}
}

// failedKillIsRepeated: a failed kill that must be repeated (addAnswer) is repeated after 1 s.
func (h *nodeHistory) failedKillIsRepeated(state NodeFact) {
	for _, p := range h.pods {
		if p.failedKill.isSet() && state.At.Sub(p.failedKill.At) > nodeRetry {
			h.violation(p.failedKill, "not repeated by %v", sinceBoot(state.At))
			p.failedKill = NodeFact{}
		}
	}
}

// givenUpKillIsNotRepeated: a drain does not repeat a kill of its own whose error says that a repetition is useless. A pod
// that an earlier agent or drain has signalled is not judged: this drain may continue the kill early, and repeat it once
// when the turn of the pod's bucket comes.
func (h *nodeHistory) givenUpKillIsNotRepeated(kill NodeFact) {
	p := h.pod(kill.Pod)
	isOwnRepetition := p.isSignalled && p.drain != 0 && p.drain == kill.Shutdown
	if isOwnRepetition && p.isGivenUp {
		h.violation(kill, "its kill was given up")
	}
}
