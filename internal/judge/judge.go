package judge

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/graceperiod"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// The times that the rules allow beside those that were asked for.
const (
	floor    = time.Duration(graceperiod.MinimumContainerSeconds) * time.Second // of each container after its deadline
	pause    = time.Second                                                      // the longest one before a call is repeated
	farewell = 2 * time.Second                                                  // for hooks that ignore their context, and for events
)

// Terminations returns the promises of package lifecycle that were broken, a sentence each. Call it
// when nothing is under way any more: what has not ended then has hung.
func Terminations(r *Record) []string {
	r.mu.Lock()
	defer r.mu.Unlock()
	var broken []string
	for _, p := range r.pods() {
		for _, rule := range []func(*pod){
			(*pod).theDeadlineIsTheEarliestThatWasAskedFor,
			(*pod).nothingIsKilledBeforeItsDeadline,
			(*pod).nothingIsGivenMoreThanItsDeadlineAndTheFloor,
			(*pod).everythingIsAskedToStopByItsDeadline,
			(*pod).aHookRunsOncePerRun,
			(*pod).noHookOutlivesItsUse,
			(*pod).sidecarsStopAfterThoseTheyServe,
			(*pod).whatMayRunIsNeverSaidToHaveEnded,
			(*pod).whatKillContainerSaysToHaveEndedIsNotListed,
			(*pod).whatWasKilledIsNotGraceful,
			(*pod).aListedRunHasAResult,
			(*pod).aFailingRuntimeIsAskedAgain,
			(*pod).nothingIsStartedAfterTheTermination,
			(*pod).lateStartsAreStopped,
			(*pod).nothingIsLostInSilence,
			(*pod).nothingHangs,
		} {
			rule(p)
		}
		broken = append(broken, p.broken...)
	}
	return broken
}

// pod is what happened to one pod.
type pod struct {
	*Record

	key          string
	ids          map[string]bool
	lists        []*List // that have answered, in the order of their answers
	stops        []*Stop
	hooks        []*Hook
	starts       []*Start
	terminations []*Termination
	kills        []*Use
	forgets      []*Use
	runs         []*Run
	known        []lifecycle.Container // all runs that were listed or named
	broken       []string
}

// pods sorts what happened by pods, in the order of their keys.
func (r *Record) pods() []*pod {
	pods := map[string]*pod{}
	of := func(key string) *pod {
		if pods[key] == nil {
			pods[key] = &pod{Record: r, key: key, ids: map[string]bool{}}
		}
		return pods[key]
	}
	know := func(p *pod, containers ...lifecycle.Container) {
		for _, c := range containers {
			p.ids[c.ID] = true
			if !slices.ContainsFunc(p.known, func(other lifecycle.Container) bool { return isSameRun(c, other) }) {
				p.known = append(p.known, c)
			}
		}
	}
	for _, l := range r.lists {
		if p := of(l.Pod); !l.Returned.IsZero() && l.Err == nil {
			p.lists = append(p.lists, l)
			know(p, l.Running...)
		}
	}
	for _, t := range r.terminations {
		if t.Pod == nil {
			continue // a start has begun it, and its pod was forgotten
		}
		p := of(t.Key)
		p.terminations = append(p.terminations, t)
		for _, use := range t.Uses {
			know(p, use.Containers...)
		}
	}
	named := make([]*Use, 0, len(r.kills))
	for _, use := range r.kills {
		p := of(use.Key)
		p.kills = append(p.kills, use)
		p.ids[use.Containers[0].ID] = true
		named = append(named, use) // known if no list knows it
	}
	for _, use := range r.forgets {
		of(use.Key).forgets = append(of(use.Key).forgets, use)
	}
	for _, h := range r.hooks {
		of(h.Pod).hooks = append(of(h.Pod).hooks, h)
	}
	for _, s := range r.starts {
		of(s.Pod).starts = append(of(s.Pod).starts, s)
	}
	for _, run := range r.runs {
		of(run.Pod).runs = append(of(run.Pod).runs, run)
	}
	for _, use := range named {
		if p := of(use.Key); !slices.ContainsFunc(p.known, use.isAbout) {
			know(p, use.Containers...)
		}
	}
	sorted := make([]*pod, 0, len(pods))
	for _, p := range pods {
		sorted = append(sorted, p)
		slices.SortFunc(p.lists, func(a, b *List) int { return cmp.Compare(a.Returned.Place, b.Returned.Place) })
		p.lists = withoutOvertaken(p.lists)
		for _, s := range r.stops {
			if s.Pod == p.key || p.ids[s.ID] {
				p.stops = append(p.stops, s)
			}
		}
	}
	slices.SortFunc(sorted, func(a, b *pod) int { return cmp.Compare(a.key, b.key) })
	return sorted
}

// withoutOvertaken returns the lists without those that were asked for before one that has answered
// earlier: what they say is old.
func withoutOvertaken(lists []*List) (newer []*List) {
	var last Moment
	for _, l := range lists {
		if last.IsZero() || last.Before(l.Called) {
			newer, last = append(newer, l), l.Called
		}
	}
	return newer
}

// breach says that a rule was broken.
func (p *pod) breach(rule string, at time.Time, format string, args ...any) {
	p.broken = append(p.broken, fmt.Sprintf("%s: pod %s at %v: %s", rule, p.key, p.since(at), fmt.Sprintf(format, args...)))
}

// stopsOf returns the calls that stop a run, those of its pod included. Where an ID is used again a
// call is for the run that was listed last before it: the terminator has to know that. Who names a run without
// its beginning means any run with the ID.
func (p *pod) stopsOf(c lifecycle.Container) (stops []*Stop) {
	for _, s := range p.stops {
		if s.ID == "" && p.firstKnown(c).Before(s.Called) || s.ID == c.ID && slices.ContainsFunc(p.meant(s), func(other lifecycle.Container) bool { return other.Began.IsZero() || isSameRun(c, other) }) {
			stops = append(stops, s)
		}
	}
	return stops
}

// meant returns the runs that a call of StopContainer may be for: those with its ID in the lists that
// the terminator may have seen, or all with the ID that were named or listed.
func (p *pod) meant(s *Stop) (runs []lifecycle.Container) {
	for _, l := range p.seen(s.Called) {
		for _, c := range l.Running {
			if c.ID == s.ID {
				runs = append(runs, c)
			}
		}
	}
	if len(runs) > 0 {
		return runs
	}
	for _, c := range p.known {
		if c.ID == s.ID {
			runs = append(runs, c)
		}
	}
	return runs
}

// seen returns the lists that a decision of this time may rest on: those that have answered at the
// same time, and the last one before.
func (p *pod) seen(m Moment) (lists []*List) {
	for _, l := range slices.Backward(p.lists) {
		switch {
		case m.Before(l.Returned) || l.Returned == m:
		case l.Returned.At.Equal(m.At):
			lists = append(lists, l)
		default:
			return append(lists, l)
		}
	}
	return lists
}

// firstListed returns when a run was listed for the first time.
func (p *pod) firstListed(c lifecycle.Container) Moment {
	for _, l := range p.lists {
		if !l.lacks(c) {
			return l.Returned
		}
	}
	return Moment{}
}

// firstKnown returns when a run was listed or named for the first time.
func (p *pod) firstKnown(c lifecycle.Container) Moment {
	first := p.firstListed(c)
	for _, t := range p.terminations {
		for _, u := range t.Uses {
			if u.Called.Before(first) && slices.ContainsFunc(u.Containers, func(other lifecycle.Container) bool { return isSameRun(c, other) }) {
				first = u.Called
			}
		}
	}
	for _, u := range p.kills {
		if u.isAbout(c) && u.Called.Before(first) {
			first = u.Called
		}
	}
	return first
}

// staysListed reports whether no list that has answered by a time, after a run was listed, lacks it.
func (p *pod) staysListed(c lifecycle.Container, until time.Time) bool {
	first := p.firstListed(c)
	for _, l := range p.lists {
		if first.Before(l.Returned) && l.Returned.By(until) && l.lacks(c) {
			return false
		}
	}
	return !first.IsZero()
}

// forgotten returns when the pod was forgotten for the first time after something.
func (p *pod) forgotten(after Moment) Moment {
	for _, use := range p.forgets {
		if after.Before(use.Returned) {
			return use.Called
		}
	}
	return Moment{}
}

// closed returns when the terminator was closed.
func (p *pod) closed() Moment {
	if len(p.closes) == 0 {
		return Moment{}
	}
	return p.closes[0].Called
}

// begun returns the first call of a termination.
func (t *Termination) begun() Moment {
	if t.IsLate {
		return t.Readings[0].Moment
	}
	return t.Uses[0].Called
}

// asked returns when the runtime was asked for the first time.
func (t *Termination) asked() Moment {
	if t.IsLate {
		return t.begun()
	}
	for _, u := range t.Uses {
		if u.Asks {
			return u.Called
		}
	}
	return Moment{}
}

// asks reports whether the runtime is asked what runs.
func (t *Termination) asks() bool {
	return t.IsLate || slices.ContainsFunc(t.Uses, func(u *Use) bool { return u.Asks })
}

// once reports whether a container may get one call only.
func (t *Termination) once() bool {
	return slices.ContainsFunc(t.Uses, func(u *Use) bool { return u.Once })
}

// final returns the last deadline of a termination.
func (t *Termination) final() time.Time {
	final := t.Readings[0].Deadline
	for _, r := range t.Readings {
		final = times.Earlier(final, r.Deadline)
	}
	return final
}

// deadlineBefore returns the deadline of a termination from what had been asked for before a time.
func (t *Termination) deadlineBefore(at time.Time) time.Time {
	var until time.Time
	for _, u := range slices.Concat(t.Uses, t.Shortens) {
		if u.Called.At.Before(at) && !u.Returned.IsZero() && (!u.IsDefault || len(t.Uses) == 1) {
			until = times.Earlier(until, u.Until)
		}
	}
	for _, r := range t.Readings {
		if r.At.Before(at) {
			until = times.Earlier(until, r.Deadline)
		}
	}
	return until
}

// knows returns when a termination has learnt that it has to stop a run: by a list, or by its name.
func (p *pod) knows(t *Termination, c lifecycle.Container) (since Moment) {
	forgotten := p.forgotten(t.begun())
	for _, u := range t.Uses {
		for _, named := range u.Containers {
			if isSameRun(named, c) && (since.IsZero() || u.Called.Before(since)) {
				since = u.Called
			}
		}
	}
	for _, l := range p.lists {
		if t.asked().Before(l.Called) && (t.Done.IsZero() || l.Returned.At.Before(t.Done.At)) && (forgotten.IsZero() || l.Returned.At.Before(forgotten.At)) && !l.lacks(c) {
			if since.IsZero() || l.Returned.Before(since) {
				since = l.Returned
			}
			break
		}
	}
	return since
}

// isAbout reports whether a call of KillContainer may be about a run.
func (u *Use) isAbout(c lifecycle.Container) bool {
	named := u.Containers[0]
	return named.ID == c.ID && (named.Began.IsZero() || named.Began.Equal(c.Began))
}

// result returns the result of a run, nil if there is none.
func (t *Termination) result(c lifecycle.Container) *lifecycle.ContainerResult {
	for i := range t.Result.Containers {
		if r := &t.Result.Containers[i]; r.ID == c.ID && (r.Began.IsZero() || r.Began.Equal(c.Began)) {
			return r
		}
	}
	return nil
}

// hasEnded reports whether an outcome says that a container has ended.
func hasEnded(o lifecycle.Outcome) bool {
	return o == lifecycle.OutcomeGraceful || o == lifecycle.OutcomeNotFound || o == lifecycle.OutcomeGraceExceeded || o == lifecycle.OutcomeForced
}
