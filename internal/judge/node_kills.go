package judge

import "time"

const (
	maxTimerDelay     = 101 * time.Millisecond            // how late a timer may fire (100 ms), and rounding (1 ms)
	maxKillRetryPause = time.Second + 50*time.Millisecond // the pause before a failed kill is repeated (1 s), and a late timer
)

// deadlineOnlyMovesEarlier: the grace period of each kill ends by the pod's deadline, and a later kill in the same boot, even
// by another drain or agent, does not move the deadline later.
func (h *nodeHistory) deadlineOnlyMovesEarlier(kill NodeFact) {
	isTooLong := kill.graceEnd().After(kill.Until.Add(maxTimerDelay))
	if kill.Seconds > 0 && isTooLong {
		h.addViolation(kill, "more seconds than its deadline leaves")
	}
	previousDeadline := h.pod(kill.Pod).deadline
	if !previousDeadline.IsZero() && kill.Until.After(previousDeadline) {
		h.addViolation(kill, "it had until %v", sinceBoot(previousDeadline))
	}
}

// graceEnd returns when the grace period of a kill ends.
func (f NodeFact) graceEnd() time.Time { return f.At.Add(time.Duration(f.Seconds) * time.Second) }

// noGraceAfterWaitEnd: no grace period that a drain gives ends after WaitEnd, at which the drain stops waiting for pods. Only
// a pod's first kill is checked: a repeated one keeps the pod's earlier deadline.
//
// It may end twice maxTimerDelay later: a timer may be late, and plan.Window.Seconds adds 100 ms before it rounds down to
// seconds, so that a late timer does not cost the pod a second.
func (h *nodeHistory) noGraceAfterWaitEnd(kill NodeFact) {
	latest := h.timetable.WaitEnd.Add(2 * maxTimerDelay)
	if h.isFirstKillByDrain(kill) && kill.graceEnd().After(latest) {
		h.addViolation(kill, "the waits end at %v", sinceBoot(h.timetable.WaitEnd))
	}
}

// isFirstKillByDrain reports whether a kill belongs to a drain, and is the first one of its pod that the agent can know of.
func (h *nodeHistory) isFirstKillByDrain(kill NodeFact) bool {
	isByDrain := kill.Shutdown != 0
	return isByDrain && !h.pod(kill.Pod).wasKilledInBoot
}

// graceFillsTheWindow: a pod's first kill in a drain wastes no time that the pod could use. The pod gets at least its own grace
// period or what is left of its bucket's time, whichever is shorter (leastGraceSeconds). A bucket whose configured time is 0 need
// not give any. With NoRollOver, the pod gets at most the configured time of a bucket that may kill it.
func (h *nodeHistory) graceFillsTheWindow(kill NodeFact) {
	if !h.isFirstKillByDrain(kill) {
		return
	}
	windows, p := h.timetable.Windows, h.pod(kill.Pod)
	possibleWindows := windows[bucketIndex(windows, p.priority):] // a pod that came late is killed with a higher bucket than its own
	most, least := longestOwnTime(possibleWindows), h.leastGraceSeconds(p, possibleWindows, kill.At)
	isTooLong := most > 0 && kill.Seconds > int64((most+maxTimerDelay)/time.Second)
	if h.NoRollOver && isTooLong {
		h.addViolation(kill, "the buckets from its own on have at most %v", most)
	}
	bucketHasTime := possibleWindows[0].OwnTime > 0
	if bucketHasTime && kill.Seconds < least {
		h.addViolation(kill, "its window leaves %d s", least)
	}
}

// longestOwnTime returns the longest of the buckets' configured times.
func longestOwnTime(windows []NodeWindow) (longest time.Duration) {
	for _, w := range windows {
		longest = max(longest, w.OwnTime)
	}
	return longest
}

// leastGraceSeconds returns the least grace period that is right for a pod if it is killed now, in one of several windows. It is
// the pod's own grace period, or the time until the first window's KillsEnd if that is shorter. Without a grace period of its
// own, or with NoRollOver, the configured time of the window limits the pod, too; it may be the shortest one.
func (h *nodeHistory) leastGraceSeconds(p *nodePod, windows []NodeWindow, now time.Time) int64 {
	remaining, hasOwnGrace := windows[0].KillsEnd.Sub(now), p.grace >= 0
	if !hasOwnGrace || h.NoRollOver {
		for _, w := range windows {
			remaining = min(remaining, w.OwnTime)
		}
	}
	least := int64(remaining / time.Second)
	if hasOwnGrace {
		least = min(least, p.grace)
	}
	return least
}

// podIsLoggedBeforeKill: the state log has a pod's deadline before the pod is killed, so that the next agent knows it if this
// one dies.
func (h *nodeHistory) podIsLoggedBeforeKill(kill NodeFact) {
	if logged := h.pod(kill.Pod).loggedKill.Until; !logged.Equal(kill.Until) {
		h.addViolation(kill, "the log has %v", sinceBoot(logged))
	}
}

// stateIsPublishedBeforeKill: before a drain kills a pod, the agent tells the API server that the node shuts down. Otherwise a
// replacement of the pod could be scheduled on this node. A call in progress is enough, because one that hangs must not delay
// the kill. A drain of TerminateAll publishes nothing: the node stays up.
func (h *nodeHistory) stateIsPublishedBeforeKill(kill NodeFact) {
	mustPublish := h.Publishes && !kill.ByTerminateAll && h.isFirstKillByDrain(kill)
	isPublished := h.publishedShutdown == kill.Shutdown || len(h.publishCalls) > 0
	if mustPublish && !isPublished {
		h.addViolation(kill, "the node's state is not published")
	}
}

// noNewKillAfterCancellation: only a drain kills a pod for the first time. Once the shutdown is cancelled, the agent may repeat
// the kill of a pod, because the pod's grace period continues, but may kill no other pod.
func (h *nodeHistory) noNewKillAfterCancellation(kill NodeFact) {
	isInDrain, isFirst := kill.Shutdown != 0, !h.pod(kill.Pod).wasKilledInBoot
	if isFirst && !isInDrain {
		h.addViolation(kill, "no drain is in progress")
	}
}

// failedKillIsRepeated: if a kill fails and must be repeated, the agent repeats it in time.
func (h *nodeHistory) failedKillIsRepeated(state NodeFact) {
	for _, p := range h.pods {
		if p.killToRepeat.isSet() && state.At.Sub(p.killToRepeat.At) > maxKillRetryPause {
			h.addViolation(p.killToRepeat, "not repeated by %v", sinceBoot(state.At))
			p.killToRepeat = NodeFact{} // one violation is enough
		}
	}
}

// givenUpKillIsNotRepeated: a drain does not repeat its kill of a pod if the error said that a repetition is useless. If another
// agent or drain was the first to kill the pod, this drain may kill it again.
func (h *nodeHistory) givenUpKillIsNotRepeated(kill NodeFact) {
	p := h.pod(kill.Pod)
	isByDrain := kill.Shutdown != 0
	isOwnRepetition := isByDrain && p.wasKilledInBoot && p.firstKilledIn == kill.Shutdown
	if isOwnRepetition && p.isGivenUp {
		h.addViolation(kill, "its kill was given up")
	}
}
