package judge

import (
	"slices"
	"time"
)

// deadlinesOnlyMoveEarlier checks that a pod's deadline only moves earlier, even if another drain, shutdown or agent of
// the same boot kills the pod again. A pod that is started again has a new deadline.
func deadlinesOnlyMoveEarlier(r *NodeRecord) (violations []string) {
	until := map[string]time.Time{} // the last deadline of each pod
	for _, f := range r.Facts {
		switch f.What {
		case NodePodRuns, NodePodLost:
			delete(until, f.Pod)
		case NodeBooted:
			clear(until)
		case NodeBegan:
			if f.Failed { // the agent has no log, and does not know the deadlines
				clear(until)
			}
		case NodeKill:
			if f.At.Add(time.Duration(f.Seconds)*time.Second).After(f.Until.Add(nodeLag)) && f.Seconds > 0 {
				violations = append(violations, nodeViolation(f, "more seconds than its deadline leaves"))
			}
			if before, hasBefore := until[f.Pod]; hasBefore && f.Until.After(before) {
				violations = append(violations, nodeViolation(f, "it had until %v", before.Sub(time.Unix(0, 0))))
			}
			until[f.Pod] = f.Until
		default:
		}
	}
	return violations
}

// noGraceAfterWaitEnd checks that no grace period of a drain ends after WaitEnd, at which the drain stops waiting for
// pods. Only a pod's first kill counts: a repeated one keeps the pod's earlier deadline.
func noGraceAfterWaitEnd(r *NodeRecord) (violations []string) {
	killed := map[string]bool{}
	var waitEnd time.Time
	for _, f := range r.Facts {
		switch f.What {
		case NodeLogged:
			killed[f.Pod] = true
		case NodeBooted:
			clear(killed)
		case NodePodRuns, NodePodLost:
			delete(killed, f.Pod)
		case NodeWindows:
			waitEnd = f.WaitEnd
		case NodeKill:
			isFirst := !killed[f.Pod] && f.Shutdown != 0
			graceEnd := f.At.Add(time.Duration(f.Seconds) * time.Second)
			if isFirst && f.Seconds > 0 && graceEnd.After(waitEnd.Add(2*nodeLag)) {
				violations = append(violations, nodeViolation(f, "the waits end at %v", waitEnd.Sub(time.Unix(0, 0))))
			}
			killed[f.Pod] = true
		default:
		}
	}
	return violations
}

// nodeBucket returns the index of the bucket that has the pods of a priority: the last whose lowest priority is not
// above it, or the first bucket.
func nodeBucket(windows []NodeWindow, priority int32) int {
	bucket := 0
	for i, w := range windows {
		if w.Priority <= priority {
			bucket = i
		}
	}
	return bucket
}

// graceFillsTheWindow checks that a drain does not shorten grace periods without need: a pod gets its own, or all the
// time that its bucket has left if that is less. Without roll-over it gets no more than the time of its bucket, or of a
// higher one if it came late. The end of the drain gives such a pod that of a lower bucket if these have none.
func graceFillsTheWindow(r *NodeRecord) (violations []string) {
	killed, pods := map[string]bool{}, map[string]NodeFact{}
	var windows []NodeWindow
	for _, f := range r.Facts {
		switch f.What {
		case NodeLogged:
			killed[f.Pod] = true
		case NodeBooted:
			clear(killed)
		case NodePodRuns:
			delete(killed, f.Pod)
			pods[f.Pod] = f
		case NodePodLost:
			delete(killed, f.Pod)
		case NodeWindows:
			windows = f.Windows
		case NodeKill:
			if pod := pods[f.Pod]; !killed[f.Pod] && f.Shutdown != 0 && len(windows) > 0 {
				bucket := nodeBucket(windows, pod.Priority)
				w := windows[bucket]
				left, most := w.KillsEnd.Sub(f.At), time.Duration(0)
				for _, later := range windows[bucket:] {
					most = max(most, later.Pods)
				}
				if r.NoRollOver && most > 0 && f.Seconds > int64((most+nodeLag)/time.Second) {
					violations = append(violations, nodeViolation(f, "its bucket has only %v", most))
				}
				if pod.Seconds < 0 || r.NoRollOver {
					for _, later := range windows[bucket:] { // the pod may have come late
						left = min(left, later.Pods)
					}
				}
				least := int64(left / time.Second)
				if pod.Seconds >= 0 {
					least = min(least, pod.Seconds)
				}
				if r.NoRollOver { // readiness marks may have used up to 2 s of the window
					least -= 2
				}
				if f.Seconds < least && w.Pods > 0 {
					violations = append(violations, nodeViolation(f, "its window leaves %d s", least))
				}
			}
			killed[f.Pod] = true
		default:
		}
	}
	return violations
}

// bucketsDoNotOverlap checks that within one drain no pod of a higher bucket is killed while pods of a lower one run
// and still have time.
//
// A pod belongs to the bucket of its priority, or to a higher one if it came late or if its own has no time. Pods
// that TerminateAll killed belong to its drain, even if a shutdown takes over. A kill that failed for good delays no
// bucket. The next agent may repeat it, when its bucket may be over.
func bucketsDoNotOverlap(r *NodeRecord) (violations []string) {
	killed, isKilled, runs := map[string]bool{}, map[string]bool{}, map[string]bool{} // killed: by this agent, and still running
	at, isOwn, isGivenUp := map[string]time.Time{}, map[string]bool{}, map[string]bool{}
	priorities, buckets := map[string]int32{}, map[string]int32{}
	var windows []NodeWindow
	for _, f := range r.Facts {
		switch f.What {
		case NodeLogged:
			isKilled[f.Pod] = true
		case NodeBooted:
			clear(killed)
			clear(isKilled)
		case NodeBegan:
			clear(killed)
			windows = nil
		case NodePodLost:
			delete(isKilled, f.Pod)
			delete(buckets, f.Pod)
		case NodePodRuns:
			priorities[f.Pod], runs[f.Pod] = f.Priority, true
			delete(buckets, f.Pod)
			delete(isKilled, f.Pod)
			delete(killed, f.Pod)
			delete(isGivenUp, f.Pod)
		case NodeWindows:
			before := windows
			windows = slices.Clone(f.Windows)
			for i := range min(len(before), len(windows)) {
				if before[i].KillsEnd.Before(f.At) { // its pods have had their time
					windows[i].KillsEnd = before[i].KillsEnd
				}
			}
		case NodePodEnded:
			delete(runs, f.Pod)
			delete(killed, f.Pod)
		case NodeKilled:
			if f.NoRetry {
				delete(killed, f.Pod)
			}
			isGivenUp[f.Pod] = isGivenUp[f.Pod] || f.NoRetry
		case NodeKill:
			isFirst := !isKilled[f.Pod]
			isKilled[f.Pod] = true
			if _, hasBucket := buckets[f.Pod]; !hasBucket {
				at[f.Pod], isOwn[f.Pod], buckets[f.Pod] = f.At, f.Own, f.Bucket
				if len(windows) > 0 && windows[nodeBucket(windows, priorities[f.Pod])].Pods > 0 {
					buckets[f.Pod] = max(priorities[f.Pod], f.Bucket)
				}
			}
			if isFirst && f.Shutdown != 0 && len(windows) > 0 {
				bucket := nodeBucket(windows, buckets[f.Pod])
				for pod := range killed {
					lower := nodeBucket(windows, buckets[pod])
					until := windows[lower].KillsEnd
					if own := at[pod].Add(windows[lower].Pods - time.Second); r.NoRollOver && own.Before(until) { // readiness marks may have been late
						until = own
					}
					if isOwn[pod] == f.Own && lower < bucket && windows[lower].Pods > 0 && f.At.Before(until) {
						violations = append(violations, nodeViolation(f, "%s has until %v", pod, until.Sub(time.Unix(0, 0))))
					}
				}
			}
			if f.Shutdown != 0 && runs[f.Pod] && !isGivenUp[f.Pod] {
				killed[f.Pod] = true
			}
		default:
		}
	}
	return violations
}

// windowsOnlyMoveEarlier checks that the end of a drain, and of each of its buckets, only moves earlier, even if another
// agent continues the drain.
func windowsOnlyMoveEarlier(r *NodeRecord) (violations []string) {
	var before NodeFact
	isKept := false // before was stored: its step ended before the agent died
	for _, f := range r.Facts {
		switch f.What {
		case NodeBooted, NodeRetaken, NodePodLost:
			before = NodeFact{}
		case NodeState:
			isKept = true
		case NodeBegan:
			if f.Failed || before.Own || before.Failed || !isKept { // TerminateAll stores nothing
				before = NodeFact{}
			}
		case NodeWindows:
			if before.Shutdown == f.Shutdown && before.Planned {
				if f.WaitEnd.After(before.WaitEnd) || f.ReleaseBy.After(before.ReleaseBy) {
					violations = append(violations, nodeViolation(f, "the end was %v", before.WaitEnd.Sub(time.Unix(0, 0))))
				}
				for i := range min(len(f.Windows), len(before.Windows)) {
					if end := f.Windows[i].End; end.After(before.Windows[i].End) && end.After(f.At) {
						violations = append(violations, nodeViolation(f, "bucket %d ended at %v", i, before.Windows[i].End.Sub(time.Unix(0, 0))))
					}
				}
			}
			before, isKept = f, false
		default:
		}
	}
	return violations
}
