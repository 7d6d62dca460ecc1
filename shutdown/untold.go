package shutdown

import (
	"slices"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/shutdown/internal/kills"
)

// ownUntold are the final statuses of the drain's own pods that the API server has not
// acknowledged, but not of those whose end an earlier drain tells.
func (r *record) ownUntold() []finalStatus {
	return slices.DeleteFunc(r.unacknowledged(r.roster.All()), func(s finalStatus) bool { return !s.Ended && !r.tells(s.Pod) })
}

// leftUntold are the final statuses of pods that earlier drains of this agent have ended, and
// that the API server has not acknowledged, for the file, which is that of the newest drain.
func (r *record) leftUntold() []finalStatus {
	var left []finalStatus
	later := []*record{r}
	for _, d := range slices.Backward(r.untold) {
		for _, s := range d.record.untoldEnds() {
			if !slices.ContainsFunc(later, func(r *record) bool { return r.tells(s.Pod) }) {
				left = append(left, s)
			}
		}
		later = append(later, d.record)
	}
	return left
}

// tells tells whether the drain has the final status of a pod: it has signalled it, and no
// earlier drain, which was killing it too, has seen it end while this one has not.
func (r *record) tells(pod *v1.Pod) bool {
	key := kills.Key(pod)
	k := r.roster.Find(key)
	if k == nil || !k.Signalled() {
		return false
	}
	return k.HasEnded() || !slices.ContainsFunc(r.untold, func(d *drain) bool {
		before := d.record.roster.Find(key)
		return before != nil && before.HasEnded() && !before.State().Ended.Before(k.State().Started)
	})
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
