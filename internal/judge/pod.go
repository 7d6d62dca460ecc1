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
	// minimum is the 2 s that each container gets after its deadline, if a hook has used up all the time.
	minimum = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second
	// maxPause is the longest pause before a failed call is repeated.
	maxPause = time.Second
	// abandonAfter is how long a cancelled hook may take to return.
	abandonAfter = time.Second
	// cancelSlack is how long a cancelled call may take to end, because of slow event recorders and of hooks that
	// ignore their context.
	cancelSlack = 2 * time.Second
)

// podRule is one guarantee of package lifecycle.
type podRule struct {
	name  string
	check func(*podHistory)
}

// podRules returns the rules. Each rule adds the violations that it finds in the history of a pod to that history.
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

// podHistory is what happened to one pod. A rule is a method that adds what it finds to violations.
type podHistory struct {
	*Record

	rule         string // the name of the rule that is checked
	violations   []string
	key          string
	lists        []*List // the successful ones, in the order in which they returned
	stops        []*Stop
	hooks        []*Hook
	starts       []*Start
	terminations []*Termination
	kills        []*Request
	forgets      []*Request
	runs         []*Run
	known        []lifecycle.Container // the runs that a list had, or that a caller of Terminate or KillContainer named
	duties       []*duty
}

// podHistories groups the record by pod, sorted by key.
func (r *Record) podHistories() []*podHistory {
	pods := map[string]*podHistory{}
	historyOf := func(key string) *podHistory {
		if pods[key] == nil {
			pods[key] = &podHistory{Record: r, key: key}
		}
		return pods[key]
	}
	// First all that names its pod.
	for _, l := range r.lists {
		if p := historyOf(l.Pod); !l.Returned.IsZero() && l.Err == nil {
			p.lists = append(p.lists, l)
			p.addKnown(l.Running)
		}
	}
	for _, t := range r.terminations {
		if t.Pod == nil {
			continue // only Shorten has recorded it: a Start call began it, and Forget was called before that call returned
		}
		p := historyOf(t.Key)
		p.terminations = append(p.terminations, t)
		for _, request := range t.Requests {
			p.addKnown(request.Containers)
		}
	}
	for _, request := range r.kills {
		p := historyOf(request.Key)
		p.kills = append(p.kills, request)
	}
	for _, request := range r.forgets {
		p := historyOf(request.Key)
		p.forgets = append(p.forgets, request)
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
	// Runs that only KillContainer names come last. They may lack Began, so each is added only if no known run matches.
	for _, request := range r.kills {
		if p := historyOf(request.Key); !slices.ContainsFunc(p.known, request.mayMean) {
			p.addKnown(request.Containers)
		}
	}
	for _, p := range pods {
		slices.SortFunc(p.lists, func(a, b *List) int { return cmp.Compare(a.Returned.Order, b.Returned.Order) })
		p.addStops()
		p.addDuties()
	}
	return slices.SortedFunc(maps.Values(pods), func(a, b *podHistory) int { return cmp.Compare(a.key, b.key) })
}

// addKnown adds the runs that are not known yet.
func (p *podHistory) addKnown(containers []lifecycle.Container) {
	for _, c := range containers {
		if !hasRun(p.known, c) {
			p.known = append(p.known, c)
		}
	}
}

// addStops adds the stops of the pod: the StopPod calls that name it, and the StopContainer calls with the ID of a known run.
func (p *podHistory) addStops() {
	for _, s := range p.Record.stops {
		if s.Pod == p.key || len(withID(p.known, s.ID)) > 0 {
			p.stops = append(p.stops, s)
		}
	}
}

// violation records that the rule that is checked was violated at a time.
func (p *podHistory) violation(at time.Time, format string, args ...any) {
	p.violations = append(p.violations, fmt.Sprintf("%s: pod %s at %v: %s", p.rule, p.key, p.sinceStart(at), fmt.Sprintf(format, args...)))
}

// duty is the duty of a termination to stop a run, because a request or a list has told it of the run.
type duty struct {
	*Termination

	run   lifecycle.Container
	since Moment  // when the termination learned of the run: dutyMoment
	stops []*Stop // the calls that stop the run, in order; another termination or KillContainer may have made them
}

// addDuties adds the duties of all terminations of the pod. Everything else must have been added before.
func (p *podHistory) addDuties() {
	for _, t := range p.terminations {
		t.forgotten = p.forgottenAfter(t.called())
		for _, c := range p.known {
			if since := p.dutyMoment(t, c); !since.IsZero() {
				p.duties = append(p.duties, &duty{Termination: t, run: c, since: since, stops: p.stopsOf(c)})
			}
		}
	}
}

// dutyMoment returns when a termination first had to stop a run; zero: never. That is when a request named the run, or when
// the first list with the run returned, whichever was earlier. A list counts only if the termination certainly used lists
// when it was requested, and if it returned before the termination ended or was forgotten.
func (p *podHistory) dutyMoment(t *Termination, c lifecycle.Container) (first Moment) {
	for _, request := range t.Requests {
		if hasRun(request.Containers, c) && request.Called.Before(first) {
			first = request.Called
		}
	}
	for _, l := range p.lists {
		isUsed := t.usesListsSince().Before(l.Called) && !t.Done.By(l.Returned.At) && !t.forgotten.By(l.Returned.At)
		if isUsed && !l.lacks(c) && l.Returned.Before(first) {
			first = l.Returned
		}
	}
	return first
}

// due returns by when the run must be stopped: by the deadline or, if the termination learned of the run later, at once.
func (d *duty) due() time.Time { return times.Later(d.lastDeadline(), d.since.At) }
