package judge

import (
	"errors"
	"slices"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// noStartAfterTermination: nothing is started after a termination has begun. The exception are sidecars, which may
// restart while the termination is in progress (KEP-4438).
func (p *podHistory) noStartAfterTermination() {
	for _, s := range p.starts {
		isUnderWay := slices.ContainsFunc(p.terminations, func(t *Termination) bool {
			return t.startedAt().Before(s.Begun) && !t.Done.Before(s.Called) && s.Begun.At.Before(t.deadlineBefore(s.Begun.At.Add(1)))
		})
		for _, t := range p.terminations {
			if t.IsForLateStart || s.Begun.IsZero() || !t.Requests[0].Returned.Before(s.Called) || p.forgottenAt(t.startedAt()).Before(s.Begun) {
				continue
			}
			if specOf(t.Pod, s.Name).kind != sidecar || !isUnderWay {
				p.violation("noStartAfterTermination", s.Begun.At, "%s is started, the pod was terminated at %v", s.Name, p.since(t.startedAt().At))
			}
		}
	}
}

// lateStartsAreStopped: if a start ends after the pod was terminated, what it has left running is stopped before Start
// returns. A termination that is still in progress may do that instead.
func (p *podHistory) lateStartsAreStopped() {
	for _, s := range p.starts {
		isCovered := slices.ContainsFunc(p.terminations, func(t *Termination) bool {
			return !t.IsForLateStart && t.startedAt().Before(s.Returned) && !t.Done.Before(s.Ended)
		})
		isCovered = isCovered || slices.ContainsFunc(p.starts, func(other *Start) bool { // stopped by the termination for another late start
			return other != s && other.Ended.Before(s.Ended) && !other.Returned.Before(s.Ended)
		})
		if isCovered || errors.Is(s.Err, errDidNotReturn) || s.Ended.IsZero() || s.Returned.IsZero() || p.closedAt().Before(s.Returned) {
			continue
		}
		for _, t := range p.terminations {
			// Only starts in progress when the termination began.
			if t.IsForLateStart || !t.usesList() || !s.Begun.Before(t.startedAt()) || s.Ended.Before(t.startedAt()) || !p.forgottenAt(t.startedAt()).IsZero() {
				continue
			}
			isListRequested := slices.ContainsFunc(p.lists, func(l *List) bool { return s.Ended.Before(l.Called) && l.Returned.Before(s.Returned) })
			if isStuck := s.Result != nil && slices.ContainsFunc(s.Result.Containers, func(c lifecycle.ContainerResult) bool { return !hasEnded(c.Outcome) }); !isListRequested && !isStuck {
				p.violation("lateStartsAreStopped", s.Returned.At, "Start(%s) returned, but no list was requested", s.Name)
			}
			for _, l := range p.lists {
				if !s.Ended.Before(l.Called) || !l.Returned.Before(s.Returned) {
					continue
				}
				for _, c := range l.Running {
					if len(p.stopsOf(c)) == 0 {
						p.violation("lateStartsAreStopped", s.Returned.At, "Start(%s) returned, but %q was not stopped", s.Name, c.ID)
					}
				}
			}
		}
	}
}
