package lifecycle

import (
	"slices"

	v1 "k8s.io/api/core/v1"
)

// maxAttempts is how many attempts of one container are kept.
const maxAttempts = 8

// slot has the attempts of one container of a pod, the oldest first.
type slot struct {
	name     string
	attempts []*attempt
	first    [1]*attempt // where attempts begins
}

// add adds an attempt. If there are too many, it removes the oldest one that has ended, else
// the oldest one that a later start has followed.
func (s *slot) add(a *attempt) {
	s.attempts = append(s.attempts, a)
	isGone := func(a *attempt) bool { return a.isOver() && !a.isBusy() }
	isFollowed := func(a *attempt) bool {
		return a.flags.followed && !a.isUnknown() && !a.isBusy() && len(a.awaitedBy) == 0
	}
	for _, isOld := range []func(*attempt) bool{isGone, isFollowed} {
		if i := slices.IndexFunc(s.attempts, isOld); i >= 0 && len(s.attempts) > maxAttempts {
			s.attempts = slices.Delete(s.attempts, i, i+1)
		}
	}
}

// sweep removes the attempts of which nothing is to be known any more. While a start is under
// way none goes, because the start may return its ID.
func (s *slot) sweep() {
	if !slices.ContainsFunc(s.attempts, (*attempt).isStarting) {
		s.attempts = slices.DeleteFunc(s.attempts, func(a *attempt) bool { return a.flags.obsolete && !a.isBusy() })
	}
}

// find returns the last attempt with an ID other than except, nil if there is none.
func (s *slot) find(id string, except *attempt) *attempt {
	for _, a := range slices.Backward(s.attempts) {
		if a.result.ID == id && a != except && !a.flags.left {
			return a
		}
	}
	return nil
}

// follow says that a later Start has succeeded: those that were there before its call have
// been replaced, for all that is known, unless they were being started at the same time.
func (s *slot) follow(a *attempt) {
	for _, older := range s.attempts {
		if older != a && !older.isStarting() && !older.knownAt.After(a.knownAt) && !older.start.returnedAt.After(a.knownAt) {
			older.flags.followed, older.flags.restarted = true, a.run != nil && a.run.manner.restart
		}
	}
}

// settle removes the attempts of which a status proves that they have ended although their
// ID was never told: it shows a state that began after their start. Of an attempt that only
// the lack of an ID or a state had made unknown, it is proof that the container is not running.
func (s *slot) settle(pod *v1.Pod) {
	s.removeUnknown(func(a *attempt) bool {
		if a.start.returnedAt.IsZero() {
			return isDown(pod, s.name)
		}
		return startedOrEndedAfter(pod, s.name, a.knownAt)
	})
}

// mergeUnknown removes the unknown attempts other than the last one: what proves that this one
// has ended proves it for all.
func (s *slot) mergeUnknown(last *attempt) {
	for _, a := range slices.Clone(s.attempts) {
		if a != last && a.isUnknown() && a.run == nil {
			a.leave()
		}
	}
}

// removeUnknown removes unknown attempts that satisfy a condition.
func (s *slot) removeUnknown(condition func(*attempt) bool) {
	s.attempts = slices.DeleteFunc(s.attempts, func(a *attempt) bool {
		isProven := a.isUnknown() && a.run == nil && condition(a)
		if isProven {
			if a.start.returnedAt.IsZero() {
				a.state.current.leftBy(a)
			}
			a.result.Outcome, a.result.Err, a.start.err, a.flags.obsolete = NotFound, nil, nil, true
		}
		return isProven && !a.isBusy()
	})
}
