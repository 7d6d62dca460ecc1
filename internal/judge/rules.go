package judge

import (
	"context"
	"errors"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// theDeadlineIsTheEarliestThatWasAskedFor: A pod has one deadline. It is the earliest that was asked for, and only moves earlier.
func (p *pod) theDeadlineIsTheEarliestThatWasAskedFor() {
	var asked []*Use // of all terminations: one for a late start keeps the deadline of the one before
	for _, t := range p.terminations {
		asked = slices.Concat(asked, t.Uses, t.Shortens)
	}
	for _, t := range p.terminations {
		for i, reading := range t.Readings {
			if i > 0 && reading.Deadline.After(t.Readings[i-1].Deadline) && t.Readings[i-1].Before(reading.Asked) {
				p.breach("theDeadlineOnlyMovesEarlier", reading.At, "it moved from %v to %v", p.since(t.Readings[i-1].Deadline), p.since(reading.Deadline))
			}
			for _, u := range slices.Concat(t.Uses, t.Shortens) {
				if u.IsDefault && len(t.Uses) > 1 {
					continue // it shortens nothing
				}
				isInTime := (t.Done.IsZero() || u.Called.At.Before(t.Done.At)) && !p.closed().Before(u.Returned)
				if isInTime && u.Returned.Before(reading.Asked) && reading.Deadline.After(u.Until) {
					p.breach("theDeadlineIsTheEarliestThatWasAskedFor", reading.At, "it is %v, though %v was asked for", p.since(reading.Deadline), p.since(u.Until))
				}
			}
			if !slices.ContainsFunc(asked, func(u *Use) bool { return u.Called.Before(reading.Moment) && !u.Until.After(reading.Deadline) }) {
				p.breach("theDeadlineIsTheEarliestThatWasAskedFor", reading.At, "it is %v, earlier than anything that was asked for", p.since(reading.Deadline))
			}
		}
	}
}

// allowed returns the earliest time at which a run may be killed, by what had been asked for when a
// call was made; the zero time if nobody has asked.
func (p *pod) allowed(c lifecycle.Container, called Moment) (earliest time.Time) {
	for _, t := range p.terminations {
		isNamed := t.names(c.ID) && !t.Done.Before(called) // it stops whatever has the ID
		if forgotten := p.forgotten(t.begun()); !isNamed && !forgotten.IsZero() && forgotten.At.Before(c.Began) {
			continue
		}
		hasLateStart := slices.ContainsFunc(p.starts, func(s *Start) bool {
			return s.Begun.Before(t.Done) && !s.Ended.Before(t.Done)
		})
		if !isNamed && !t.Done.IsZero() && t.Done.At.Before(c.Began) && !hasLateStart {
			continue
		}
		for _, u := range slices.Concat(t.Uses, t.Shortens) {
			if u.Called.Before(called) {
				earliest = times.Earlier(earliest, u.Until)
			}
		}
		for _, r := range t.Readings {
			if r.Before(called) {
				earliest = times.Earlier(earliest, r.Deadline)
			}
		}
	}
	for _, u := range p.kills {
		if u.Called.Before(called) && u.isAbout(c) {
			earliest = times.Earlier(earliest, u.Until)
		}
	}
	return earliest
}

// deadlineOf returns the earliest time at which a call may kill one of the runs that it may be for. A unit has the earliest deadline of
// its containers.
func (p *pod) deadlineOf(s *Stop) (earliest time.Time) {
	meant := p.meant(s)
	if s.ID == "" {
		meant = p.known
	}
	for _, c := range meant {
		earliest = times.Earlier(earliest, p.allowed(c, s.Called))
	}
	return earliest
}

// nothingIsKilledBeforeItsDeadline: no run is killed before its deadline, and none is stopped that nobody has asked to stop.
func (p *pod) nothingIsKilledBeforeItsDeadline() {
	for _, s := range p.stops {
		earliest := p.deadlineOf(s)
		seen := p.seen(s.Called)
		for _, u := range p.kills { // no list has said since that the ID is another run's
			if u.Containers[0].ID == s.ID && u.Called.Before(s.Called) && (len(seen) == 0 || seen[len(seen)-1].Called.Before(u.Called)) {
				earliest = times.Earlier(earliest, u.Until)
			}
		}
		switch {
		case earliest.IsZero():
			p.breach("nothingIsStoppedThatNobodyHasAskedToStop", s.Called.At, "stop(%d) of %q", s.Seconds, s.ID)
		case s.killAt().Before(earliest):
			p.breach("nothingIsKilledBeforeItsDeadline", s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, s.ID, p.since(s.killAt()), p.since(earliest))
		}
	}
}

// nothingIsGivenMoreThanItsDeadlineAndTheFloor: no call gives a run more than what is left until its deadline and the floor.
func (p *pod) nothingIsGivenMoreThanItsDeadlineAndTheFloor() {
	for _, c := range p.known {
		for _, s := range p.stopsOf(c) {
			var until time.Time
			for _, t := range p.terminations {
				since := p.knows(t, c)
				if p.forgotten(t.begun()).Before(s.Called) {
					continue
				}
				if !since.IsZero() && since.At.Before(s.Called.At) && !t.Done.By(s.Called.At) {
					until = times.Earlier(until, t.deadlineBefore(s.Called.At))
				}
			}
			if !until.IsZero() && s.Seconds > 0 && s.killAt().After(until.Add(floor+times.Lag)) {
				p.breach("nothingIsGivenMoreThanItsDeadlineAndTheFloor", s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, c.ID, p.since(s.killAt()), p.since(until))
			}
		}
	}
}

// everythingIsAskedToStopByItsDeadline: by its deadline, or when it is listed if that is later, each run has been asked to stop with what is
// left, whatever its hook, its turn, its runtime and its events do. A call that has returned has a list
// and a pause after it.
func (p *pod) everythingIsAskedToStopByItsDeadline() {
	for _, t := range p.terminations {
		for _, c := range p.known {
			since := p.knows(t, c)
			if since.IsZero() || p.once() {
				continue
			}
			due := times.Later(t.final(), since.At)
			by := due
			stops := p.stopsOf(c)
			if slices.ContainsFunc(stops, func(s *Stop) bool { return s.Returned.By(due) }) || p.options.Pods != nil && len(p.unitsBefore(c)) > 0 {
				by = due.Add(pause + 2*p.options.StopTimeoutSlack)
			}
			givenUp := p.allowed(c, Moment{At: by, Place: math.MaxInt}).Add(p.options.GiveUpAfter)                       // by another call
			isReplaced := slices.ContainsFunc(p.lists, func(l *List) bool { return l.Returned.By(by) && l.replaces(c) }) // a call would stop the later run
			isOver := isReplaced || t.Done.By(by) || p.closed().By(by) || !by.Before(givenUp) || t.asks() && !p.staysListed(c, by)
			if isOver || slices.ContainsFunc(stops, func(s *Stop) bool {
				return s.Called.By(by) && (s.Seconds == 0 || !s.killAt().After(times.Later(due, s.Called.At).Add(floor+times.Lag)))
			}) || p.isBelieved(c.ID, Moment{At: by, Place: math.MaxInt}) {
				continue
			}
			p.breach("everythingIsAskedToStopByItsDeadline", by, "no call kills %q by %v", c.ID, p.since(due.Add(floor)))
		}
	}
}

// once reports whether a caller wants one call only, which it repeats itself.
func (p *pod) once() bool {
	return slices.ContainsFunc(p.terminations, (*Termination).once) || slices.ContainsFunc(p.kills, func(u *Use) bool { return u.Once })
}

// unitsBefore returns the calls of StopPod that were made before a run was listed.
func (p *pod) unitsBefore(c lifecycle.Container) (stops []*Stop) {
	first := p.firstKnown(c)
	for _, s := range p.stops {
		if s.Called.Before(first) {
			stops = append(stops, s)
		}
	}
	return stops
}

// aHookRunsOncePerRun: A hook runs once a run. A run has ended when a list lacks it, or StopContainer says so of one that was named.
func (p *pod) aHookRunsOncePerRun() {
	for i, h := range p.hooks {
		for _, c := range p.known {
			if c.ID == h.ID && c.PreStopDone && !slices.ContainsFunc(p.known, func(other lifecycle.Container) bool { return other.ID == h.ID && !isSameRun(c, other) }) {
				p.breach("aHookRunsOncePerRun", h.Called.At, "the hook of %q had run for a previous agent", h.ID)
			}
		}
		for _, earlier := range p.hooks[:i] {
			if earlier.ID == h.ID && !p.hasChanged(h.ID, earlier.Called, h.Called) {
				p.breach("aHookRunsOncePerRun", h.Called.At, "the hook of %q has run at %v", h.ID, p.since(earlier.Called.At))
				break
			}
		}
	}
}

// hasChanged reports whether the ID may be that of another run, or of a pod that was forgotten.
func (p *pod) hasChanged(id string, from, to Moment) bool {
	if f := p.forgotten(from); f.Before(to) {
		return true
	}
	if p.isNamed(id) && slices.ContainsFunc(p.stops, func(s *Stop) bool {
		return (s.ID == id || s.ID == "") && s.isDelivered() && s.Returned.Before(to) && !s.Returned.At.Before(from.At)
	}) {
		return true
	}
	if slices.ContainsFunc(p.runs, func(run *Run) bool { return run.ID == id && from.Before(run.Start) && run.Start.Before(to) }) {
		return true
	}
	for _, t := range p.terminations {
		if slices.ContainsFunc(t.Uses, func(u *Use) bool { // the caller says that it does not run
			return !u.Asks && from.Before(u.Returned) && u.Called.Before(to) && !slices.ContainsFunc(u.Containers, func(c lifecycle.Container) bool { return c.ID == id })
		}) {
			return true
		}
	}
	var began []time.Time
	for _, l := range p.lists {
		if l.Returned.At.Before(from.At) || to.Before(l.Returned) {
			continue
		}
		i := slices.IndexFunc(l.Running, func(c lifecycle.Container) bool { return c.ID == id })
		if i < 0 {
			return true
		}
		if began = append(began, l.Running[i].Began); !began[0].Equal(l.Running[i].Began) {
			return true
		}
	}
	// Hooks that were begun by different lists, of which the first was before.
	before := p.seen(from)
	return len(began) > 0 && slices.ContainsFunc(before, func(l *List) bool {
		return slices.ContainsFunc(l.Running, func(c lifecycle.Container) bool { return c.ID == id && !c.Began.Equal(began[0]) })
	})
}

// isNamed reports whether a caller has named a container, so that its StopContainer is believed.
func (p *pod) isNamed(id string) bool {
	return slices.ContainsFunc(p.terminations, func(t *Termination) bool { return t.names(id) })
}

// names reports whether a call of Terminate has named a container.
func (t *Termination) names(id string) bool {
	return slices.ContainsFunc(t.Uses, func(u *Use) bool {
		return slices.ContainsFunc(u.Containers, func(c lifecycle.Container) bool { return c.ID == id })
	})
}

// isBelieved reports whether a caller has named a container, and StopContainer has said by then that it has ended.
func (p *pod) isBelieved(id string, by Moment) bool {
	return p.isNamed(id) && slices.ContainsFunc(p.stops, func(s *Stop) bool { return (s.ID == id || s.ID == "") && s.isDelivered() && s.Returned.Before(by) })
}

// noHookOutlivesItsUse: A hook begins before the deadline of its container, and its context ends by then.
func (p *pod) noHookOutlivesItsUse() {
	for _, h := range p.hooks {
		isOver := func(by time.Time) bool { return h.Cut.By(by) || h.Returned.By(by) }
		if closed := p.closed(); !closed.IsZero() && !isOver(times.Later(closed.At, h.Called.At)) {
			p.breach("noHookOutlivesItsUse", closed.At, "the hook of %q goes on after Close", h.ID)
		}
		for _, c := range p.known {
			if c.ID != h.ID || slices.ContainsFunc(p.known, func(other lifecycle.Container) bool { return other.ID == c.ID && !isSameRun(c, other) }) {
				continue
			}
			for _, t := range p.terminations {
				since := p.knows(t, c)
				if since.IsZero() || t.Done.By(h.Called.At) || p.forgotten(t.begun()).Before(h.Called) {
					continue
				}
				until := t.final()
				if before := t.deadlineBefore(h.Called.At); since.At.Before(h.Called.At) && !before.IsZero() && !h.Called.At.Before(before) {
					p.breach("noHookBeginsAfterItsDeadline", h.Called.At, "the hook of %q, whose deadline was %v", h.ID, p.since(before))
				} else if late := times.Later(times.Later(until, h.Called.At), since.At); !t.Done.By(late) && !isOver(late) {
					p.breach("noHookOutlivesItsUse", late, "the hook of %q, which began at %v, goes on", h.ID, p.since(h.Called.At))
				}
			}
		}
	}
}

// sidecarsStopAfterThoseTheyServe: before its deadline a sidecar is not stopped while a container that it serves is listed, may have
// been started since, or is named and not said to have ended. One that KillContainer stops waits for nobody.
func (p *pod) sidecarsStopAfterThoseTheyServe() {
	for _, s := range p.stops {
		if s.ID == "" {
			return
		}
		for _, c := range p.meant(s) {
			isSignalled := slices.ContainsFunc(p.stops, func(earlier *Stop) bool { return earlier.ID == s.ID && earlier.Called.Before(s.Called) })
			isKilled := slices.ContainsFunc(p.kills, func(u *Use) bool { return u.Called.Before(s.Called) && u.Containers[0].ID == c.ID })
			if until := p.allowed(c, s.Called); isKilled || isSignalled || !s.Called.At.Before(until) || len(p.meant(s)) > 1 {
				continue
			}
			for _, t := range p.terminations {
				if t.once() || !t.begun().Before(s.Called) || t.Done.Before(s.Called) || p.forgotten(t.begun()).Before(s.Called) {
					continue
				}
				if whom := p.servedBy(t, c, s.Called); whom != "" {
					p.breach("sidecarsStopAfterThoseTheyServe", s.Called.At, "stop(%d) of sidecar %q while %s", s.Seconds, c.ID, whom)
				}
			}
		}
	}
}

// servedBy returns what a sidecar serves at a time, "" if nothing.
func (p *pod) servedBy(t *Termination, c lifecycle.Container, at Moment) string {
	sidecar := specOf(t.Pod, c.Name)
	seen, asks := p.seen(at), t.asked().Before(at)
	if asks && len(seen) > 0 {
		for _, other := range seen[0].Running {
			isInAll := !slices.ContainsFunc(seen, func(l *List) bool { return l.lacks(other) })
			if isInAll && !p.isBelieved(other.ID, at) && sidecar.serves(specOf(t.Pod, other.Name)) {
				return other.ID + " is listed"
			}
		}
	}
	for _, s := range p.starts {
		if !sidecar.serves(specOf(t.Pod, s.Name)) || !s.Begun.Before(at) || !s.Begun.At.Before(at.At) {
			continue
		}
		if s.Ended.IsZero() || s.Ended.At.After(at.At) {
			return s.Name + " is being started"
		}
		// Forgotten: the termination does not ask any more.
		isAsked := slices.ContainsFunc(seen, func(l *List) bool { return s.Ended.Before(l.Called) })
		if asks && !isAsked && !slices.ContainsFunc(p.forgets, func(u *Use) bool { return !at.Before(u.Called) }) && t.asked().Before(s.Ended) && s.Ended.At.Before(at.At) {
			return s.Name + " may have been started"
		}
	}
	if asks {
		return ""
	}
	for _, u := range t.Uses {
		for _, other := range u.Containers {
			isStopped := slices.ContainsFunc(p.stops, func(s *Stop) bool {
				isMissed := slices.ContainsFunc(p.lists, func(l *List) bool { // KillContainer asks what runs
					return s.Called.Before(l.Called) && !at.Before(l.Returned) && l.lacks(other)
				})
				return s.ID == other.ID && (s.isDelivered() && !at.Before(s.Returned) || isMissed)
			})
			if u.Called.At.Before(at.At) && !isStopped && sidecar.serves(specOf(t.Pod, other.Name)) {
				return other.ID + " has not been stopped"
			}
		}
	}
	return ""
}

// whatMayRunIsNeverSaidToHaveEnded: the word that a pod or a run has ended rests on a list that was asked for after all that was done,
// and lacks it, or on any list that has a later run with its ID; where the caller has named the containers, on the answer of StopContainer.
func (p *pod) whatMayRunIsNeverSaidToHaveEnded() {
	const rule = "whatMayRunIsNeverSaidToHaveEnded"
	for _, t := range p.terminations {
		if t.Done.IsZero() {
			continue
		}
		forgotten := p.forgotten(t.begun())
		isForgotten := !forgotten.IsZero() && !forgotten.At.After(t.Done.At)
		isEmptyForT := func(l *List) bool {
			return t.begun().Before(l.Called) && l.Returned.Before(t.Done) && (forgotten.IsZero() || !l.Returned.At.After(forgotten.At)) && len(l.Running) == 0
		}
		for _, c := range t.Result.Containers {
			if c.Outcome == lifecycle.OutcomeNotFound && c.ID == "" && t.asks() && !t.IsLate && !slices.ContainsFunc(p.lists, isEmptyForT) {
				p.breach(rule, t.Done.At, "%s is %s, but no list that was asked for since is empty", c.Name, c.Outcome)
			}
			if !hasEnded(c.Outcome) || c.ID == "" || !t.asks() && !t.names(c.ID) { // the caller says what runs
				continue
			}
			run := lifecycle.Container{ID: c.ID, Began: c.Began}
			var first Moment
			for _, s := range p.stops {
				if (s.ID == run.ID && c.Outcome != lifecycle.OutcomeNotFound || s.ID == "") && first.IsZero() && !s.Called.At.Before(p.firstKnown(run).At) {
					first = s.Called
				}
			}
			isMissed := slices.ContainsFunc(p.lists, func(l *List) bool {
				isNewEnough := !l.Called.At.Before(times.Later(first.At, p.firstKnown(run).At))
				return l.Returned.Before(t.Done) && l.lacks(run) && (isNewEnough || l.replaces(run))
			})
			if !p.firstKnown(run).IsZero() && !isMissed && !p.isBelieved(c.ID, t.Done) {
				p.breach(rule, t.Done.At, "%q is %s, but no list that was asked for after it was stopped lacks it", c.ID, c.Outcome)
			}
		}
		seen := p.seen(t.Done)
		if isForgotten || !t.asks() || slices.ContainsFunc(t.Result.Containers, func(c lifecycle.ContainerResult) bool { return !hasEnded(c.Outcome) }) {
			continue
		}
		asked := t.begun()
		for _, s := range p.starts {
			if s.Begun.Before(t.Done) && s.Ended.At.Before(t.Done.At) && asked.Before(s.Ended) {
				asked = s.Ended
			}
			if s.Begun.Before(t.begun()) && (s.Ended.IsZero() || s.Ended.At.After(t.Done.At)) && p.forgotten(s.Begun).IsZero() {
				p.breach(rule, t.Done.At, "the pod is %s, but %s is being started", t.Result.Outcome(), s.Name)
			}
		}
		if !t.IsLate && !slices.ContainsFunc(seen, func(l *List) bool { return asked.Before(l.Called) }) {
			p.breach(rule, t.Done.At, "the pod is %s, but the runtime was not asked after %v", t.Result.Outcome(), p.since(asked.At))
		}
		isEmpty := func(l *List) bool {
			return !slices.ContainsFunc(l.Running, func(c lifecycle.Container) bool { return !p.isBelieved(c.ID, t.Done) })
		}
		if len(seen) > 0 && !slices.ContainsFunc(seen, isEmpty) {
			p.breach(rule, t.Done.At, "the pod is %s, but the runtime lists %s", t.Result.Outcome(), names(seen[0].Running))
		}
	}
}

// whatKillContainerSaysToHaveEndedIsNotListed: what KillContainer says to have ended is lacking in a list that was asked for since.
func (p *pod) whatKillContainerSaysToHaveEndedIsNotListed() {
	for _, u := range p.kills {
		seen := p.seen(u.Returned)
		if u.Returned.IsZero() || !hasEnded(u.Result.Outcome) || len(seen) == 0 || p.isNamed(u.Containers[0].ID) {
			continue
		}
		asked, isReused := u.Called.At, 0
		for _, s := range p.stops {
			if s.ID == u.Containers[0].ID {
				asked = times.Earlier(asked, s.Called.At) // it may have joined a stop that was under way
			}
		}
		for _, c := range p.known {
			if c.ID == u.Containers[0].ID {
				isReused++
			}
		}
		if isReused < 2 && !slices.ContainsFunc(p.lists, func(l *List) bool {
			return !l.Called.At.Before(asked) && l.Returned.Before(u.Returned) && !slices.ContainsFunc(l.Running, u.isAbout)
		}) {
			p.breach("whatKillContainerSaysToHaveEndedIsNotListed", u.Returned.At, "%q is %s", u.Containers[0].ID, u.Result.Outcome)
		}
	}
}

// whatWasKilledIsNotGraceful: A run that the runtime has killed is not Graceful, unless the runtime had said before that it had ended:
// by a StopContainer, or to a termination that is told no more.
func (p *pod) whatWasKilledIsNotGraceful() {
	for _, t := range p.terminations {
		for _, run := range p.runs {
			result := t.result(run.Container)
			hasLied := p.hasSaidTheEnd(t, run) || slices.ContainsFunc(p.stopsOf(run.Container), func(s *Stop) bool {
				return s.isDelivered() && s.Returned.Before(run.Exit)
			})
			isOfUnit := slices.ContainsFunc(p.stops, func(s *Stop) bool { // a StopPod for others has killed it: this one, with time left, has not
				return s.ID == "" && (run.Exit.Before(s.Called) || s.Seconds > 0 && s.Called.At.Equal(run.Exit.At))
			})
			isReused := slices.ContainsFunc(p.runs, func(other *Run) bool { return other != run && other.ID == run.ID })
			if result != nil && result.Outcome == lifecycle.OutcomeGraceful && run.How == "KILL" && t.begun().Before(run.Exit) && run.Exit.Before(t.Done) && !p.isNamed(run.ID) && !hasLied && !isReused && !isOfUnit {
				p.breach("whatWasKilledIsNotGraceful", run.Exit.At, "%q", run.ID)
			}
		}
	}
}

// hasSaidTheEnd reports whether a list has said of a run, before its end, that it had ended, and the termination is not told that it is
// listed again: after Forget only the stops that are under way ask what runs.
func (p *pod) hasSaidTheEnd(t *Termination, run *Run) (said bool) {
	forgotten, listed := p.forgotten(t.begun()), p.firstListed(run.Container)
	if !forgotten.Before(run.Exit) {
		return false
	}
	for _, l := range p.lists {
		switch {
		case !l.Returned.Before(run.Exit):
			return said
		case l.lacks(run.Container):
			said = said || listed.Before(l.Called)
		case l.Returned.Before(forgotten):
			said = false
		}
	}
	return said
}

// aListedRunHasAResult: each run that was listed in a termination has a result of its own.
func (p *pod) aListedRunHasAResult() {
	for _, t := range p.terminations {
		for _, c := range p.known {
			if !t.Done.IsZero() && !p.knows(t, c).IsZero() && t.result(c) == nil {
				p.breach("aListedRunHasAResult", t.Done.At, "%q", c.ID)
			}
		}
	}
}

// aFailingRuntimeIsAskedAgain: A run that has not ended is asked to stop again, after a pause and a list, until it is given up.
func (p *pod) aFailingRuntimeIsAskedAgain() {
	for _, t := range p.terminations {
		if p.once() || !t.asks() {
			continue
		}
		for _, c := range p.known {
			stops := p.stopsOf(c)
			if p.knows(t, c).IsZero() || len(stops) == 0 {
				continue
			}
			if p.isBelieved(c.ID, t.Done) {
				continue
			}
			last, unanswered := stops[len(stops)-1], 0
			for _, s := range stops {
				if s.Returned.IsZero() || s.Returned.At.After(last.Called.At) { // a call that hangs ends with its stop
					unanswered++
				}
			}
			quiet := last.Returned.At
			if silent := last.killAt().Add(p.options.StopTimeoutSlack << min(unanswered+1, 10)); last.Returned.IsZero() || silent.Before(quiet) {
				quiet = silent
			}
			again := quiet.Add(pause + 2*p.options.StopTimeoutSlack)
			until := p.allowed(c, last.Called)
			if last.ID == "" {
				until = p.deadlineOf(last)
			}
			givenUp := times.Later(until, stops[0].Called.At).Add(p.options.GiveUpAfter)
			if t.Done.By(again) || !again.Before(givenUp) || p.closed().By(again) {
				continue
			}
			if !slices.ContainsFunc(p.lists, func(l *List) bool { return !l.Called.At.Before(last.Called.At) && l.lacks(c) }) {
				p.breach("aFailingRuntimeIsAskedAgain", again, "%q was asked to stop at %v, and not again", c.ID, p.since(last.Called.At))
			}
		}
	}
}

// nothingIsStartedAfterTheTermination: after the termination nothing is started, but a sidecar while the termination is under way.
func (p *pod) nothingIsStartedAfterTheTermination() {
	for _, s := range p.starts {
		isUnderWay := slices.ContainsFunc(p.terminations, func(t *Termination) bool {
			return t.begun().Before(s.Begun) && !t.Done.Before(s.Called) && s.Begun.At.Before(t.deadlineBefore(s.Begun.At.Add(1)))
		})
		for _, t := range p.terminations {
			if t.IsLate || s.Begun.IsZero() || !t.Uses[0].Returned.Before(s.Called) || p.forgotten(t.begun()).Before(s.Begun) {
				continue
			}
			if specOf(t.Pod, s.Name).kind != sidecar || !isUnderWay {
				p.breach("nothingIsStartedAfterTheTermination", s.Begun.At, "%s is started, the pod was terminated at %v", s.Name, p.since(t.begun().At))
			}
		}
	}
}

// lateStartsAreStopped: what a start has left is stopped before Start returns, if no termination is under way that stops it.
func (p *pod) lateStartsAreStopped() {
	for _, s := range p.starts {
		isCovered := slices.ContainsFunc(p.terminations, func(t *Termination) bool {
			return !t.IsLate && t.begun().Before(s.Returned) && !t.Done.Before(s.Ended)
		})
		isCovered = isCovered || slices.ContainsFunc(p.starts, func(other *Start) bool { // by the termination of another late start
			return other != s && other.Ended.Before(s.Ended) && !other.Returned.Before(s.Ended)
		})
		if isCovered || errors.Is(s.Err, errDidNotReturn) || s.Ended.IsZero() || s.Returned.IsZero() || p.closed().Before(s.Returned) {
			continue
		}
		for _, t := range p.terminations {
			// The start was under way when the termination began.
			if t.IsLate || !t.asks() || !s.Begun.Before(t.begun()) || s.Ended.Before(t.begun()) || !p.forgotten(t.begun()).IsZero() {
				continue
			}
			asked := slices.ContainsFunc(p.lists, func(l *List) bool { return s.Ended.Before(l.Called) && l.Returned.Before(s.Returned) })
			if isStuck := s.Result != nil && slices.ContainsFunc(s.Result.Containers, func(c lifecycle.ContainerResult) bool { return !hasEnded(c.Outcome) }); !asked && !isStuck {
				p.breach("lateStartsAreStopped", s.Returned.At, "Start(%s) returns, but the runtime was not asked what it has left", s.Name)
			}
			for _, l := range p.lists {
				if !s.Ended.Before(l.Called) || !l.Returned.Before(s.Returned) {
					continue
				}
				for _, c := range l.Running {
					if len(p.stopsOf(c)) == 0 {
						p.breach("lateStartsAreStopped", s.Returned.At, "Start(%s) returns, but nothing has stopped %q", s.Name, c.ID)
					}
				}
			}
		}
	}
}

// nothingIsLostInSilence: A run that was forced, is stuck or was left running says why; the failures of the runtime are logged
// or recorded.
func (p *pod) nothingIsLostInSilence() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			if c.Err == nil && (c.Outcome == lifecycle.OutcomeForced || !hasEnded(c.Outcome)) {
				p.breach("nothingIsLostInSilence", t.Done.At, "%s(%s) is %s without an error", c.Name, c.ID, c.Outcome)
			}
		}
	}
	for i, s := range p.stops {
		if len(p.log) == 0 || s.Returned.IsZero() || s.isDelivered() || errors.Is(s.Err, context.Canceled) {
			continue
		}
		for _, again := range p.stops[i+1:] {
			if again.ID != s.ID || !s.Returned.Before(again.Called) || s.Returned.At.Equal(again.Called.At) {
				continue
			}
			isOvertaken := slices.ContainsFunc(p.stops, func(other *Stop) bool { // by a newer call, whose word counts, or by the success of another
				isNewer := s.Called.Before(other.Called) && other.Called.Before(s.Returned) && !other.Returned.Before(s.Returned)
				return other.ID == s.ID && (isNewer || other.isDelivered() && s.Called.Before(other.Returned) && other.Returned.Before(s.Returned))
			})
			if isOvertaken {
				break
			}
			if !slices.ContainsFunc(p.log, func(line Said) bool {
				return line.IsError && line.Before(again.Called) && strings.Contains(line.Text, p.key) && strings.Contains(line.Text, s.ID)
			}) {
				p.breach("nothingIsLostInSilence", again.Called.At, "stop(%d) of %q has failed, which was not logged", s.Seconds, s.ID)
			}
			break
		}
	}
	isLogged := slices.ContainsFunc(p.log, func(s Said) bool { return s.IsError })
	for _, l := range p.Record.lists {
		if l.Pod == p.key && l.Err != nil && len(p.log) > 0 && !isLogged && !p.closed().Before(l.Returned) {
			p.breach("nothingIsLostInSilence", l.Returned.At, "a list failed, and nothing was logged")
		}
	}
}

// isKilled reports whether a call of KillContainer that was made before may be about a run.
func (p *pod) isKilled(c lifecycle.Container, before Moment) bool {
	return slices.ContainsFunc(p.kills, func(u *Use) bool { return u.isAbout(c) && u.Called.Before(before) })
}

// nothingHangs: each call ends GiveUpAfter after the deadline, or after the first call that stops what was listed
// later. Close ends everything.
func (p *pod) nothingHangs() {
	slack := pause + 4*p.options.StopTimeoutSlack + farewell
	retried := func(c lifecycle.Container) (first time.Time) { // the first call for each call of KillContainer, which may be a new try
		for _, u := range p.kills {
			for _, s := range p.stops {
				if u.isAbout(c) && s.ID == c.ID && u.Called.Before(s.Called) {
					first = times.Later(first, s.Called.At)
					break
				}
			}
		}
		return first
	}
	// about returns since when the call has had to do with a run; the zero value if never. Earlier stops of the run were another try, with
	// a GiveUpAfter of its own.
	check := func(what string, until, asked time.Time, isShared bool, about func(lifecycle.Container) Moment, called, ended Moment) {
		if ended.IsZero() {
			ended.At = time.Now()
		}
		for _, t := range p.terminations {
			for _, u := range t.Uses {
				if isShared && u.Called.Before(ended) {
					until = times.Later(until, u.Until)
				}
			}
		}
		for _, c := range p.known {
			since := about(c)
			if since.IsZero() {
				continue
			}
			until = times.Later(until, retried(c))
			for _, s := range p.stopsOf(c) {
				if since.Before(s.Called) && s.Called.Before(ended) {
					until = times.Later(until, s.Called.At)
					if !isShared {
						break // the first call counts
					}
				}
			}
		}
		end := times.Later(until.Add(p.options.GiveUpAfter), asked).Add(slack)
		if closed := p.closed(); !closed.IsZero() {
			end = times.Earlier(end, times.Later(closed.At, called.At).Add(farewell))
		}
		if ended.At.After(end) {
			p.breach("nothingHangs", end, "%s, which began at %v, has not ended", what, p.since(called.At))
		}
	}
	for _, t := range p.terminations {
		asked := t.begun().At // for the last time
		for _, u := range t.Uses {
			asked = times.Later(asked, u.Called.At)
		}
		// Its containers are tried again by a caller who repeats calls, or in the next termination of a pod that was forgotten.
		isShared := p.once() || !p.forgotten(t.begun()).IsZero() || p.options.Pods != nil
		check("the termination", times.Later(t.final(), t.begun().At), asked, isShared, func(c lifecycle.Container) Moment {
			since := p.knows(t, c)
			if since.IsZero() && p.isKilled(c, t.Done) {
				since = t.begun()
			}
			return since
		}, t.begun(), t.Done)
	}
	for _, u := range p.kills {
		if u.IsPossible {
			continue
		}
		check("KillContainer", times.Later(u.Until, u.Called.At), u.Called.At, p.once() || len(p.forgets) > 0, func(c lifecycle.Container) Moment {
			if !u.isAbout(c) {
				return Moment{}
			}
			return u.Called
		}, u.Called, u.Returned)
	}
}
