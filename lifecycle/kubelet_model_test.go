//go:build go1.25

package lifecycle_test

import (
	"cmp"
	"slices"
	"time"
)

// kubeletKill is a model of the kubelet's kill of a pod: it computes, without goroutines or a clock, what
// killContainersWithSyncResult and killContainer do. All times count from the start of the first kill. For each class of
// differences in differs, the model does what kubegrace does instead: each condition that reads differs is one
// difference, and all other lines are the kubelet's.
type kubeletKill struct {
	killInput

	differs      map[difference]bool
	lines        killTimeline
	endsAt       map[string]time.Duration // when a container ends, by itself or because it is stopped
	calls        map[string]int           // how many StopContainer calls a container has got
	hookRan      map[string]bool
	terminatedAt map[string]time.Duration // when the termination ordering learns that a container has terminated
	failing      []failurePeriod          // when kubegrace's stops were failing
}

// failurePeriod is the time during which the stop of a container was failing. If it did not fail, from is the constant
// never.
type failurePeriod struct{ from, until time.Duration }

// run computes a kill of the pod and, as long as it fails, another one killPause later, up to killTries in all.
func (k *kubeletKill) run() killTimeline {
	k.endsAt, k.calls, k.hookRan = map[string]time.Duration{}, map[string]int{}, map[string]bool{}
	for _, c := range k.Containers {
		k.endsAt[c.Name] = cmp.Or(c.ExitsAt, never)
	}
	at, failed := time.Duration(0), true
	for tries := 0; failed && tries < killTries; tries++ {
		at, failed = k.killContainers(at)
		k.lines.add(at, thePod, "kill returned, failed: %t", failed)
		if failed && k.OnlyContainer == "" { // SyncTerminatingPod records it
			k.lines.add(at, thePod, "FailedKillPod")
		}
		at += killPause
	}
	for _, c := range k.Containers {
		if c.IsRunning && k.endsAt[c.Name] < never {
			k.lines.add(k.endsAt[c.Name], c.Name, "ended")
		}
	}
	return k.lines
}

// killContainers kills the containers that are running at a time, in parallel. It computes main containers first and sidecars
// in reverse order, because a sidecar waits for the ends of those before it. returned is when the last kill returns, and failed
// says that one of the kills has failed.
func (k *kubeletKill) killContainers(at time.Duration) (returned time.Duration, failed bool) {
	k.terminatedAt, k.failing, returned = map[string]time.Duration{}, nil, at
	for _, c := range slices.Backward(k.Containers) { // main containers are the last ones, sidecars stop in reverse order
		if k.runs(c, at) && (k.OnlyContainer == "" || k.OnlyContainer == c.Name) {
			end, isKilled := k.killContainer(c, at)
			returned, failed = max(returned, end), failed || !isKilled
		}
	}
	for _, period := range k.failing { // kubegrace records a failure at once, unless another container is failing
		isAnotherFailing := slices.ContainsFunc(k.failing, func(other failurePeriod) bool { return other.from < period.from && period.from < other.until })
		if period.from < never && !isAnotherFailing {
			k.lines.add(period.from, thePod, "FailedKillPod")
		}
	}
	return returned, failed
}

// runs reports whether a container is running at a time.
func (k *kubeletKill) runs(c killContainer, at time.Duration) bool {
	return c.IsRunning && k.endsAt[c.Name] > at
}

// setTerminationGracePeriod returns the grace period of the deletion. Without one it returns that of the failed probe, if
// the pod has a grace period too, and else the pod's; 2 s if the pod has none.
func (k *kubeletKill) setTerminationGracePeriod(c killContainer) int64 {
	switch {
	case k.DeletionGrace != nil:
		return *k.DeletionGrace
	case k.Grace != nil && k.Probe != "" && c.ProbeGrace[k.Probe] != nil:
		return *c.ProbeGrace[k.Probe]
	case k.Grace != nil:
		return *k.Grace
	default:
		return 2
	}
}

// calculateEffectiveGracePeriod is the pod worker's function of this name. It returns the request's grace period, or the
// deletion's if that is shorter and not 0; without a request the deletion's; without both the pod's own. The result is at
// least 1 s.
func (k *kubeletKill) calculateEffectiveGracePeriod() int64 {
	grace, overridden := int64(0), false
	for _, seconds := range []*int64{k.DeletionGrace, k.Override} {
		if seconds != nil && (grace == 0 || *seconds < grace) {
			grace, overridden = *seconds, true
		}
	}
	if grace == 0 && !overridden && k.Grace != nil {
		grace = *k.Grace
	}
	return max(grace, 1)
}

// killContainer is the kubelet's function of this name: the event, the hook, the wait for the container's turn, and one
// StopContainer call, each with the rest of the grace period. began is when it is called. returned is when it returns;
// isKilled is false if it failed.
func (k *kubeletKill) killContainer(c killContainer, began time.Duration) (returned time.Duration, isKilled bool) {
	if c.Role == roleMissing && !k.differs[specIsMissing] {
		return began, false // failed to get containerSpec
	}
	grace, now := k.setTerminationGracePeriod(c), began // grace is what is left at the time now
	k.lines.add(now, c.Name, "Killing: %s", cmp.Or(k.Message, "Stopping container "+c.Name))
	switch {
	case k.OnlyContainer == "" && !k.InFork: // killed by a pod worker, whose override is never nil
		grace = k.calculateEffectiveGracePeriod()
	case k.Override != nil:
		grace = *k.Override
	}
	given, end := grace, began+inSeconds(grace) // the whole grace period, and its end
	if c.Hook != noHook && grace > 0 && (!k.hookRan[c.Name] || !k.differs[hookRunsAgain]) {
		used := k.executePreStopHook(c, now, grace)
		now, grace = now+used, grace-int64(used/time.Second)
	}
	k.hookRan[c.Name] = true
	if k.OnlyContainer == "" && grace > 0 { // the pod is killed: sidecars wait for their turn
		turn := min(k.turn(c, began), now+inSeconds(grace))
		if k.differs[timeIsTruncated] {
			turn = min(turn, end)
		}
		waited := max(turn-now, 0)
		now, grace = now+waited, grace-int64(waited/time.Second)
	}
	if k.differs[timeIsTruncated] {
		grace = given - int64((now-began)/time.Second)
	}
	return k.stop(c, now, max(grace, 2), given, end)
}

// executePreStopHook runs the hook at a time, and returns how much of the grace period the kill waits for it.
func (k *kubeletKill) executePreStopHook(c killContainer, at time.Duration, grace int64) (used time.Duration) {
	limit, takes, fails := inSeconds(grace), c.HookTakes, c.HookFails
	k.lines.add(at, c.Name, "hook began")
	if k.differs[sleepOutlivesExit] && c.Hook == sleepHook {
		takes = min(takes, max(k.endsAt[c.Name]-at, 0))
	}
	if k.differs[hookOutlivesGrace] && takes > limit {
		takes, fails = limit, hookSucceeds
	}
	switch {
	case c.Hook == execHook && k.differs[execWithoutLimit]:
		k.lines.add(at, c.Name, "command with timeout %v", limit)
	case c.Hook == execHook:
		k.lines.add(at, c.Name, "command with timeout 0s")
	}
	k.lines.add(at+takes, c.Name, "hook returned")
	if fails == hookReturnsError || fails == hookPanicked && k.differs[hookPanics] {
		k.lines.add(at+takes, c.Name, "FailedPreStopHook: PreStopHook failed")
	}
	return min(takes, limit)
}

// turn returns when a container may stop. A sidecar waits for all main containers, and for the sidecar declared after it. A
// container that is not running counts as terminated. A container whose stop failed never terminates.
func (k *kubeletKill) turn(c killContainer, began time.Duration) (turn time.Duration) {
	if c.Role != roleSidecar {
		return began
	}
	index := slices.IndexFunc(k.Containers, func(other killContainer) bool { return other.Name == c.Name })
	for i, other := range k.Containers[index+1:] { // later sidecars, then all other containers
		isAwaited := other.Role == roleMain || other.Role == roleSidecar && (i == 0 || k.differs[orderHasGap])
		if isAwaited && k.runs(other, began) {
			turn = max(turn, cmp.Or(k.terminatedAt[other.Name], never))
		}
	}
	return turn
}

// stop makes one StopContainer call, at the time at and with a timeout of seconds. kubegrace calls again after a failure, with
// the time that is left until end: 5 s (DefaultStopTimeoutSlack) after the timeout of a call that hangs, and after a pause of
// 0.1 to 1 s otherwise. given is the whole grace period, which ends at end. returned is when the last call returns;
// isKilled is false if it failed.
func (k *kubeletKill) stop(c killContainer, at time.Duration, seconds, given int64, end time.Duration) (returned time.Duration, isKilled bool) {
	failingSince := never // when the first failed call returned
	killed := func(at time.Duration) (time.Duration, bool) {
		k.terminatedAt[c.Name] = at
		k.failing = append(k.failing, failurePeriod{from: failingSince, until: at})
		return at, true
	}
	for pause := 100 * time.Millisecond; ; pause = min(2*pause, time.Second) {
		returned, answer := k.stopContainer(c, at, seconds)
		switch {
		case answer == stopSucceeds:
			return killed(returned)
		case answer == stopHung && k.differs[stopHangs]:
			returned = at + inSeconds(seconds) + 5*time.Second
			at, seconds = returned, 0
		case answer == stopRefused && k.differs[stopFails]:
			at = returned + pause
			seconds = max(given-int64((inSeconds(given)-end+at)/time.Second), 2)
			if late := at - end; late >= 100*time.Millisecond { // the minimum of 2 s counts from the deadline, not from each call
				seconds = int64(max(2*time.Second-late, 0) / time.Second)
			}
		default: // the kubelet's kill has failed: sidecars that wait for this container wait until their deadline
			return returned, false
		}
		failingSince = min(failingSince, returned)
		if k.endsAt[c.Name] <= returned { // the runtime does not list it
			return killed(returned)
		}
	}
}
