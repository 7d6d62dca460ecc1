package shutdown

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// unacknowledgedOwn returns the unacknowledged final statuses of the drain's own pods, without
// those that an earlier drain sends.
func (r *record) unacknowledgedOwn() []finalStatus {
	return slices.DeleteFunc(r.unacknowledged(r.roster.All()), func(s finalStatus) bool { return !s.Ended && !r.sends(s.Pod) })
}

// unacknowledgedBefore returns the final statuses that earlier drains of this agent still have to
// send, for the state file of the newest drain. A status that a later drain sends too is left to
// that drain.
func (r *record) unacknowledgedBefore() []finalStatus {
	var left []finalStatus
	later := []*record{r}
	for _, before := range slices.Backward(r.recordsBefore) {
		for _, s := range before.unacknowledgedEnded() {
			if !slices.ContainsFunc(later, func(r *record) bool { return r.sends(s.Pod) }) {
				left = append(left, s)
			}
		}
		later = append(later, before)
	}
	return left
}

// sends reports whether this drain sends the final status of a pod: it has signalled the pod, and
// no earlier drain that was killing the pod as well has seen it end while this one has not.
func (r *record) sends(pod *v1.Pod) bool {
	key := kills.Key(pod)
	k := r.roster.Find(key)
	if k == nil || !k.Signalled() {
		return false
	}
	return k.HasEnded() || !slices.ContainsFunc(r.recordsBefore, func(before *record) bool {
		b := before.roster.Find(key)
		return b != nil && b.HasEnded() && !b.State().Ended.Before(k.State().Started)
	})
}

// unacknowledgedEnded returns the unacknowledged final statuses of pods that have ended. The
// others may never get one: after a cancellation they may keep running.
func (r *record) unacknowledgedEnded() []finalStatus {
	return slices.DeleteFunc(r.unacknowledged(r.roster.All()), func(s finalStatus) bool { return !s.Ended })
}

// dropAcknowledged removes the drains that are over and whose final statuses are all
// acknowledged.
func (l *loop) dropAcknowledged() {
	l.unacknowledged = slices.DeleteFunc(l.unacknowledged, func(d *drain) bool {
		select {
		case <-d.done.Done():
			return len(d.record.unacknowledgedEnded()) == 0
		default:
			return false
		}
	})
}
