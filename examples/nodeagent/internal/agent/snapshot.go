package agent

import (
	"time"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/view"
	"github.com/kubegrace/kubegrace/graceperiod"
)

// snapshot returns the current state of all pods for the view.
func (l *loop) snapshot(now time.Time) view.Snapshot {
	s := view.Snapshot{Now: now, Began: l.began, Allowed: l.allowedTime()}
	for _, p := range l.pods.list() {
		termination, _ := l.terminator.Pod(p.spec).Termination()
		s.Pods = append(s.Pods, p.view(now, termination))
	}
	return s
}

// allowedTime returns how long a shutdown may take: the time of all buckets and of the
// reports to the API server, or less if the host grants less. Without a schedule it is the
// longest grace period of a pod.
func (l *loop) allowedTime() time.Duration {
	if fitted := l.manager.Plan().Fitted; len(fitted.Schedule) > 0 {
		return fitted.Total() - fitted.Floor - fitted.Margin
	}
	longest := graceperiod.DefaultSeconds
	for _, p := range l.pods.list() {
		longest = max(longest, p.graceSeconds())
	}
	return graceperiod.Duration(longest)
}
