package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// called returns the earliest moment at which the termination may have begun: when Terminate was called. If a Start call
// began it, the beginning is not recorded. The first moment that is known is later: when its deadline was first read, after
// Start had returned.
func (t *Termination) called() Moment {
	if t.BegunByStart {
		return t.Readings[0].Returned
	}
	return t.Requests[0].Called
}

// returned returns a moment at which the termination had certainly begun: when the first Terminate call returned or, if a
// Start call began it, when its deadline was first read. What another call causes between called and returned may have come
// before the termination.
func (t *Termination) returned() Moment {
	if t.BegunByStart {
		return t.called()
	}
	return t.Requests[0].Returned
}

// mayBeInProgress reports whether the termination may have begun before a moment, and had not ended then.
func (t *Termination) mayBeInProgress(now Moment) bool {
	return t.called().Before(now) && !t.Done.Before(now)
}

// usesListsSince returns when the termination certainly stopped what the runtime lists, because a Terminate call that names
// no containers had returned; zero: it stops only what its callers name. If a Start call began it, it uses lists from the
// beginning.
func (t *Termination) usesListsSince() Moment {
	if t.BegunByStart {
		return t.called()
	}
	for _, request := range t.Requests {
		if request.ListsContainers {
			return request.Returned
		}
	}
	return Moment{}
}

// usesLists reports whether the termination stops what the runtime lists, at least for one request.
func (t *Termination) usesLists() bool { return !t.usesListsSince().IsZero() }

// names reports whether a Terminate call named a container with this ID.
func (t *Termination) names(id string) bool {
	return slices.ContainsFunc(t.Requests, func(request *Request) bool { return len(withID(request.Containers, id)) > 0 })
}

// lastDeadline returns the earliest deadline that was read. It is the last deadline, because a deadline only moves
// earlier.
func (t *Termination) lastDeadline() (last time.Time) {
	for _, r := range t.Readings {
		last = times.Earlier(last, r.Deadline)
	}
	return last
}

// deadlineInForce returns the deadline that was certainly in force just before a time: the earliest one that was read or
// requested before it; zero: there was none.
func (t *Termination) deadlineInForce(end time.Time) (deadline time.Time) {
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

// deadlineRequests returns the calls that may move the deadline.
func (t *Termination) deadlineRequests() []*Request { return slices.Concat(t.Requests, t.Shortens) }

// possibleDeadline returns the earliest deadline that may have been in force at a moment: the earliest one that was read or
// requested before, even if the request had not returned; zero: there was none.
func (t *Termination) possibleDeadline(now Moment) (deadline time.Time) {
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

// resultOf returns what the termination has reported for a run; nil: nothing.
func (t *Termination) resultOf(c lifecycle.Container) *lifecycle.ContainerResult {
	for i := range t.Result.Containers {
		if r := &t.Result.Containers[i]; r.ID == c.ID && (r.Began.IsZero() || r.Began.Equal(c.Began)) {
			return r
		}
	}
	return nil
}

// hasEnded reports whether an outcome means that the container has ended.
func hasEnded(o lifecycle.Outcome) bool {
	return o != "" && o != lifecycle.OutcomeRuntimeStuck && o != lifecycle.OutcomeLeftRunning
}

// notEnded returns the containers that have not ended according to a result.
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

// mayMean reports whether a KillContainer call may mean a run: the IDs are equal, and the start times do not differ as far as
// they are known.
func (r *Request) mayMean(c lifecycle.Container) bool {
	target := r.target()
	return target.ID == c.ID && (target.Began.IsZero() || c.Began.IsZero() || target.Began.Equal(c.Began))
}
