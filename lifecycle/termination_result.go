package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

var (
	errNotListed     = errors.New("the runtime has not listed the pod's containers")
	errForgotten     = errors.New("Forget was called before the runtime had listed the pod's containers")
	errListedTooLate = errors.New("the runtime listed it after the termination had given up; are its ID and Began the same in each list?")
)

// Result returns a copy of the result so far. It is final once [Termination.Done] is closed.
func (t *Termination) Result() Result {
	t = t.orEndedIfUnset()
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	return t.result()
}

// result returns a copy of the result so far. The caller holds the mutex.
func (t *Termination) result() Result {
	results := t.results
	if t.inProgress() {
		results = t.stopResults()
	}
	return Result{InProgress: t.inProgress(), GracePeriodSeconds: t.deadline.granted, Containers: slices.Clone(results)}
}

// stopResults returns the result so far of each container that is or was being stopped.
func (t *Termination) stopResults() []ContainerResult {
	results := make([]ContainerResult, len(t.stops))
	for i, s := range t.stops {
		results[i] = s.result
	}
	return t.sorted(results)
}

// finalResults returns the results of a termination that ends now. A container that was stopped has the result of its stop.
// A container that no list ever had gets one of these outcomes:
//
//   - OutcomeRuntimeStuck if its start has not returned, or if no list has arrived after the start returned.
//   - OutcomeRuntimeStuck if no list has arrived that is new enough, because the container may be running.
//   - OutcomeNotFound if the lists had no container at all.
//
// If the terminator was closed, OutcomeLeftRunning takes the place of OutcomeRuntimeStuck. failure is the last list's error.
func (t *Termination) finalResults(failure error) []ContainerResult {
	results := t.stopResults()
	outcome, cause := t.unlistedOutcome(failure)
	if t.awaitsStart() {
		results = append(results, t.startResults(outcome, cause)...)
	}
	switch {
	case t.foundNothing():
		results = t.addUnknown(results, OutcomeNotFound, nil)
	case t.needsList():
		results = t.addUnknown(results, outcome, cause)
	}
	return t.sorted(results)
}

// startResults returns a result with this outcome for each container that a start may have started. Its error is listErr if the
// start has returned: no list has arrived since.
func (t *Termination) startResults(outcome Outcome, listErr error) (results []ContainerResult) {
	for start := range t.pod.starts {
		reason := listErr
		if !start.returned {
			reason = errors.Join(errStartNotReturned, context.Cause(t.ctx))
		}
		results = append(results, t.resultWithoutRun(start.name, outcome, &stopError{name: start.name, err: reason}))
	}
	return results
}

// addUnknown adds the results of those containers of the spec that have none. A container that has ended gets another one:
// without a new list it may run again.
func (t *Termination) addUnknown(results []ContainerResult, outcome Outcome, cause error) []ContainerResult {
	for spec := range containersOf(t.apiPod) {
		isKnown := func(c ContainerResult) bool { return c.Name == spec.Name && !c.Outcome.hasEnded() }
		if !slices.ContainsFunc(results, isKnown) {
			results = append(results, t.resultWithoutRun(spec.Name, outcome, cause))
		}
	}
	if len(results) == 0 && cause != nil { // the spec has no containers, but the error must be in the result
		const noName = ""
		results = append(results, t.resultWithoutRun(noName, outcome, cause))
	}
	return results
}

// unlistedOutcome returns the outcome and the error of a container of which no list says whether it runs, when the termination
// ends. failure is the last list's error.
func (t *Termination) unlistedOutcome(failure error) (Outcome, error) {
	switch {
	case t.ctx.Err() != nil:
		return OutcomeLeftRunning, ErrClosed
	case t.isForgotten():
		return OutcomeRuntimeStuck, errForgotten
	case failure != nil:
		return OutcomeRuntimeStuck, fmt.Errorf("%w: %w", errNotListed, failure)
	default:
		return OutcomeRuntimeStuck, errNotListed
	}
}

// resultWithoutRun returns the final result of a container that no list had, so that its ID is unknown.
func (t *Termination) resultWithoutRun(name string, outcome Outcome, err error) ContainerResult {
	return ContainerResult{Name: name, Phase: PhaseEnded, Outcome: outcome, GrantedSeconds: t.deadline.granted, Err: err}
}

// resultsOnceAllEnded returns the results of t, changed for a later termination of the same pod that has found no container
// running. A container that t could not stop has ended by itself since then, so its outcome becomes [OutcomeNotFound].
func (t *Termination) resultsOnceAllEnded() []ContainerResult {
	results := slices.Clone(t.results)
	for i := range results {
		if c := &results[i]; !c.Outcome.hasEnded() {
			c.Outcome, c.Err = OutcomeNotFound, nil
		}
	}
	return results
}

// sorted sorts results in place, in the order of the pod's spec, and returns them. Several runs of one
// container are in the order in which they began.
func (t *Termination) sorted(results []ContainerResult) []ContainerResult {
	if len(results) < 2 {
		return results
	}
	position := map[string]int{} // from 1; 0: the spec lacks the name
	for spec := range containersOf(t.apiPod) {
		position[spec.Name] = len(position) + 1
	}
	rank := func(name string) int { return cmp.Or(position[name], math.MaxInt) } // a name that the spec lacks comes last
	slices.SortStableFunc(results, func(a, b ContainerResult) int {
		return cmp.Or(cmp.Compare(rank(a.Name), rank(b.Name)), cmp.Compare(a.Name, b.Name), a.Began.Compare(b.Began))
	})
	return results
}
