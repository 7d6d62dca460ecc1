package shutdown

import (
	"slices"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// leftUntold are the final statuses of pods that earlier drains of this agent have ended, and
// that the API server has not acknowledged, for the file, which is that of the newest drain.
// What a later drain has signalled too is told by that one.
func (r *record) leftUntold() []finalStatus {
	var left []finalStatus
	later := []*kills.Roster{r.roster}
	for _, d := range slices.Backward(r.untold) {
		for _, s := range d.record.untoldEnds() {
			again := func(roster *kills.Roster) bool {
				k := roster.Find(kills.Key(s.Pod))
				return k != nil && k.Signalled()
			}
			if !slices.ContainsFunc(later, again) {
				left = append(left, s)
			}
		}
		later = append(later, d.record.roster)
	}
	return left
}

// untoldEnds are the final statuses of its pods that have ended. Those of pods that have not
// may never come: of a cancelled shutdown they run on.
func (r *record) untoldEnds() []finalStatus {
	return slices.DeleteFunc(r.unacknowledged(r.roster.All()), func(s finalStatus) bool { return !s.Ended })
}

// dropTold drops drains that are over and all of whose final statuses are acknowledged.
func (l *loop) dropTold() {
	l.untold = slices.DeleteFunc(l.untold, func(d *drain) bool {
		select {
		case <-d.over.Done():
			return len(d.record.untoldEnds()) == 0
		default:
			return false
		}
	})
}
