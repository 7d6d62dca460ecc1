package lifecycle

import "slices"

// maxAttempts is how many attempts of one container are kept.
const maxAttempts = 8

// live has the attempts of a pod, in the order in which they became known, and what else is
// needed while there are any. Those of one name are the slot of a container. The methods but add
// may be called for a nil live, which has none.
type live struct {
	attempts  []*attempt
	first     [1]*attempt     // where attempts begins
	firstTerm [1]*Termination // where active begins
	active    []*Termination  // those under way, those of former lives too
	turns     turns
	stopping  *unit // whose StopPod is under way; nil: none
	inherited bool  // from a former life, and nothing else is known
	failing   int   // number of containers whose StopContainer fails
}

// all returns all attempts.
func (v *live) all() []*attempt {
	if v == nil {
		return nil
	}
	return v.attempts
}

// has reports whether an attempt satisfies a condition.
func (v *live) has(condition func(*attempt) bool) bool {
	return slices.ContainsFunc(v.all(), condition)
}

// add adds an attempt. If its slot has too many, it removes the oldest one that has ended, else
// the oldest one that a later start has followed.
func (v *live) add(a *attempt) {
	v.attempts = append(v.attempts, a)
	var slot []*attempt
	for _, other := range v.attempts {
		if other.result.Name == a.result.Name {
			slot = append(slot, other)
		}
	}
	isGone := func(a *attempt) bool { return a.isOver() && !a.isBusy() }
	isFollowed := func(a *attempt) bool { return a.flags.followed && !a.isUnknown() && !a.isBusy() }
	for _, isOld := range []func(*attempt) bool{isGone, isFollowed} {
		if i := slices.IndexFunc(slot, isOld); i >= 0 && len(slot) > maxAttempts {
			old := slot[i]
			slot = slices.Delete(slot, i, i+1)
			v.attempts = slices.DeleteFunc(v.attempts, func(a *attempt) bool { return a == old })
		}
	}
}

// find returns the last attempt with an ID other than except, nil if there is none.
func (v *live) find(id string, except *attempt) *attempt {
	for _, a := range slices.Backward(v.all()) {
		if a.result.ID == id && a != except && !a.flags.left {
			return a
		}
	}
	return nil
}

// proveEnds removes the unknown attempts that satisfy a condition, which proves that they
// have ended.
func (v *live) proveEnds(proves func(*attempt) bool) {
	if v == nil {
		return
	}
	v.attempts = slices.DeleteFunc(v.attempts, func(a *attempt) bool {
		isProven := a.isUnknown() && a.run == nil && proves(a)
		if isProven {
			a.proveEnd()
		}
		return isProven && !a.isBusy()
	})
}

// follow says that a later Start has succeeded: those of its name that were there before its
// call have been replaced, for all that is known, unless they were being started at the same time.
func (v *live) follow(a *attempt, restarted bool) {
	for _, older := range v.attempts {
		if older.result.Name == a.result.Name && older != a && !older.isStarting() &&
			!older.knownAt.After(a.knownAt) && !older.start.returnedAt.After(a.knownAt) {
			older.flags.followed, older.flags.restarted = true, restarted
		}
	}
}

// clear removes the attempts of which nothing is to be known any more. While a start is under
// way none goes, because the start may return its ID.
func (v *live) clear() {
	isToGo := func(a *attempt) bool { return a.flags.obsolete && !a.isBusy() }
	if v.has(isToGo) && !v.has((*attempt).isStarting) {
		v.attempts = slices.DeleteFunc(v.attempts, isToGo)
	}
}
