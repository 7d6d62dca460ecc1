package judge

import (
	"cmp"
	"errors"
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

// podHistory is what happened to one pod. A rule is a method that appends what it finds to violations.
type podHistory struct {
	*Record

	rule         string // the name of the rule that is checked
	key          string
	ids          map[string]bool // the IDs of all its containers
	lists        []*List         // the successful ones, by the time of their return, without stale ones
	stops        []*Stop
	hooks        []*Hook
	starts       []*Start
	terminations []*Termination
	kills        []*Request
	forgets      []*Request
	runs         []*Run
	known        []lifecycle.Container // the runs that a list had, or that a caller of Terminate or KillContainer named
	violations   []string
}

// podHistories groups the record by pod, sorted by key.
func (r *Record) podHistories() []*podHistory {
	pods := map[string]*podHistory{}
	historyOf := func(key string) *podHistory {
		if pods[key] == nil {
			pods[key] = &podHistory{Record: r, key: key, ids: map[string]bool{}}
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
			continue // only Shorten has recorded it: a late start began it, and its pod was forgotten before Start returned
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
		p.ids[request.Containers[0].ID] = true
	}
	for _, request := range r.forgets {
		historyOf(request.Key).forgets = append(historyOf(request.Key).forgets, request)
	}
	for _, h := range r.hooks {
		historyOf(h.Pod).hooks = append(historyOf(h.Pod).hooks, h)
	}
	for _, s := range r.starts {
		historyOf(s.Pod).starts = append(historyOf(s.Pod).starts, s)
	}
	for _, run := range r.runs {
		historyOf(run.Pod).runs = append(historyOf(run.Pod).runs, run)
	}
	// Runs that only KillContainer names come last. They may lack Began, so each is added only if no known run matches.
	for _, request := range r.kills {
		if p := historyOf(request.Key); !slices.ContainsFunc(p.known, request.matches) {
			p.addKnown(request.Containers)
		}
	}
	for _, p := range pods {
		slices.SortFunc(p.lists, func(a, b *List) int { return cmp.Compare(a.Returned.Order, b.Returned.Order) })
		p.lists = withoutStale(p.lists)
		p.addStops()
	}
	return slices.SortedFunc(maps.Values(pods), func(a, b *podHistory) int { return cmp.Compare(a.key, b.key) })
}

// addKnown adds the runs that are not known yet.
func (p *podHistory) addKnown(containers []lifecycle.Container) {
	for _, c := range containers {
		p.ids[c.ID] = true
		if !hasRun(p.known, c) {
			p.known = append(p.known, c)
		}
	}
}

// addStops adds the stops of the pod: the StopPod calls that name it, and the StopContainer calls with one of its container
// IDs. p.ids must be complete before that.
func (p *podHistory) addStops() {
	for _, s := range p.Record.stops {
		if s.Pod == p.key || p.ids[s.ID] {
			p.stops = append(p.stops, s)
		}
	}
}

// withoutStale drops stale lists: a list that was requested earlier than another one, but returned later, shows an older
// state. lists is in the order in which they returned.
func withoutStale(lists []*List) (fresh []*List) {
	var lastRequest Moment
	for _, l := range lists {
		if lastRequest.IsZero() || lastRequest.Before(l.Called) {
			fresh, lastRequest = append(fresh, l), l.Called
		}
	}
	return fresh
}

// violation records that the rule that is checked was violated.
func (p *podHistory) violation(at time.Time, format string, args ...any) {
	p.violations = append(p.violations, fmt.Sprintf("%s: pod %s at %v: %s", p.rule, p.key, p.sinceStart(at), fmt.Sprintf(format, args...)))
}

// stopsOf returns the calls that stop a run: StopPod calls once the run was known, and StopContainer calls with its
// ID. If several runs share the ID, a call stops the one that was listed last before it. A run that was named
// without Began matches any run with the ID.
func (p *podHistory) stopsOf(c lifecycle.Container) (stops []*Stop) {
	mayBeRun := func(other lifecycle.Container) bool { return other.Began.IsZero() || isSameRun(c, other) }
	for _, s := range p.stops {
		stopsPod := s.ID == "" && p.firstKnown(c).Before(s.Called)
		stopsRun := s.ID == c.ID && slices.ContainsFunc(p.candidates(s), mayBeRun)
		if stopsPod || stopsRun {
			stops = append(stops, s)
		}
	}
	return stops
}

// candidates returns the runs that a StopContainer call may stop. The call has only an ID, which several runs share if
// the runtime uses an ID again. The candidates are the runs with this ID in the lists that the terminator may have seen
// before the call (a run in two of these is returned twice). If these lists have none, all known runs with the ID are.
func (p *podHistory) candidates(s *Stop) (runs []lifecycle.Container) {
	for _, l := range p.visibleLists(s.Called) {
		runs = append(runs, withID(l.Running, s.ID)...)
	}
	if len(runs) > 0 {
		return runs
	}
	return withID(p.known, s.ID)
}

// visibleLists returns the lists that a decision at the moment m may have used, the newest first. These are the last list
// that returned before the time of m, which the decision has seen, and those that returned at that very time but before
// m, which it may or may not have seen. A list whose return is m itself is left out.
func (p *podHistory) visibleLists(m Moment) (lists []*List) {
	for _, l := range slices.Backward(p.lists) {
		switch {
		case m.Before(l.Returned) || l.Returned == m: // too new
		case l.Returned.At.Equal(m.At):
			lists = append(lists, l)
		default:
			return append(lists, l)
		}
	}
	return lists
}

// firstListed returns when a run was first listed; zero: never.
func (p *podHistory) firstListed(c lifecycle.Container) Moment {
	for _, l := range p.lists {
		if !l.lacks(c) {
			return l.Returned
		}
	}
	return Moment{}
}

// firstKnown returns when a run was first listed, or named by a caller of Terminate or KillContainer; zero: never.
func (p *podHistory) firstKnown(c lifecycle.Container) Moment {
	first := p.firstListed(c)
	for _, t := range p.terminations {
		for _, request := range t.Requests {
			if request.Called.Before(first) && hasRun(request.Containers, c) {
				first = request.Called
			}
		}
	}
	for _, request := range p.kills {
		if request.matches(c) && request.Called.Before(first) {
			first = request.Called
		}
	}
	return first
}

// staysListed reports whether a run was listed, and all later lists that returned until the given time have it too.
func (p *podHistory) staysListed(c lifecycle.Container, until time.Time) bool {
	first := p.firstListed(c)
	for _, l := range p.lists {
		if first.Before(l.Returned) && l.Returned.By(until) && l.lacks(c) {
			return false
		}
	}
	return !first.IsZero()
}

// forgottenAt returns when Forget was called for the pod: the first call that returned after the given moment; zero:
// there is none.
func (p *podHistory) forgottenAt(after Moment) Moment {
	for _, request := range p.forgets {
		if after.Before(request.Returned) {
			return request.Called
		}
	}
	return Moment{}
}

// isForgotten reports whether Forget was called for the pod after a termination had begun, and before a moment. From the
// Forget call on, the termination gets no new lists, and another termination of the pod may begin while it goes on.
func (p *podHistory) isForgotten(t *Termination, before Moment) bool {
	return p.forgottenAt(t.startedAt()).Before(before)
}

// wasForgotten reports whether Forget was called for the pod after a termination had begun.
func (p *podHistory) wasForgotten(t *Termination) bool { return !p.forgottenAt(t.startedAt()).IsZero() }

// closedAt returns when Close was first called; zero: never.
func (p *podHistory) closedAt() Moment {
	if len(p.closes) == 0 {
		return Moment{}
	}
	return p.closes[0].Called
}

// startedAt returns when the termination began: with a Terminate call, or, for a start that returned late, when its
// deadline was first read.
func (t *Termination) startedAt() Moment {
	if t.IsForLateStart {
		return t.Readings[0].Returned
	}
	return t.Requests[0].Called
}

// startedBy returns the moment by which the termination had certainly begun: when the first Terminate call returned.
// Something that another call causes between startedAt and startedBy may have come before the termination.
func (t *Termination) startedBy() Moment {
	if t.IsForLateStart {
		return t.startedAt()
	}
	return t.Requests[0].Returned
}

// dependsOnListsBy returns the moment by which the termination certainly depended on the runtime's lists, because a request
// that does not name the containers had returned; zero: it never depends on lists. A termination that began because a start
// returned late has no request that could name them, so it depends on lists from its beginning.
func (t *Termination) dependsOnListsBy() Moment {
	if t.IsForLateStart {
		return t.startedAt()
	}
	for _, request := range t.Requests {
		if request.ListsContainers {
			return request.Returned
		}
	}
	return Moment{}
}

// usesList reports whether the termination gets its containers from the runtime's lists, at least for one request.
func (t *Termination) usesList() bool {
	return t.IsForLateStart || slices.ContainsFunc(t.Requests, func(request *Request) bool { return request.ListsContainers })
}

// isOneAttempt reports whether a request for the termination has OneAttempt, which means that the terminator does not
// repeat failed stops: the caller does.
func (t *Termination) isOneAttempt() bool {
	return slices.ContainsFunc(t.Requests, func(request *Request) bool { return request.OneAttempt })
}

// wasForgottenBefore reports whether Forget was certainly called between the beginning of a termination and the given time.
// A Forget call that overlaps the termination's first Terminate call may have come before it, and does not count.
func (p *podHistory) wasForgottenBefore(t *Termination, at time.Time) bool {
	return slices.ContainsFunc(p.forgets, func(request *Request) bool {
		return t.startedBy().Before(request.Called) && request.Called.At.Before(at)
	})
}

// isOneAttempt reports whether any request for the pod has OneAttempt, which means that the terminator does not repeat
// failed stops: the caller does.
func (p *podHistory) isOneAttempt() bool {
	return slices.ContainsFunc(p.terminations, (*Termination).isOneAttempt) || slices.ContainsFunc(p.kills, func(request *Request) bool { return request.OneAttempt })
}

// stopsAsUnit reports whether StopPod stops all containers of the pod at once. They then have one deadline, the earliest.
func (p *podHistory) stopsAsUnit() bool { return p.options.Pods != nil }

// hasSeveralRuns reports whether several runs had this ID, so that a hook or a call with the ID may be for any of them.
func (p *podHistory) hasSeveralRuns(id string) bool { return len(withID(p.known, id)) > 1 }

// cannotList reports whether the runtime cannot list containers at all.
func (p *podHistory) cannotList() bool {
	return slices.ContainsFunc(p.Record.lists, func(l *List) bool { return errors.Is(l.Err, errors.ErrUnsupported) })
}

// successProvesEnd reports whether the success of StopContainer proves the end of a container: a Terminate call named it, so
// that nothing is listed, or the runtime cannot list.
func (p *podHistory) successProvesEnd(id string) bool {
	return p.cannotList() || slices.ContainsFunc(p.terminations, func(t *Termination) bool { return t.namesID(id) })
}

// namesID reports whether a Terminate call named the container.
func (t *Termination) namesID(id string) bool {
	return slices.ContainsFunc(t.Requests, func(request *Request) bool { return len(withID(request.Containers, id)) > 0 })
}

// stopProvedEnd reports whether the terminator may count a container as ended without a list: where a success proves the
// end (successProvesEnd), a stop of the container or of its whole pod (no ID) had succeeded before the moment by.
func (p *podHistory) stopProvedEnd(id string, by Moment) bool {
	hasStopped := func(s *Stop) bool { return (s.ID == id || s.ID == "") && s.succeeded() && s.Returned.Before(by) }
	return p.successProvesEnd(id) && slices.ContainsFunc(p.stops, hasStopped)
}

// lastDeadline returns the earliest deadline that was read. It is the last deadline, because a deadline only moves
// earlier.
func (t *Termination) lastDeadline() (last time.Time) {
	for _, r := range t.Readings {
		last = times.Earlier(last, r.Deadline)
	}
	return last
}

// deadlineBefore returns the deadline that was in force just before a time: the earliest that was requested or read
// before it; zero: there was none. A request counts only if it has returned.
func (t *Termination) deadlineBefore(at time.Time) (deadline time.Time) {
	for _, request := range t.deadlineRequests() {
		if request.Called.At.Before(at) && !request.Returned.IsZero() {
			deadline = times.Earlier(deadline, request.Deadline)
		}
	}
	for _, r := range t.Readings {
		if r.Returned.At.Before(at) {
			deadline = times.Earlier(deadline, r.Deadline)
		}
	}
	return deadline
}

// mustStopSince returns when a termination first had to stop a run; zero: never. That is when a request named the run, or
// when the first list with the run returned, whichever was earlier. Only some lists count: those that were requested when
// the termination certainly depended on lists, and returned before it ended and before Forget was called.
func (p *podHistory) mustStopSince(t *Termination, c lifecycle.Container) (since Moment) {
	for _, request := range t.Requests {
		if hasRun(request.Containers, c) && request.Called.Before(since) {
			since = request.Called
		}
	}
	forgotten := p.forgottenAt(t.startedAt())
	for _, l := range p.lists {
		isDuring := t.dependsOnListsBy().Before(l.Called) && (t.Done.IsZero() || l.Returned.At.Before(t.Done.At))
		isBeforeForget := forgotten.IsZero() || l.Returned.At.Before(forgotten.At)
		if isDuring && isBeforeForget && !l.lacks(c) && l.Returned.Before(since) {
			since = l.Returned
		}
	}
	return since
}

// matches reports whether a KillContainer call may mean a run: the IDs are equal, and the call names no other start
// time.
func (r *Request) matches(c lifecycle.Container) bool {
	named := r.Containers[0]
	return named.ID == c.ID && (named.Began.IsZero() || named.Began.Equal(c.Began))
}

// result returns what the termination has reported for a run; nil: nothing.
func (t *Termination) result(c lifecycle.Container) *lifecycle.ContainerResult {
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
