package judge

import "time"

// deadlinesOnlyMoveEarlier checks that a pod's deadline only moves earlier, even if another drain, shutdown or agent of
// the same boot kills the pod again. A pod that is started again has a new deadline, and so has one whose deadline a
// power cut has taken from the log. Each kill gets at most the seconds that its deadline leaves.
func deadlinesOnlyMoveEarlier(r *NodeRecord) (violations []string) {
	deadlines := map[string]time.Time{} // the last deadline of each pod
	for _, f := range r.Facts {
		switch f.What {
		case NodePodRuns, NodePodLost:
			delete(deadlines, f.Pod)
		case NodeBooted:
			clear(deadlines)
		case NodeAgentBegan:
			if f.Failed { // the agent has no log, and does not know the deadlines
				clear(deadlines)
			}
		case NodeKill:
			graceEnd := f.At.Add(time.Duration(f.Seconds) * time.Second)
			if f.Seconds > 0 && graceEnd.After(f.Until.Add(nodeLag)) {
				violations = append(violations, nodeViolation(f, "more seconds than its deadline leaves"))
			}
			if previous, hasPrevious := deadlines[f.Pod]; hasPrevious && f.Until.After(previous) {
				violations = append(violations, nodeViolation(f, "it had until %v", previous.Sub(time.Unix(0, 0))))
			}
			deadlines[f.Pod] = f.Until
		default:
		}
	}
	return violations
}

// noGraceAfterWaitEnd checks that no grace period of a drain ends after WaitEnd, at which the drain stops waiting for
// pods. Only a pod's first kill counts: a repeated one keeps the pod's earlier deadline.
func noGraceAfterWaitEnd(r *NodeRecord) (violations []string) {
	signalled := signalledPods{}
	var waitEnd time.Time
	for _, f := range r.Facts {
		isFirstKill := signalled.add(f)
		if f.What == NodeWindows {
			waitEnd = f.WaitEnd
		}
		graceEnd := f.At.Add(time.Duration(f.Seconds) * time.Second)
		// Tolerated: the longest grace period of a bucket may end 100 ms after WaitEnd, and plan.Window.Seconds adds 100 ms
		// before it rounds down to seconds, so that a late timer does not make the grace period a second shorter.
		if isFirstKill && f.Shutdown != 0 && f.Seconds > 0 && graceEnd.After(waitEnd.Add(2*nodeLag)) {
			violations = append(violations, nodeViolation(f, "the waits end at %v", waitEnd.Sub(time.Unix(0, 0))))
		}
	}
	return violations
}

// graceFillsTheWindow checks the grace period that a pod gets with its first kill in a drain:
//
//   - It is not too short: the pod gets its own grace period, or all the time that its bucket's window has left if
//     that is less (leastGrace). A bucket without time is not checked.
//   - With NoRollOver it is not too long: a bucket does not get the time that lower ones left unused, so the pod gets
//     no more than its bucket's own time.
//
// A pod that came late may be killed with a higher bucket, so both limits allow for all buckets from its own upwards.
func graceFillsTheWindow(r *NodeRecord) (violations []string) {
	signalled, pods := signalledPods{}, map[string]NodeFact{}
	var windows []NodeWindow
	for _, f := range r.Facts {
		isFirstKill := signalled.add(f)
		switch f.What {
		case NodePodRuns:
			pods[f.Pod] = f
		case NodeWindows:
			windows = f.Windows
		case NodeKill:
			if !isFirstKill || f.Shutdown == 0 || len(windows) == 0 {
				continue
			}
			possible := windows[nodeBucket(windows, pods[f.Pod].Priority):] // the pod may be killed with its own bucket or a higher one
			if most := mostTime(possible); r.NoRollOver && most > 0 && f.Seconds > int64((most+nodeLag)/time.Second) {
				violations = append(violations, nodeViolation(f, "its bucket has only %v", most))
			}
			if least := r.leastGrace(pods[f.Pod], possible, f.At); possible[0].OwnTime > 0 && f.Seconds < least {
				violations = append(violations, nodeViolation(f, "its window leaves %d s", least))
			}
		default:
		}
	}
	return violations
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
func (r *NodeRecord) leastGrace(pod NodeFact, windows []NodeWindow, at time.Time) int64 {
	remaining, hasGrace := windows[0].KillsEnd.Sub(at), pod.Seconds >= 0
	if !hasGrace || r.NoRollOver {
		for _, w := range windows {
			remaining = min(remaining, w.OwnTime)
		}
	}
	least := int64(remaining / time.Second)
	if hasGrace {
		least = min(least, pod.Seconds)
	}
	if r.NoRollOver { // marking the pods as not ready may have taken up to 2 s of the bucket's own time
		least -= 2
	}
	return least
}

// windowsOnlyMoveEarlier checks that the end of a drain, and of each of its buckets, only moves earlier, even if another
// agent continues the drain. It compares each timetable with the previous one of the same shutdown, if that was made
// with a list of the pods (Planned). The end of a bucket that has passed is not compared. An agent does not know the
// previous timetable
//
//   - if it has no log, or a power cut or a boot came between the two,
//   - if the previous timetable was never stored, because it is one of TerminateAll or of an agent without a log, or
//   - if the agent that made it died in the same step.
func windowsOnlyMoveEarlier(r *NodeRecord) (violations []string) {
	var previous NodeFact
	isStored := false // the step that made previous has ended, so that it is in the log
	for _, f := range r.Facts {
		switch f.What {
		case NodeBooted, NodeRetaken, NodePodLost:
			previous = NodeFact{}
		case NodeState:
			isStored = true
		case NodeAgentBegan:
			if f.Failed || previous.Own || previous.Failed || !isStored { // TerminateAll stores nothing
				previous = NodeFact{}
			}
		case NodeWindows:
			if previous.Shutdown == f.Shutdown && previous.Planned {
				if f.WaitEnd.After(previous.WaitEnd) || f.ReleaseBy.After(previous.ReleaseBy) {
					violations = append(violations, nodeViolation(f, "the end was %v", previous.WaitEnd.Sub(time.Unix(0, 0))))
				}
				for i := range min(len(f.Windows), len(previous.Windows)) {
					if end := f.Windows[i].End; end.After(previous.Windows[i].End) && end.After(f.At) {
						violations = append(violations, nodeViolation(f, "bucket %d ended at %v", i, previous.Windows[i].End.Sub(time.Unix(0, 0))))
					}
				}
			}
			previous, isStored = f, false
		default:
		}
	}
	return violations
}
