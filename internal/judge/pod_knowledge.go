package judge

import (
	"errors"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// This file says what the terminator knew, or may have known, about a pod when it decided something.

// newestLists returns the lists of which each may have been the newest one that the terminator knew at a moment: the last one
// that had returned before that time, and those that returned at that very time, the newest first.
func (p *podHistory) newestLists(now Moment) (lists []*List) {
	for _, l := range slices.Backward(p.lists) {
		switch {
		case !l.Returned.Before(now): // it is too new
		case l.Returned.At.Equal(now.At):
			lists = append(lists, l)
		default:
			return append(lists, l)
		}
	}
	return lists
}

// firstListed returns when a run was first listed; zero: never.
func (p *podHistory) firstListed(c lifecycle.Container) Moment {
	for _, l := range p.lists {
		if !l.lacks(c) {
			return l.Returned
		}
	}
	return Moment{}
}

// firstKnown returns when a run was first listed, or named by a caller of Terminate or KillContainer; zero: never.
func (p *podHistory) firstKnown(c lifecycle.Container) Moment {
	first := p.firstListed(c)
	for _, t := range p.terminations {
		for _, request := range t.Requests {
			if request.Called.Before(first) && hasRun(request.Containers, c) {
				first = request.Called
			}
		}
	}
	for _, request := range p.kills {
		if request.mayMean(c) && request.Called.Before(first) {
			first = request.Called
		}
	}
	return first
}

// stopsOf returns the calls that stop a run: StopPod calls once the run was known, and StopContainer calls with its ID. If
// several runs share the ID, a call stops the one that was listed last before it. A run that was named without Began
// may be any run with the ID.
func (p *podHistory) stopsOf(c lifecycle.Container) (stops []*Stop) {
	mayBeRun := func(other lifecycle.Container) bool { return other.Began.IsZero() || isSameRun(c, other) }
	for _, s := range p.stops {
		stopsPod := s.isStopPod() && p.firstKnown(c).Before(s.Called)
		stopsRun := s.ID == c.ID && slices.ContainsFunc(p.candidates(s), mayBeRun)
		if stopsPod || stopsRun {
			stops = append(stops, s)
		}
	}
	return stops
}

// candidates returns the runs that a StopContainer call may be for: it has only an ID, which a runtime may use again. These
// are the runs with the ID in the newest lists (a run in two of these is returned twice) or, if these have none, all known
// runs with the ID.
func (p *podHistory) candidates(s *Stop) (runs []lifecycle.Container) {
	for _, l := range p.newestLists(s.Called) {
		runs = append(runs, withID(l.Running, s.ID)...)
	}
	if len(runs) > 0 {
		return runs
	}
	return withID(p.known, s.ID)
}

// isOneAttempt reports whether any request for the pod has OneAttempt: its caller repeats failed stops, the terminator does
// not.
func (p *podHistory) isOneAttempt() bool {
	return slices.ContainsFunc(p.stopRequests(), func(request *Request) bool { return request.OneAttempt })
}

// stopRequests returns all calls of Terminate and KillContainer for the pod.
func (p *podHistory) stopRequests() []*Request {
	requests := slices.Clone(p.kills)
	for _, t := range p.terminations {
		requests = append(requests, t.Requests...)
	}
	return requests
}

// cannotList reports whether the runtime cannot list containers at all.
func (p *podHistory) cannotList() bool {
	return slices.ContainsFunc(p.Record.lists, func(l *List) bool { return errors.Is(l.Err, errors.ErrUnsupported) })
}

// successProvesEnd reports whether the success of a stop alone proves that the container with this ID has ended. Usually a list
// must confirm it, because a runtime may return too early. No list does if the runtime cannot list, or if a Terminate call has
// named the container: its caller knows what is running.
func (p *podHistory) successProvesEnd(containerID string) bool {
	return p.cannotList() || slices.ContainsFunc(p.terminations, func(t *Termination) bool { return t.names(containerID) })
}

// stopProvedEnd reports whether a stop had proved before a moment that a container has ended: its success is proof
// (successProvesEnd), and it had returned.
func (p *podHistory) stopProvedEnd(id string, now Moment) bool {
	hasStopped := func(s *Stop) bool { return s.stopsID(id) && s.succeeded() && s.Returned.Before(now) }
	return p.successProvesEnd(id) && slices.ContainsFunc(p.stops, hasStopped)
}

// forgottenAfter returns when Forget was called: the first call that returned after a moment; zero: there is none.
func (p *podHistory) forgottenAfter(m Moment) Moment {
	for _, request := range p.forgets {
		if m.Before(request.Returned) {
			return request.Called
		}
	}
	return Moment{}
}

// wasForgotten reports whether Forget was certainly called after a termination had begun, and before a time. A Forget call
// that overlaps the call that began the termination may have come before it, and does not count.
func (p *podHistory) wasForgotten(t *Termination, before time.Time) bool {
	return slices.ContainsFunc(p.forgets, func(request *Request) bool {
		return t.returned().Before(request.Called) && request.Called.At.Before(before)
	})
}

// closedAt returns when Close was first called; zero: never.
func (p *podHistory) closedAt() Moment {
	if len(p.closes) == 0 {
		return Moment{}
	}
	return p.closes[0].Called
}

// stopsAsUnit reports whether StopPod stops all containers of the pod at once. They then have one deadline, the earliest.
func (p *podHistory) stopsAsUnit() bool { return p.options.Pods != nil }
