package shutdown

import (
	"slices"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// unacknowledgedBefore returns the final statuses that earlier drains of this agent still have to
// send, for the state file of the newest drain. A pod that a later drain has signalled too is
// left to that drain.
func (r *record) unacknowledgedBefore() []finalStatus {
	var left []finalStatus
	later := []*kills.Roster{r.roster}
	for _, before := range slices.Backward(r.recordsBefore) {
		for _, s := range before.unacknowledgedEnded() {
			again := func(roster *kills.Roster) bool {
				k := roster.Find(kills.Key(s.Pod))
				return k != nil && k.Signalled()
			}
			if !slices.ContainsFunc(later, again) {
				left = append(left, s)
			}
		}
		later = append(later, before.roster)
	}
	return left
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
