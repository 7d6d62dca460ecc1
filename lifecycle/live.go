package lifecycle

import "slices"

// maxAttempts is how many attempts of one container are kept.
const maxAttempts = 8

// live has the attempts of a pod, in the order in which they became known, and what else is
// needed while there are any. Those of one name are the slot of a container. The methods but add
// may be called for a nil live, which has none.
type live struct {
	turns

	attempts  []*attempt
	first     [1]*attempt     // where attempts begins
	firstTerm [1]*Termination // where active begins
	active    []*Termination  // those under way, those of former lives too
	stopping  *unit           // whose StopPod is under way; nil: none
	inherited bool            // from a former life, and nothing else is known
	failing   int             // number of containers whose StopContainer fails
}

// newLive makes one without attempts.
func newLive() *live {
	v := &live{}
	v.attempts, v.active = v.first[:0], v.firstTerm[:0]
	return v
}

// isEmpty reports whether there is neither an attempt nor a termination under way.
func (v *live) isEmpty() bool { return len(v.attempts) == 0 && len(v.active) == 0 }

// inherit says that what is under way is from a former life.
func (v *live) inherit() { v.inherited = true }

// isInherited reports whether it is.
func (v *live) isInherited() bool { return v.inherited }

// begin says that a life is under way. What is from a former life belongs to it.
func (v *live) begin() {
	if v.inherited {
		v.inherited = false
		for _, a := range v.attempts {
			a.flags.obsolete = a.flags.left
		}
	}
}

// addTermination adds a termination that is under way.
func (v *live) addTermination(t *Termination) {
	if !slices.Contains(v.active, t) {
		v.active = append(v.active, t)
	}
}

// removeTermination removes a termination that has ended.
func (v *live) removeTermination(t *Termination) {
	v.active = slices.DeleteFunc(v.active, func(other *Termination) bool { return other == t })
}

// endIfDone ends the terminations whose attempts have all ended, and returns functions to call
// without the mutex, which log that.
func (v *live) endIfDone() (logs []func()) {
	for _, t := range slices.Backward(v.active) { // one that ends is removed, which moves only those after it
		if log := t.endIfDone(); log != nil {
			logs = append(logs, log)
		}
	}
	return logs
}

// addFailing says that StopContainer fails for so many more containers, and returns for how many.
func (v *live) addFailing(n int) int {
	v.failing += n
	return v.failing
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

// keep adds again an attempt that is to be stopped, if one that was named after it has taken its
// place.
func (v *live) keep(a *attempt) {
	if !slices.Contains(v.attempts, a) {
		v.attempts = append(v.attempts, a)
	}
}

// find returns the last attempt with an ID other than except, nil if there is none. One that has
// not ended goes before those that have.
func (v *live) find(id string, except *attempt) (found *attempt) {
	for _, a := range v.all() {
		if a.result.ID == id && a != except && !a.flags.left && (found == nil || found.isOver() || !a.isOver()) {
			found = a
		}
	}
	return found
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
			a.flags.left, a.flags.obsolete = !a.isOfStart(), true
			a.result.Outcome, a.result.Err, a.start.err = NotFound, nil, nil
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

// ending returns an attempt, or that with an ID that its start has given, if its run calls
// no StopContainer any more and has not ended; else nil.
func (v *live) ending(a *attempt, id string) *attempt {
	same := a
	if id != "" {
		same = v.find(id, a)
	}
	for _, c := range []*attempt{a, same} {
		if c != nil && c.run != nil && c.result.Outcome != "" {
			return c
		}
	}
	return nil
}

// isStartedAgain reports whether a later Start of the name of an attempt is under way, and the
// attempt itself was never stopped, so that its ID may be that of the start.
func (v *live) isStartedAgain(a *attempt) bool {
	return !a.isBusy() && !a.hasEnded() && v.has(func(other *attempt) bool {
		return other.isStarting() && other.result.Name == a.result.Name && other.knownAt.After(a.knownAt)
	})
}

// end says that an attempt that is not being stopped has ended, so that nothing is to be known
// of it any more once nothing is at work for it.
func (v *live) end(a *attempt) {
	if !a.isOver() {
		a.result.Outcome, a.result.Err = NotFound, nil
	}
	a.flags.obsolete = true
	v.clear()
}

// drop removes an attempt that is another one, or has started nothing, from its slot and from
// the results.
func (v *live) drop(a *attempt) {
	a.flags.left = true
	a.wakeLocked()
	if a.run == nil {
		a.flags.obsolete = true
		v.clear()
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
