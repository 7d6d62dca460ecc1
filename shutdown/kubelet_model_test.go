//go:build go1.25

package shutdown_test

import (
	"cmp"
	"slices"
	"time"
)

// kubeletDrain is a model of the kubelet's drain (its configuration, Start and killPods) without goroutines
// and clock. All times count from the announcement of the shutdown. If differs has a class of differences, the model does
// what kubegrace does in that respect. So each condition on differs is a difference, and all other lines are the kubelet's.
type kubeletDrain struct {
	drainInput

	differs  map[difference]bool
	lines    drainTimeline
	schedule []drainBucket
	table    drainTable
	pods     []*modelPod
	listedAt time.Duration // when the pods were last listed
}

// run returns the timeline of the drain; nil if the kubelet takes no lock.
func (k *kubeletDrain) run() drainTimeline {
	k.schedule = k.config()
	sum := time.Duration(0)
	for _, bucket := range k.schedule {
		sum += inSeconds(bucket.Seconds)
	}
	if k.Limit < sum && !k.differs[limitBelowSum] { // Start fails
		return nil
	}
	for _, p := range k.Pods {
		k.pods = append(k.pods, &modelPod{drainPod: p, bucket: k.groupOf(p), endsAt: never, doneAt: never})
	}
	k.table = k.newTable(sum)
	now := time.Duration(0)
	for i := range k.schedule {
		now = k.killGroup(i, now)
	}
	now = k.finish(now)
	k.lines.add(now, "", "lock released")
	return slices.DeleteFunc(k.lines, func(l drainLine) bool { return k.isTooLate(l, now) })
}

// config returns the buckets of ByPriority or, if that is empty, the two buckets of Total and Critical, ascending by priority.
func (k *kubeletDrain) config() []drainBucket {
	list := slices.Clone(k.ByPriority)
	if len(list) == 0 {
		list = []drainBucket{{Priority: regularPriority, Seconds: k.Total - k.Critical}, {Priority: criticalPriority, Seconds: k.Critical}}
	}
	slices.SortFunc(list, func(a, b drainBucket) int { return cmp.Compare(a.Priority, b.Priority) })
	return list
}

// groupOf returns the index of the last group whose priority is not above the pod's. If there is none, it is 0.
func (k *kubeletDrain) groupOf(p drainPod) (group int) {
	priority := int32(0)
	switch {
	case p.Priority != nil:
		priority = *p.Priority
	case p.Class != "" && k.differs[classIgnored]:
		priority = criticalPriority
	}
	for i, bucket := range k.schedule {
		if bucket.Priority <= priority {
			group = i
		}
	}
	return group
}

// killGroup kills a group's pods concurrently and waits for their volumes. It returns when the next group
// begins: when both are done, or the group's seconds are over. An empty group is skipped.
func (k *kubeletDrain) killGroup(i int, began time.Duration) (ended time.Duration) {
	killsEnd, unmountsEnd, graceEnd := k.window(i, began)
	if k.differs[listReadOnce] && began < k.table.waitEnd {
		k.listedAt = began
	}
	var picked []*modelPod
	for _, p := range k.pods {
		if p.ListedAt <= k.listedAt && !p.isPicked && k.takes(i, p) {
			p.isPicked = true
			k.kill(p, began, k.override(p, began, graceEnd, k.table.pods[i]))
			picked = append(picked, p)
		}
	}
	if len(picked) == 0 || k.schedule[i].Seconds == 0 {
		return began
	}
	ended = began
	for _, p := range picked {
		ended = max(ended, min(p.doneAt, killsEnd))
	}
	return min(ended+k.Unmounts, unmountsEnd)
}

// takes reports whether group i kills a pod that no group has killed yet. A group to which a short limit leaves no time kills
// none. A group that is configured with 0 s kills its own pods. A group with time also kills the pods that earlier groups have
// not killed, which occurs only in kubegrace.
func (k *kubeletDrain) takes(i int, p *modelPod) bool {
	hasTime := k.table.pods[i] > 0
	if p.bucket == i {
		return hasTime || k.schedule[i].Seconds == 0
	}
	return p.bucket < i && hasTime
}

// window returns when the waits of a group for kills and for unmounts end, and when the grace periods of its pods end. The
// kubelet counts the group's seconds from its beginning, and unmounts share them.
func (k *kubeletDrain) window(i int, began time.Duration) (killsEnd, unmountsEnd, graceEnd time.Duration) {
	own, unmount, last := k.table.pods[i], time.Duration(0), k.table.ends[len(k.schedule)-1]
	if k.differs[unmountsShareTime] {
		unmount = k.table.unmounts[i]
	}
	unmountsEnd = began + own + unmount
	switch {
	case k.schedule[i].Seconds == 0:
		unmountsEnd, unmount = began, 0
	case k.differs[unusedTimeLost] && !k.NoRollOver:
		unmountsEnd = k.table.ends[i]
	case k.differs[lockOutlastsLimit]:
		unmountsEnd = min(unmountsEnd, last)
	}
	graceEnd = max(unmountsEnd-unmount, 0)
	killsEnd = graceEnd
	if k.differs[lockOutlastsLimit] {
		killsEnd, unmountsEnd = min(killsEnd, k.table.waitEnd), min(unmountsEnd, k.table.waitEnd)
	}
	return max(killsEnd, began), max(unmountsEnd, began), graceEnd
}

// override returns the grace period with which a pod is killed: the remaining seconds of the group, or the pod's own grace
// period if that is not longer.
func (k *kubeletDrain) override(p *modelPod, now, graceEnd, own time.Duration) int64 {
	left := graceEnd - now
	if p.Grace == nil {
		left = min(left, own)
	}
	seconds := wholeSeconds(left)
	if p.Grace != nil && *p.Grace <= seconds {
		return *p.Grace
	}
	return seconds
}

// kill kills a pod. If a call fails, the kubelet only logs the failure, and kubegrace calls again a second later.
func (k *kubeletDrain) kill(p *modelPod, at time.Duration, grace int64) {
	for deadline := at + inSeconds(grace); ; grace = wholeSeconds(deadline - at) {
		returned, isKilled := k.killPodNow(p, at, grace)
		if isKilled || !k.differs[failureOnlyLogged] {
			p.doneAt = returned
			return
		}
		at = returned + time.Second
	}
}

// killPodNow is one call of the kubelet's function: it waits for 1.5 grace periods, but at least 10 s. isKilled is
// false if the call has failed or has timed out; the kill continues after a timeout.
func (k *kubeletDrain) killPodNow(p *modelPod, at time.Duration, grace int64) (returned time.Duration, isKilled bool) {
	k.lines.add(at, p.Name, "killed with %d s", grace)
	if p.calls++; p.calls <= p.Fails {
		return at + p.FailsAfter, false
	}
	if p.endsAt == never {
		p.killedAt, p.endsAt = at, at+min(p.Takes, inSeconds(grace))+p.Late
		k.lines.add(p.endsAt, p.Name, "ended")
	}
	if timeout := at + inSeconds(max(grace+grace/2, 10)); p.endsAt > timeout && !k.differs[killTimesOut] {
		return timeout, false
	}
	return max(p.endsAt, at), true
}

// finish returns when the lock is released. The kubelet releases it when the last group is over. kubegrace also kills pods
// that were listed after their bucket had begun, and waits for pods that outlast their bucket.
func (k *kubeletDrain) finish(now time.Duration) (released time.Duration) {
	last := len(k.schedule) - 1
	for last > 0 && k.table.pods[last] == 0 {
		last--
	}
	_, _, graceEnd := k.window(last, now)
	released = now
	for _, p := range k.pods {
		isLate := k.differs[listReadOnce] && !p.isPicked && p.ListedAt <= now && now < k.table.waitEnd
		if isLate {
			k.kill(p, now, k.override(p, now, graceEnd, k.table.pods[last]))
		}
		if isLate || k.differs[lateEndNotAwaited] && p.isPicked {
			released = max(released, min(p.doneAt, k.table.waitEnd))
		}
	}
	return released
}
