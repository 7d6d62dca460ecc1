package judge

import (
	"errors"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// This file says what the terminator knew, or may have known, about a pod when it decided something.

// possiblyNewestLists returns the lists of which each may have been the newest one that the terminator knew at a moment, the
// newest first: the last list that had returned before that time, and all that had returned at that very time.
func (p *podHistory) possiblyNewestLists(now Moment) (lists []*List) {
	for _, l := range slices.Backward(p.lists) {
		switch {
		case !l.Returned.Before(now): // it had not returned yet
		case l.Returned.At.Equal(now.At):
			lists = append(lists, l)
		default:
			return append(lists, l)
		}
	}
	return lists
}

// firstListedAt returns when a run of a container was first listed; zero: never.
func (p *podHistory) firstListedAt(run lifecycle.Container) Moment {
	for _, l := range p.lists {
		if !l.lacks(run) {
			return l.Returned
		}
	}
	return Moment{}
}

// firstKnownAt returns when a run of a container was first listed, or named by a caller of Terminate or KillContainer; zero:
// never. Each moment is before a zero one.
func (p *podHistory) firstKnownAt(run lifecycle.Container) Moment {
	first := p.firstListedAt(run)
	for _, t := range p.terminations {
		for _, request := range t.Requests {
			if request.Called.Before(first) && hasRun(request.Containers, run) {
				first = request.Called
			}
		}
	}
	for _, request := range p.killContainerCalls {
		if request.mayTarget(run) && request.Called.Before(first) {
			first = request.Called
		}
	}
	return first
}

// stopCallsFor returns the calls that stop a run of a container: the StopPod calls since the terminator knew the run, and the
// StopContainer calls with its ID, unless these are for another run with the same ID.
func (p *podHistory) stopCallsFor(run lifecycle.Container) (calls []*StopCall) {
	mayBeRun := func(target lifecycle.Container) bool { return target.Began.IsZero() || isSameRun(run, target) }
	for _, s := range p.stopCalls {
		stopsPod := s.isStopPod() && p.firstKnownAt(run).Before(s.Called)
		stopsRun := s.ID == run.ID && slices.ContainsFunc(p.possibleTargets(s), mayBeRun)
		if stopsPod || stopsRun {
			calls = append(calls, s)
		}
	}
	return calls
}

// possibleTargets returns the runs that a StopContainer call may be for. The call has only an ID, which a runtime may use for
// several runs. It is for the run that was listed last before the call or, if none was listed, for any run with the ID that
// the terminator was ever told of.
func (p *podHistory) possibleTargets(s *StopCall) (runs []lifecycle.Container) {
	for _, l := range p.possiblyNewestLists(s.Called) {
		runs = append(runs, withID(l.Running, s.ID)...)
	}
	if len(runs) > 0 {
		return runs
	}
	return withID(p.knownRuns, s.ID)
}

// callerRepeatsStops reports whether any request for the pod has OneAttempt. The terminator then does not repeat a failed stop
// call, because the caller does.
func (p *podHistory) callerRepeatsStops() bool {
	return slices.ContainsFunc(p.stopRequests(), func(request *Request) bool { return request.OneAttempt })
}

// stopRequests returns all calls of Terminate and KillContainer for the pod.
func (p *podHistory) stopRequests() []*Request {
	requests := slices.Clone(p.killContainerCalls)
	for _, t := range p.terminations {
		requests = append(requests, t.Requests...)
	}
	return requests
}

// cannotList reports whether the runtime cannot list containers at all.
func (p *podHistory) cannotList() bool {
	return slices.ContainsFunc(p.Record.lists, func(l *List) bool { return errors.Is(l.Err, errors.ErrUnsupported) })
}

// successProvesEnd reports whether a container has ended once a stop call for it has succeeded. Usually a list must confirm
// that, because the runtime may report success too early. But a runtime that cannot list confirms nothing, and a
// Terminate call that names its containers needs no list.
func (p *podHistory) successProvesEnd(containerID string) bool {
	isNamed := slices.ContainsFunc(p.terminations, func(t *Termination) bool { return t.names(containerID) })
	return isNamed || p.cannotList()
}

// endProvedByStop reports whether a stop call had succeeded before a moment, and this proves that the container has ended.
func (p *podHistory) endProvedByStop(containerID string, now Moment) bool {
	isSuccess := func(s *StopCall) bool {
		return s.stopsContainer(containerID) && s.succeeded() && s.Returned.Before(now)
	}
	return p.successProvesEnd(containerID) && slices.ContainsFunc(p.stopCalls, isSuccess)
}

// firstForgetAfter finds the first Forget call for the pod that returned after m. It returns when that call was made, which may
// be before m, or the zero Moment if there is no such call. Forget makes the terminator drop what it knows of the pod.
func (p *podHistory) firstForgetAfter(m Moment) Moment {
	for _, request := range p.forgetCalls {
		if m.Before(request.Returned) {
			return request.Called
		}
	}
	return Moment{}
}

// wasForgotten reports whether Forget was certainly called after a termination had begun, and before a time. A Forget call that
// overlaps the Terminate call may have come first, and does not count.
func (p *podHistory) wasForgotten(t *Termination, before time.Time) bool {
	return slices.ContainsFunc(p.forgetCalls, func(request *Request) bool {
		return t.certainlyBegun().Before(request.Called) && request.Called.At.Before(before)
	})
}

// closedAt returns when the terminator's Close was first called; zero: never.
func (p *podHistory) closedAt() Moment {
	if len(p.closeCalls) == 0 {
		return Moment{}
	}
	return p.closeCalls[0].Called
}

// usesStopPod reports whether the terminator stops all containers of a pod at once with StopPod, instead of each with
// StopContainer.
func (p *podHistory) usesStopPod() bool { return p.options.Pods != nil }
