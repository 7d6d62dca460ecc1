package lifecycle

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"math"
	"slices"
)

var errNotListed = errors.New("the runtime has not listed the pod's containers")

// Result returns a copy of the result so far. It is final once [Termination.Done] is closed.
func (t *Termination) Result() Result {
	t = t.orNone()
	t.pod.mu.Lock()
	defer t.pod.mu.Unlock()
	return t.result()
}

// result is Result for callers that hold the mutex.
func (t *Termination) result() Result {
	results := t.results
	if results == nil {
		results = t.stopResults()
	}
	return Result{GracePeriodSeconds: t.deadline.granted, Containers: slices.Clone(results)}
}

// stopResults returns the results so far of all stops.
func (t *Termination) stopResults() []ContainerResult {
	results := make([]ContainerResult, len(t.stops))
	for i, s := range t.stops {
		results[i] = s.result
	}
	return t.sorted(results)
}

// finalResults returns the results of the stopped containers, and of containers without a listed run:
// those whose start has not returned, and those of the spec if no list is available or it has no
// container.
func (t *Termination) finalResults(failure error) []ContainerResult {
	results := t.stopResults()
	add := func(name string, outcome Outcome, err error) { // unless results has a sufficient result of the container
		if !slices.ContainsFunc(results, func(c ContainerResult) bool { return c.Name == name && (!t.needsList() || !c.Outcome.hasEnded()) }) {
			results = append(results, t.resultWithoutRun(name, outcome, err))
		}
	}
	outcome, cause := OutcomeRuntimeStuck, errNotListed
	if failure != nil {
		cause = fmt.Errorf("%w: %w", errNotListed, failure)
	}
	if t.ctx.Err() != nil {
		outcome, cause = OutcomeLeftRunning, ErrClosed
	}
	if !t.isForgotten() {
		for c := range t.pod.starts {
			results = append(results, t.resultWithoutRun(c.name, outcome, &stopError{name: c.name, err: errors.Join(errStartNotReturned, context.Cause(t.ctx))}))
		}
	}
	if t.foundNothing() {
		outcome, cause = OutcomeNotFound, nil
	}
	if t.foundNothing() || t.needsList() {
		for spec := range containersOf(t.apiPod) {
			add(spec.Name, outcome, cause)
		}
		if len(results) == 0 && cause != nil {
			add("", outcome, cause) // keep the error even if the spec has no containers
		}
	}
	return t.sorted(results)
}

// resultWithoutRun returns the result of a container without a listed run.
func (t *Termination) resultWithoutRun(name string, outcome Outcome, err error) ContainerResult {
	return ContainerResult{Name: name, Phase: PhaseEnded, Outcome: outcome, GrantedSeconds: t.deadline.granted, Err: err}
}

// resultsSinceEnded returns the results of an earlier termination for a later one that found nothing: a
// container that the earlier one could not stop has since ended by itself.
func (t *Termination) resultsSinceEnded() []ContainerResult {
	results := slices.Clone(t.results)
	for i := range results {
		if c := &results[i]; !c.Outcome.hasEnded() {
			c.Outcome, c.Err = OutcomeNotFound, nil
		}
	}
	return results
}

// sorted sorts results in the order of the pod's spec.
func (t *Termination) sorted(results []ContainerResult) []ContainerResult {
	if len(results) < 2 {
		return results
	}
	place := map[string]int{}
	for spec := range containersOf(t.apiPod) {
		place[spec.Name] = len(place) - math.MaxInt32 // containers that the spec lacks come last
	}
	slices.SortStableFunc(results, func(a, b ContainerResult) int {
		return cmp.Or(cmp.Compare(place[a.Name], place[b.Name]), cmp.Compare(a.Name, b.Name), a.Began.Compare(b.Began))
	})
	return results
}
