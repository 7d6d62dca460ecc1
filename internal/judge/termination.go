package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// requested returns when the termination was requested: when its first Terminate call was made. If a Start call began the
// termination, the record lacks that moment. requested then returns the earliest moment that the record has: when the deadline
// was first read.
func (t *Termination) requested() Moment {
	if t.BegunByStart {
		return t.Readings[0].Returned
	}
	return t.Requests[0].Called
}

// certainlyBegun returns a moment at which the termination had certainly begun: when its first Terminate call had returned or, if
// a Start call began it, when the deadline was first read.
func (t *Termination) certainlyBegun() Moment {
	if t.BegunByStart {
		return t.requested()
	}
	return t.Requests[0].Returned
}

// mayBeInProgress reports whether the termination may be in progress at a moment. It may not have begun, because its first
// Terminate call may not have returned.
func (t *Termination) mayBeInProgress(now Moment) bool {
	return t.requested().Before(now) && !t.Done.Before(now)
}

// usesListsSince returns from when the termination certainly stops what the runtime lists: a Terminate call had returned that
// names no containers, or a Start call had begun the termination. Zero: it stops only the containers that its callers name.
func (t *Termination) usesListsSince() Moment {
	if t.BegunByStart {
		return t.requested()
	}
	for _, request := range t.Requests {
		if request.HasNoList {
			return request.Returned
		}
	}
	return Moment{}
}

// usesLists reports whether the termination stops what the runtime lists, at least since one of its requests.
func (t *Termination) usesLists() bool { return !t.usesListsSince().IsZero() }

// names reports whether a Terminate call named a container with this ID.
func (t *Termination) names(id string) bool {
	return slices.ContainsFunc(t.Requests, func(request *Request) bool { return len(withID(request.Containers, id)) > 0 })
}

// finalDeadline returns the last deadline. That is the earliest one that was read, because a deadline only moves earlier.
func (t *Termination) finalDeadline() (earliest time.Time) {
	for _, r := range t.Readings {
		earliest = times.Earlier(earliest, r.Deadline)
	}
	return earliest
}

// deadlineInForceBefore returns the deadline that was in force just before a time: the earliest one that was requested or read
// before that time; zero: there was none.
func (t *Termination) deadlineInForceBefore(end time.Time) (deadline time.Time) {
	for _, request := range t.deadlineRequests() {
		if request.Called.At.Before(end) {
			deadline = times.Earlier(deadline, request.Deadline)
		}
	}
	for _, r := range t.Readings {
		if r.Returned.At.Before(end) {
			deadline = times.Earlier(deadline, r.Deadline)
		}
	}
	return deadline
}

// deadlineRequests returns the Terminate and Shorten calls for the termination, each of which may move the deadline.
func (t *Termination) deadlineRequests() []*Request { return slices.Concat(t.Requests, t.Shortens) }

// earliestPossibleDeadline returns the earliest deadline that may have been in force at a moment. In contrast to
// deadlineInForceBefore, what was requested or read at the same time counts if it came before the moment; zero: there was none.
func (t *Termination) earliestPossibleDeadline(now Moment) (deadline time.Time) {
	for _, request := range t.deadlineRequests() {
		if request.Called.Before(now) {
			deadline = times.Earlier(deadline, request.Deadline)
		}
	}
	for _, r := range t.Readings {
		if r.Returned.Before(now) {
			deadline = times.Earlier(deadline, r.Deadline)
		}
	}
	return deadline
}

// resultOf returns what the termination has reported about a run of a container; nil: nothing. A result that does not say when
// the run began may be about any run with the ID.
func (t *Termination) resultOf(run lifecycle.Container) *lifecycle.ContainerResult {
	for i := range t.Result.Containers {
		r := &t.Result.Containers[i]
		mayBeRun := r.Began.IsZero() || r.Began.Equal(run.Began)
		if r.ID == run.ID && mayBeRun {
			return r
		}
	}
	return nil
}

// hasEnded reports whether an outcome means that the container has ended.
func hasEnded(o lifecycle.Outcome) bool {
	return o != "" && o != lifecycle.OutcomeRuntimeStuck && o != lifecycle.OutcomeLeftRunning
}

// notEnded returns the containers that a result does not report as ended.
func notEnded(r lifecycle.Result) (left []lifecycle.Container) {
	for _, c := range r.Containers {
		if !hasEnded(c.Outcome) {
			left = append(left, lifecycle.Container{Name: c.Name, ID: c.ID})
		}
	}
	return left
}

// target returns the container that a KillContainer call is to stop.
func (r *Request) target() lifecycle.Container { return r.Containers[0] }

// mayTarget reports whether a KillContainer call may be about a run of a container: the IDs are equal, and so are the times at
// which the runs began, if both are known.
func (r *Request) mayTarget(run lifecycle.Container) bool {
	target := r.target()
	isBeginningUnknown := target.Began.IsZero() || run.Began.IsZero()
	return target.ID == run.ID && (isBeginningUnknown || target.Began.Equal(run.Began))
}
