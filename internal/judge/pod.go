package judge

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Times that the rules allow in addition to the requested ones.
const (
	// minimumTimeout is the timeout (2 s) that a container gets even if a hook has used up all the time until the deadline.
	minimumTimeout = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second
	// maxPause is the longest pause before a failed call is repeated.
	maxPause = time.Second
	// abandonAfter is how long a cancelled hook may take to return.
	abandonAfter = time.Second
	// cancelSlack is how long a cancelled call may take to end, because of slow event recorders and of hooks that
	// ignore their context.
	cancelSlack = 2 * time.Second
)

// podRule is one guarantee of package lifecycle. check adds a violation to the history of a pod for each time that the history
// breaks the guarantee.
type podRule struct {
	name  string
	check func(*podHistory)
}

// podRules returns the guarantees of package lifecycle: each in words, and the method that checks it.
func podRules() []podRule {
	return []podRule{
		{"a deadline only moves earlier", (*podHistory).deadlineOnlyMovesEarlier},
		{"the deadline is the earliest that was requested", (*podHistory).deadlineIsEarliestRequested},
		{"no container is killed before its deadline", (*podHistory).noKillBeforeDeadline},
		{"no stop outlasts the deadline and the minimum", (*podHistory).noStopOutlastsDeadlineAndMinimum},
		{"every run is stopped by its deadline", (*podHistory).everyRunIsStoppedByItsDeadline},
		{"failed stops are repeated", (*podHistory).failedStopsAreRepeated},
		{"nothing hangs", (*podHistory).nothingHangs},
		{"nothing is given up early", (*podHistory).nothingIsGivenUpEarly},
		{"a hook runs once in each run", (*podHistory).hookRunsOncePerRun},
		{"the hook of a previous agent is not repeated", (*podHistory).hookOfPreviousAgentIsNotRepeated},
		{"hooks end by the deadline, and at Close", (*podHistory).hooksEndByTheDeadlineAndAtClose},
		{"hooks are reported as they ended", (*podHistory).hooksAreReportedAsTheyEnded},
		{"sidecars stop last", (*podHistory).sidecarsStopLast},
		{"no running container is reported as ended", (*podHistory).noRunningContainerIsReportedEnded},
		{"no running pod is reported as ended", (*podHistory).noRunningPodIsReportedEnded},
		{"a killed container is not Graceful", (*podHistory).killedIsNotGraceful},
		{"every listed run has a result", (*podHistory).everyListedRunHasAResult},
		{"failures are in the result", (*podHistory).failuresAreReported},
		{"failed stops are logged", (*podHistory).failedStopsAreLogged},
		{"failed lists are logged", (*podHistory).failedListsAreLogged},
		{"nothing starts after a termination", (*podHistory).noStartAfterTermination},
		{"late starts are stopped", (*podHistory).lateStartsAreStopped},
	}
}

// Terminations returns the violations of package lifecycle's guarantees, one sentence each. Call it
// when every call should have returned: a call that has not returned by then counts as hanging.
func Terminations(r *Record) (violations []string) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, p := range r.podHistories() {
		for _, rule := range podRules() {
			p.rule = rule.name
			rule.check(p)
		}
		violations = append(violations, p.violations...)
	}
	return violations
}

// podHistory is what happened to one pod.
type podHistory struct {
	*Record

	rule               string // the name of the rule that is being checked
	violations         []string
	key                string
	lists              []*List // the successful ones, in the order in which they returned
	stopCalls          []*StopCall
	hooks              []*Hook
	starts             []*Start
	terminations       []*Termination
	killContainerCalls []*Request
	forgetCalls        []*Request
	runs               []*Run
	knownRuns          []lifecycle.Container // the runs of containers that the terminator was told of: by lists, Terminate or KillContainer
	runsToStop         []*runToStop          // by each termination of the pod
}

// podHistories returns the history of each pod, sorted by the pods' keys.
func (r *Record) podHistories() []*podHistory {
	pods := r.groupByPod()
	for _, p := range pods {
		slices.SortFunc(p.lists, func(a, b *List) int { return cmp.Compare(a.Returned.Order, b.Returned.Order) })
		p.addRunsOfKillContainer()
		p.addStopCalls()
		p.setForgottenAt()
		p.addRunsToStop()
	}
	return slices.SortedFunc(maps.Values(pods), func(a, b *podHistory) int { return cmp.Compare(a.key, b.key) })
}

// groupByPod returns a history for each pod that the record names, by the pod's key. The history has what the record says of the
// pod, except the lists that have failed or not returned, which tell nothing. StopContainer calls are not in it, because they
// name only a container.
func (r *Record) groupByPod() map[string]*podHistory {
	pods := map[string]*podHistory{}
	historyOf := func(key string) *podHistory {
		if pods[key] == nil {
			pods[key] = &podHistory{Record: r, key: key}
		}
		return pods[key]
	}
	for _, l := range r.lists {
		hasSucceeded := !l.Returned.IsZero() && l.Err == nil
		if p := historyOf(l.Pod); hasSucceeded {
			p.lists = append(p.lists, l)
			p.addKnownRuns(l.Running)
		}
	}
	for _, t := range r.terminations {
		if t.Pod == nil {
			continue // only a Shorten call has recorded it, which says nothing about its beginning or its pod
		}
		p := historyOf(t.Key)
		p.terminations = append(p.terminations, t)
		for _, request := range t.Requests {
			p.addKnownRuns(request.Containers)
		}
	}
	for _, request := range r.killContainerCalls {
		p := historyOf(request.Key)
		p.killContainerCalls = append(p.killContainerCalls, request)
	}
	for _, request := range r.forgetCalls {
		p := historyOf(request.Key)
		p.forgetCalls = append(p.forgetCalls, request)
	}
	for _, h := range r.hooks {
		p := historyOf(h.Pod)
		p.hooks = append(p.hooks, h)
	}
	for _, s := range r.starts {
		p := historyOf(s.Pod)
		p.starts = append(p.starts, s)
	}
	for _, run := range r.runs {
		p := historyOf(run.Pod)
		p.runs = append(p.runs, run)
	}
	return pods
}

// addRunsOfKillContainer adds the runs of containers that only KillContainer calls name. Such a call may not say when the run
// began, so its run is added only if it cannot be one of the known runs.
func (p *podHistory) addRunsOfKillContainer() {
	for _, request := range p.killContainerCalls {
		if isKnown := slices.ContainsFunc(p.knownRuns, request.mayTarget); !isKnown {
			p.addKnownRuns(request.Containers)
		}
	}
}

// addKnownRuns adds the runs of containers that are not among the known runs yet.
func (p *podHistory) addKnownRuns(runs []lifecycle.Container) {
	for _, run := range runs {
		if !hasRun(p.knownRuns, run) {
			p.knownRuns = append(p.knownRuns, run)
		}
	}
}

// addStopCalls adds the calls that stop containers of the pod: the StopPod calls that name the pod, and the StopContainer calls
// that have the ID of one of its containers.
func (p *podHistory) addStopCalls() {
	for _, s := range p.Record.stopCalls {
		if s.Pod == p.key || len(withID(p.knownRuns, s.ID)) > 0 {
			p.stopCalls = append(p.stopCalls, s)
		}
	}
}

// addViolation records that the pod has violated the rule that is being checked, and when.
func (p *podHistory) addViolation(at time.Time, format string, args ...any) {
	p.violations = append(p.violations, fmt.Sprintf("%s: pod %s at %v: %s", p.rule, p.key, p.sinceStart(at), fmt.Sprintf(format, args...)))
}

// runToStop is a run of a container that a termination has to stop, because a request has named it or the runtime has listed it.
type runToStop struct {
	*Termination

	run        lifecycle.Container
	knownSince Moment      // when the termination learned of the run
	stopCalls  []*StopCall // the calls that stop the run, in order; another termination or KillContainer may have made them
}

// setForgottenAt sets, for each termination of the pod, when Forget was called during it.
func (p *podHistory) setForgottenAt() {
	for _, t := range p.terminations {
		t.forgottenAt = p.firstForgetAfter(t.requested())
	}
}

// addRunsToStop adds, for each termination of the pod, the runs of containers that it has to stop: those of which it has learned
// (knownSince). It uses the rest of the history, so it comes last.
func (p *podHistory) addRunsToStop() {
	for _, t := range p.terminations {
		for _, run := range p.knownRuns {
			if since := p.knownSince(t, run); !since.IsZero() {
				p.runsToStop = append(p.runsToStop, &runToStop{Termination: t, run: run, knownSince: since, stopCalls: p.stopCallsFor(run)})
			}
		}
	}
}

// knownSince returns when a termination learned of a run of a container: from the request that named the run, or from the first
// list with it, whichever came first; zero: never. Only a list that the termination has certainly used counts.
func (p *podHistory) knownSince(t *Termination, run lifecycle.Container) (first Moment) {
	for _, request := range t.Requests {
		if hasRun(request.Containers, run) && request.Called.Before(first) {
			first = request.Called
		}
	}
	for _, l := range p.lists {
		isOver := t.Done.HappenedBy(l.Returned.At) || t.forgottenAt.HappenedBy(l.Returned.At)
		isUsed := t.usesListsSince().Before(l.Called) && !isOver
		if isUsed && !l.lacks(run) && l.Returned.Before(first) {
			first = l.Returned
		}
	}
	return first
}

// stopDue returns by when the run must be stopped: by the deadline or, if the termination learned of the run later, at once.
func (r *runToStop) stopDue() time.Time { return times.Later(r.finalDeadline(), r.knownSince.At) }
