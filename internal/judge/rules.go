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

// deadlineIsEarliestRequested: a pod has one deadline: the earliest one requested. It only moves
// earlier.
func (p *podHistory) deadlineIsEarliestRequested() {
	var requests []*Request // of all terminations: one for a late start keeps the previous deadline
	for _, t := range p.terminations {
		requests = slices.Concat(requests, t.Requests, t.Shortens)
	}
	for _, t := range p.terminations {
		for i, reading := range t.Readings {
			if i > 0 && reading.Deadline.After(t.Readings[i-1].Deadline) && t.Readings[i-1].Before(reading.Called) {
				p.violation("deadlineOnlyMovesEarlier", reading.At, "it moved from %v to %v", p.since(t.Readings[i-1].Deadline), p.since(reading.Deadline))
			}
			for _, u := range slices.Concat(t.Requests, t.Shortens) {
				if u.HasDefaultGrace && len(t.Requests) > 1 {
					continue // a request without a grace period joins, and does not shorten
				}
				wasInProgress := t.Done.IsZero() || u.Called.At.Before(t.Done.At)
				isInTime := wasInProgress && !p.closedAt().Before(u.Returned)
				if isInTime && u.Returned.Before(reading.Called) && reading.Deadline.After(u.Deadline) {
					p.violation("deadlineIsEarliestRequested", reading.At, "it is %v, though %v was requested", p.since(reading.Deadline), p.since(u.Deadline))
				}
			}
			if !slices.ContainsFunc(requests, func(u *Request) bool { return u.Called.Before(reading.Moment) && !u.Deadline.After(reading.Deadline) }) {
				p.violation("deadlineIsEarliestRequested", reading.At, "it is %v, earlier than any request", p.since(reading.Deadline))
			}
		}
	}
}

// earliestDeadline returns the time before which a run may not be killed by a call: the earliest deadline that was
// requested before the call. It is zero if nobody had requested the end of the run.
func (p *podHistory) earliestDeadline(c lifecycle.Container, called Moment) (earliest time.Time) {
	for _, t := range p.terminations {
		isNamed := t.namesID(c.ID) && !t.Done.Before(called) // stops any run with the ID
		if forgotten := p.forgottenAt(t.startedAt()); !isNamed && !forgotten.IsZero() && forgotten.At.Before(c.Began) {
			continue
		}
		hasLateStart := slices.ContainsFunc(p.starts, func(s *Start) bool {
			return s.Begun.Before(t.Done) && !s.Ended.Before(t.Done)
		})
		if !isNamed && !t.Done.IsZero() && t.Done.At.Before(c.Began) && !hasLateStart {
			continue
		}
		for _, u := range slices.Concat(t.Requests, t.Shortens) {
			if u.Called.Before(called) {
				earliest = times.Earlier(earliest, u.Deadline)
			}
		}
		for _, r := range t.Readings {
			if r.Before(called) {
				earliest = times.Earlier(earliest, r.Deadline)
			}
		}
	}
	for _, u := range p.kills {
		if u.Called.Before(called) && u.matches(c) {
			earliest = times.Earlier(earliest, u.Deadline)
		}
	}
	return earliest
}

// earliestKill returns the time before which a call may not kill. A StopPod call may kill all containers at the
// earliest of their deadlines.
func (p *podHistory) earliestKill(s *Stop) (earliest time.Time) {
	targets := p.candidates(s)
	if s.ID == "" { // a StopPod call
		targets = p.known
	}
	for _, c := range targets {
		earliest = times.Earlier(earliest, p.earliestDeadline(c, s.Called))
	}
	return earliest
}

// noKillBeforeDeadline: no run is killed before its deadline, or stopped without a request.
func (p *podHistory) noKillBeforeDeadline() {
	for _, s := range p.stops {
		earliest := p.earliestKill(s)
		seen := p.visibleLists(s.Called)
		for _, u := range p.kills { // no later list shows another run with the ID
			if u.Containers[0].ID == s.ID && u.Called.Before(s.Called) && (len(seen) == 0 || seen[len(seen)-1].Called.Before(u.Called)) {
				earliest = times.Earlier(earliest, u.Deadline)
			}
		}
		switch {
		case earliest.IsZero():
			p.violation("noStopWithoutRequest", s.Called.At, "stop(%d) of %q", s.Seconds, s.ID)
		case s.killAt().Before(earliest):
			p.violation("noKillBeforeDeadline", s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, s.ID, p.since(s.killAt()), p.since(earliest))
		}
	}
}

// noStopOutlastsDeadlineAndMinimum: no call gives a run more time than until its deadline, plus the minimum of 2 s
// that a container has even after its deadline.
func (p *podHistory) noStopOutlastsDeadlineAndMinimum() {
	for _, c := range p.known {
		for _, s := range p.stopsOf(c) {
			var until time.Time
			for _, t := range p.terminations {
				since := p.includedAt(t, c)
				if p.forgottenAt(t.startedAt()).Before(s.Called) {
					continue
				}
				if !since.IsZero() && since.At.Before(s.Called.At) && !t.Done.By(s.Called.At) {
					until = times.Earlier(until, t.deadlineBefore(s.Called.At))
				}
			}
			if !until.IsZero() && s.Seconds > 0 && s.killAt().After(until.Add(minimum+times.Lag)) {
				p.violation("noStopOutlastsDeadlineAndMinimum", s.Called.At, "stop(%d) of %q kills at %v, its deadline is %v", s.Seconds, c.ID, p.since(s.killAt()), p.since(until))
			}
		}
	}
}

// everyRunIsStoppedByItsDeadline: each run has had a StopContainer call with the remaining time by its deadline, or, if
// it was listed later, at that moment. Slow hooks, the order of containers, the runtime and events must not delay
// the call. Only if an earlier call has returned, a list and a pause may come first.
func (p *podHistory) everyRunIsStoppedByItsDeadline() {
	for _, t := range p.terminations {
		for _, c := range p.known {
			since := p.includedAt(t, c)
			if since.IsZero() || p.isOneAttempt() {
				continue
			}
			due := times.Later(t.lastDeadline(), since.At)
			by := due // the latest time of the call
			stops := p.stopsOf(c)
			if slices.ContainsFunc(stops, func(s *Stop) bool { return s.Returned.By(due) }) || p.options.Pods != nil && len(p.stopPodsBefore(c)) > 0 {
				by = due.Add(maxPause + 2*p.options.StopTimeoutSlack)
			}
			// Another call may have given up the run. A later run with its ID would be hit by a call.
			givenUp := p.earliestDeadline(c, Moment{At: by, Order: math.MaxInt}).Add(p.options.GiveUpAfter)
			isReplaced := slices.ContainsFunc(p.lists, func(l *List) bool { return l.Returned.By(by) && l.replaces(c) })
			isOver := isReplaced || t.Done.By(by) || p.closedAt().By(by) || !by.Before(givenUp) || t.usesList() && !p.staysListed(c, by)
			if isOver || slices.ContainsFunc(stops, func(s *Stop) bool {
				return s.Called.By(by) && (s.Seconds == 0 || !s.killAt().After(times.Later(due, s.Called.At).Add(minimum+times.Lag)))
			}) || p.isTrustedEnded(c.ID, Moment{At: by, Order: math.MaxInt}) {
				continue
			}
			p.violation("everyRunIsStoppedByItsDeadline", by, "no StopContainer call kills %q by %v", c.ID, p.since(due.Add(minimum)))
		}
	}
}

// isOneAttempt reports whether any request for the pod has OneAttempt: its caller repeats failed stops itself.
func (p *podHistory) isOneAttempt() bool {
	return slices.ContainsFunc(p.terminations, (*Termination).isOneAttempt) || slices.ContainsFunc(p.kills, func(u *Request) bool { return u.OneAttempt })
}

// stopPodsBefore returns the calls made before a run was known. With StopPod these may have stopped the run too.
func (p *podHistory) stopPodsBefore(c lifecycle.Container) (stops []*Stop) {
	first := p.firstKnown(c)
	for _, s := range p.stops {
		if s.Called.Before(first) {
			stops = append(stops, s)
		}
	}
	return stops
}

// hookRunsOncePerRun: the preStop hook runs at most once in each run of a container. Another hook of the same ID is
// allowed only after the run has ended: a list lacked it, or its StopContainer call succeeded and a caller had
// named it.
func (p *podHistory) hookRunsOncePerRun() {
	for i, h := range p.hooks {
		for _, c := range p.known {
			if c.ID == h.ID && c.PreStopDone && !slices.ContainsFunc(p.known, func(other lifecycle.Container) bool { return other.ID == h.ID && !isSameRun(c, other) }) {
				p.violation("hookRunsOncePerRun", h.Called.At, "the hook of %q had run for a previous agent", h.ID)
			}
		}
		for _, earlier := range p.hooks[:i] {
			if earlier.ID == h.ID && !p.mayBeNewRun(h.ID, earlier.Called, h.Called) {
				p.violation("hookRunsOncePerRun", h.Called.At, "the hook of %q has run at %v", h.ID, p.since(earlier.Called.At))
				break
			}
		}
	}
}

// mayBeNewRun reports whether the terminator could take an ID for that of a new run: between the two moments the old
// run may have ended, or the pod was forgotten.
func (p *podHistory) mayBeNewRun(id string, from, to Moment) bool {
	if forgotten := p.forgottenAt(from); forgotten.Before(to) {
		return true
	}
	if p.isNamed(id) && slices.ContainsFunc(p.stops, func(s *Stop) bool {
		return (s.ID == id || s.ID == "") && s.succeeded() && s.Returned.Before(to) && !s.Returned.At.Before(from.At)
	}) {
		return true
	}
	if slices.ContainsFunc(p.runs, func(run *Run) bool { return run.ID == id && from.Before(run.Start) && run.Start.Before(to) }) {
		return true
	}
	for _, t := range p.terminations {
		if slices.ContainsFunc(t.Requests, func(u *Request) bool { // a request that names the running containers lacks it
			return !u.UsesList && from.Before(u.Returned) && u.Called.Before(to) && !slices.ContainsFunc(u.Containers, func(c lifecycle.Container) bool { return c.ID == id })
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
	// An earlier list may show another run.
	before := p.visibleLists(from)
	return len(began) > 0 && slices.ContainsFunc(before, func(l *List) bool {
		return slices.ContainsFunc(l.Running, func(c lifecycle.Container) bool { return c.ID == id && !c.Began.Equal(began[0]) })
	})
}

// isNamed reports whether a Terminate call named the container. The terminator then lists nothing, and has to trust a
// successful StopContainer call.
func (p *podHistory) isNamed(id string) bool {
	return slices.ContainsFunc(p.terminations, func(t *Termination) bool { return t.namesID(id) })
}

// namesID reports whether a Terminate call named the container.
func (t *Termination) namesID(id string) bool {
	return slices.ContainsFunc(t.Requests, func(u *Request) bool {
		return slices.ContainsFunc(u.Containers, func(c lifecycle.Container) bool { return c.ID == id })
	})
}

// isTrustedEnded reports whether the terminator may take a container for ended without a list: a caller named it, and
// a call that stops it has succeeded before the moment.
func (p *podHistory) isTrustedEnded(id string, by Moment) bool {
	return p.isNamed(id) && slices.ContainsFunc(p.stops, func(s *Stop) bool { return (s.ID == id || s.ID == "") && s.succeeded() && s.Returned.Before(by) })
}

// hooksEndByTheDeadline: a hook starts before its container's deadline, and has returned or its context has ended by
// then, and also by Close.
func (p *podHistory) hooksEndByTheDeadline() {
	for _, h := range p.hooks {
		isOver := func(by time.Time) bool { return h.Cancelled.By(by) || h.Returned.By(by) }
		if closed := p.closedAt(); !closed.IsZero() && !isOver(times.Later(closed.At, h.Called.At)) {
			p.violation("hooksEndByTheDeadline", closed.At, "the hook of %q continues after Close", h.ID)
		}
		for _, c := range p.known {
			if c.ID != h.ID || slices.ContainsFunc(p.known, func(other lifecycle.Container) bool { return other.ID == c.ID && !isSameRun(c, other) }) {
				continue // another container, or the ID had several runs and the hook may be of any
			}
			for _, t := range p.terminations {
				since := p.includedAt(t, c)
				if since.IsZero() || t.Done.By(h.Called.At) || p.forgottenAt(t.startedAt()).Before(h.Called) {
					continue // the hook is not of this termination, which lacks the run, had ended or was forgotten
				}
				until := t.lastDeadline()
				if before := t.deadlineBefore(h.Called.At); since.At.Before(h.Called.At) && !before.IsZero() && !h.Called.At.Before(before) {
					p.violation("noHookStartsAfterTheDeadline", h.Called.At, "the hook of %q, whose deadline was %v", h.ID, p.since(before))
				} else if late := times.Later(times.Later(until, h.Called.At), since.At); !t.Done.By(late) && !isOver(late) {
					p.violation("hooksEndByTheDeadline", late, "the hook of %q, which began at %v, continues", h.ID, p.since(h.Called.At))
				}
			}
		}
	}
}

// hooksAreReportedAsTheyEnded: the result of a hook is what the hook did. One that was cancelled, or has returned at its
// deadline, has not failed. One that has returned is not abandoned, unless it took a second after its cancellation.
func (p *podHistory) hooksAreReportedAsTheyEnded() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			hooks := slices.DeleteFunc(slices.Clone(p.hooks), func(h *Hook) bool { return h.ID != c.ID })
			if len(hooks) != 1 || !t.startedAt().Before(hooks[0].Called) || t.Done.Before(hooks[0].Called) {
				continue // with several hooks, another run had this ID
			}
			h := hooks[0]
			hasReturned, wasCancelled := h.Returned.Before(t.Done), h.Cancelled.Before(h.Returned)
			isTrue := true
			switch c.Hook.Outcome { //nolint:exhaustive // a skipped hook has not run in this termination
			case lifecycle.HookCompleted:
				isTrue = hasReturned && h.Err == nil
			case lifecycle.HookFailed:
				isTrue = hasReturned && h.Err != nil && !wasCancelled && h.Returned.At.Before(t.lastDeadline())
			case lifecycle.HookCut:
				isTrue = hasReturned && (h.Err != nil || h.IsSleep)
			case lifecycle.HookAbandoned:
				isTrue = !h.Cancelled.IsZero() && !h.Returned.By(h.Cancelled.At.Add(abandonAfter-1))
			}
			if !isTrue {
				p.violation("hooksAreReportedAsTheyEnded", t.Done.At, "the hook of %q is %s", c.ID, c.Hook.Outcome)
			}
		}
	}
}

// nothingIsGivenUpEarly: a container is stuck only GiveUpAfter past its deadline, and left running only by Close. The
// exceptions are callers who try again by themselves, and a runtime that cannot list.
func (p *podHistory) nothingIsGivenUpEarly() {
	canList := !slices.ContainsFunc(p.Record.lists, func(l *List) bool { return errors.Is(l.Err, errors.ErrUnsupported) })
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			if c.Outcome == lifecycle.OutcomeLeftRunning && !p.closedAt().Before(t.Done) {
				p.violation("nothingIsGivenUpEarly", t.Done.At, "%s(%s) is %s, though nobody has called Close", c.Name, c.ID, c.Outcome)
			}
			if c.Outcome != lifecycle.OutcomeRuntimeStuck || p.isOneAttempt() || !canList || !p.forgottenAt(t.startedAt()).IsZero() {
				continue
			}
			until := t.lastDeadline()
			if c.ID != "" {
				until = p.earliestDeadline(lifecycle.Container{ID: c.ID, Began: c.Began}, t.Done)
			}
			if givenUp := until.Add(p.options.GiveUpAfter); !until.IsZero() && t.Done.At.Before(givenUp) {
				p.violation("nothingIsGivenUpEarly", t.Done.At, "%s(%s) is %s before %v", c.Name, c.ID, c.Outcome, p.since(givenUp))
			}
		}
	}
}

// sidecarsStopLast: before its deadline, a sidecar is not stopped while a container that needs it may run. A container
// may run if it is listed, may have been started since the list, or was named by the caller and not stopped.
// KillContainer ignores the order.
func (p *podHistory) sidecarsStopLast() {
	for _, s := range p.stops {
		if s.ID == "" {
			return // StopPod stops all containers, and orders them itself
		}
		for _, c := range p.candidates(s) {
			isSignalled := slices.ContainsFunc(p.stops, func(earlier *Stop) bool { return earlier.ID == s.ID && earlier.Called.Before(s.Called) })
			isKilled := slices.ContainsFunc(p.kills, func(u *Request) bool { return u.Called.Before(s.Called) && u.Containers[0].ID == c.ID })
			// Not judged: a stop by KillContainer, a repeated stop, one at or after the deadline, and one of an ID that may
			// mean several runs.
			if until := p.earliestDeadline(c, s.Called); isKilled || isSignalled || !s.Called.At.Before(until) || len(p.candidates(s)) > 1 {
				continue
			}
			for _, t := range p.terminations {
				if t.isOneAttempt() || !t.startedAt().Before(s.Called) || t.Done.Before(s.Called) || p.forgottenAt(t.startedAt()).Before(s.Called) {
					continue
				}
				if dependent := p.dependentOf(t, c, s.Called); dependent != "" {
					p.violation("sidecarsStopLast", s.Called.At, "stop(%d) of sidecar %q while %s", s.Seconds, c.ID, dependent)
				}
			}
		}
	}
}

// dependentOf looks for a container that needs the sidecar c and may run at a moment. It returns the container and why
// it counts as running, as in "ID is listed"; "" if there is none.
func (p *podHistory) dependentOf(t *Termination, c lifecycle.Container, at Moment) string {
	sidecar := specOf(t.Pod, c.Name)
	seen, usesList := p.visibleLists(at), t.firstListRequest().Before(at)
	if usesList && len(seen) > 0 {
		for _, other := range seen[0].Running {
			isInAll := !slices.ContainsFunc(seen, func(l *List) bool { return l.lacks(other) })
			if isInAll && !p.isTrustedEnded(other.ID, at) && sidecar.mustOutlive(specOf(t.Pod, other.Name)) {
				return other.ID + " is listed"
			}
		}
	}
	for _, s := range p.starts {
		if !sidecar.mustOutlive(specOf(t.Pod, s.Name)) || !s.Begun.Before(at) || !s.Begun.At.Before(at.At) {
			continue
		}
		if s.Ended.IsZero() || s.Ended.At.After(at.At) {
			return s.Name + " is being started"
		}
		// After Forget, the termination requests no lists.
		isListed := slices.ContainsFunc(seen, func(l *List) bool { return s.Ended.Before(l.Called) })
		if usesList && !isListed && !slices.ContainsFunc(p.forgets, func(u *Request) bool { return !at.Before(u.Called) }) && t.firstListRequest().Before(s.Ended) && s.Ended.At.Before(at.At) {
			return s.Name + " may have been started"
		}
	}
	if usesList {
		return ""
	}
	for _, u := range t.Requests {
		for _, other := range u.Containers {
			isStopped := slices.ContainsFunc(p.stops, func(s *Stop) bool {
				isMissed := slices.ContainsFunc(p.lists, func(l *List) bool { // KillContainer requests lists
					return s.Called.Before(l.Called) && !at.Before(l.Returned) && l.lacks(other)
				})
				return s.ID == other.ID && (s.succeeded() && !at.Before(s.Returned) || isMissed)
			})
			if u.Called.At.Before(at.At) && !isStopped && sidecar.mustOutlive(specOf(t.Pod, other.Name)) {
				return other.ID + " has not been stopped"
			}
		}
	}
	return ""
}

// noRunningContainerIsReportedEnded: a pod or a run is reported as ended only if a list proves it. The list lacks the
// run, and was requested after the call that stopped it and after the last start; or it has a later run with the
// same ID. For containers that the caller named, the success of StopContainer is the proof.
func (p *podHistory) noRunningContainerIsReportedEnded() {
	const rule = "noRunningContainerIsReportedEnded"
	for _, t := range p.terminations {
		if t.Done.IsZero() {
			continue
		}
		forgotten := p.forgottenAt(t.startedAt())
		isForgotten := !forgotten.IsZero() && !forgotten.At.After(t.Done.At)
		isEmptyForT := func(l *List) bool {
			return t.startedAt().Before(l.Called) && l.Returned.Before(t.Done) && (forgotten.IsZero() || !l.Returned.At.After(forgotten.At)) && len(l.Running) == 0
		}
		for _, c := range t.Result.Containers {
			if c.Outcome == lifecycle.OutcomeNotFound && c.ID == "" && t.usesList() && !t.IsForLateStart && !slices.ContainsFunc(p.lists, isEmptyForT) {
				p.violation(rule, t.Done.At, "%s is %s, but no list requested since is empty", c.Name, c.Outcome)
			}
			if !hasEnded(c.Outcome) || c.ID == "" || !t.usesList() && !t.namesID(c.ID) { // the request names the containers
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
			if !p.firstKnown(run).IsZero() && !isMissed && !p.isTrustedEnded(c.ID, t.Done) {
				p.violation(rule, t.Done.At, "%q is %s, but no list requested after its stop lacks it", c.ID, c.Outcome)
			}
		}
		lists := p.visibleLists(t.Done)
		if isForgotten || !t.usesList() || slices.ContainsFunc(t.Result.Containers, func(c lifecycle.ContainerResult) bool { return !hasEnded(c.Outcome) }) {
			continue
		}
		since := t.startedAt()
		for _, s := range p.starts {
			if s.Begun.Before(t.Done) && s.Ended.At.Before(t.Done.At) && since.Before(s.Ended) {
				since = s.Ended
			}
			if s.Begun.Before(t.startedAt()) && (s.Ended.IsZero() || s.Ended.At.After(t.Done.At)) && p.forgottenAt(s.Begun).IsZero() {
				p.violation(rule, t.Done.At, "the pod is %s, but %s is being started", t.Result.Outcome(), s.Name)
			}
		}
		if !t.IsForLateStart && !slices.ContainsFunc(lists, func(l *List) bool { return since.Before(l.Called) }) {
			p.violation(rule, t.Done.At, "the pod is %s, but no list was requested after %v", t.Result.Outcome(), p.since(since.At))
		}
		isEmpty := func(l *List) bool {
			return !slices.ContainsFunc(l.Running, func(c lifecycle.Container) bool { return !p.isTrustedEnded(c.ID, t.Done) })
		}
		if len(lists) > 0 && !slices.ContainsFunc(lists, isEmpty) {
			p.violation(rule, t.Done.At, "the pod is %s, but the runtime lists %s", t.Result.Outcome(), names(lists[0].Running))
		}
	}
}

// noKilledContainerIsStillListed: if KillContainer reports that the container has ended, a list that was requested
// during the call lacks the container.
func (p *podHistory) noKilledContainerIsStillListed() {
	for _, u := range p.kills {
		seen := p.visibleLists(u.Returned)
		if u.Returned.IsZero() || !hasEnded(u.Result.Outcome) || len(seen) == 0 || p.isNamed(u.Containers[0].ID) {
			continue
		}
		since, runsWithID := u.Called.At, 0
		for _, s := range p.stops {
			if s.ID == u.Containers[0].ID {
				since = times.Earlier(since, s.Called.At) // it may have joined a stop in progress
			}
		}
		for _, c := range p.known {
			if c.ID == u.Containers[0].ID {
				runsWithID++
			}
		}
		if runsWithID < 2 && !slices.ContainsFunc(p.lists, func(l *List) bool {
			return !l.Called.At.Before(since) && l.Returned.Before(u.Returned) && !slices.ContainsFunc(l.Running, u.matches)
		}) {
			p.violation("noKilledContainerIsStillListed", u.Returned.At, "%q is %s", u.Containers[0].ID, u.Result.Outcome)
		}
	}
}

// killedIsNotGraceful: a run that the runtime has killed is not reported as Graceful. It may be if the runtime had
// wrongly reported its end before the kill: as the result of StopContainer, or in the last list that the
// termination saw.
func (p *podHistory) killedIsNotGraceful() {
	for _, t := range p.terminations {
		for _, run := range p.runs {
			result := t.result(run.Container)
			wasReportedEnded := p.wasUnlisted(t, run) || slices.ContainsFunc(p.stopsOf(run.Container), func(s *Stop) bool {
				return s.succeeded() && s.Returned.Before(run.Exit)
			})
			isOfUnit := slices.ContainsFunc(p.stops, func(s *Stop) bool { // killed by a StopPod for other containers
				return s.ID == "" && (run.Exit.Before(s.Called) || s.Seconds > 0 && s.Called.At.Equal(run.Exit.At))
			})
			isReused := slices.ContainsFunc(p.runs, func(other *Run) bool { return other != run && other.ID == run.ID })
			isGraceful := result != nil && result.Outcome == lifecycle.OutcomeGraceful
			wasKilledByT := run.EndedBy == "KILL" && t.startedAt().Before(run.Exit) && run.Exit.Before(t.Done)
			isExcused := p.isNamed(run.ID) || wasReportedEnded || isReused || isOfUnit
			if isGraceful && wasKilledByT && !isExcused {
				p.violation("killedIsNotGraceful", run.Exit.At, "%q", run.ID)
			}
		}
	}
}

// wasUnlisted reports whether the termination had to believe that the run had ended before it did: a list lacked the
// run, and no list that the termination still saw had it again. After Forget the termination sees no new lists.
func (p *podHistory) wasUnlisted(t *Termination, run *Run) (unlisted bool) {
	forgotten, listed := p.forgottenAt(t.startedAt()), p.firstListed(run.Container)
	if !forgotten.Before(run.Exit) {
		return false
	}
	for _, l := range p.lists {
		switch {
		case !l.Returned.Before(run.Exit):
			return unlisted
		case l.lacks(run.Container):
			unlisted = unlisted || listed.Before(l.Called)
		case l.Returned.Before(forgotten):
			unlisted = false
		}
	}
	return unlisted
}

// everyListedRunHasAResult: each run that a termination had to stop has a result of its own, even if it shares its ID
// with another run.
func (p *podHistory) everyListedRunHasAResult() {
	for _, t := range p.terminations {
		for _, c := range p.known {
			if !t.Done.IsZero() && !p.includedAt(t, c).IsZero() && t.result(c) == nil {
				p.violation("everyListedRunHasAResult", t.Done.At, "%q", c.ID)
			}
		}
	}
}

// failedStopsAreRepeated: while a run is not known to have ended, StopContainer is called again, each time after a
// pause and a list, until GiveUpAfter is over.
func (p *podHistory) failedStopsAreRepeated() {
	for _, t := range p.terminations {
		if p.isOneAttempt() || !t.usesList() {
			continue
		}
		for _, c := range p.known {
			stops := p.stopsOf(c)
			if p.includedAt(t, c).IsZero() || len(stops) == 0 {
				continue
			}
			if p.isTrustedEnded(c.ID, t.Done) {
				continue
			}
			last, unanswered := stops[len(stops)-1], 0
			for _, s := range stops {
				if s.Returned.IsZero() || s.Returned.At.After(last.Called.At) { // a hanging call returns when its stop ends
					unanswered++
				}
			}
			repliedBy := last.Returned.At
			if timedOutAt := last.killAt().Add(p.options.StopTimeoutSlack << min(unanswered+1, 10)); last.Returned.IsZero() || timedOutAt.Before(repliedBy) {
				repliedBy = timedOutAt
			}
			again := repliedBy.Add(maxPause + 2*p.options.StopTimeoutSlack)
			until := p.earliestDeadline(c, last.Called)
			if last.ID == "" {
				until = p.earliestKill(last)
			}
			givenUp := times.Later(until, stops[0].Called.At).Add(p.options.GiveUpAfter)
			if t.Done.By(again) || !again.Before(givenUp) || p.closedAt().By(again) {
				continue
			}
			if !slices.ContainsFunc(p.lists, func(l *List) bool { return !l.Called.At.Before(last.Called.At) && l.lacks(c) }) {
				p.violation("failedStopsAreRepeated", again, "%q was last stopped at %v, and not again", c.ID, p.since(last.Called.At))
			}
		}
	}
}

// noStartAfterTermination: nothing is started after a termination has begun. The exception are sidecars, which may
// restart while the termination is in progress (KEP-4438).
func (p *podHistory) noStartAfterTermination() {
	for _, s := range p.starts {
		isUnderWay := slices.ContainsFunc(p.terminations, func(t *Termination) bool {
			return t.startedAt().Before(s.Begun) && !t.Done.Before(s.Called) && s.Begun.At.Before(t.deadlineBefore(s.Begun.At.Add(1)))
		})
		for _, t := range p.terminations {
			if t.IsForLateStart || s.Begun.IsZero() || !t.Requests[0].Returned.Before(s.Called) || p.forgottenAt(t.startedAt()).Before(s.Begun) {
				continue
			}
			if specOf(t.Pod, s.Name).kind != sidecar || !isUnderWay {
				p.violation("noStartAfterTermination", s.Begun.At, "%s is started, the pod was terminated at %v", s.Name, p.since(t.startedAt().At))
			}
		}
	}
}

// lateStartsAreStopped: if a start ends after the pod was terminated, what it has left running is stopped before Start
// returns. A termination that is still in progress may do that instead.
func (p *podHistory) lateStartsAreStopped() {
	for _, s := range p.starts {
		isCovered := slices.ContainsFunc(p.terminations, func(t *Termination) bool {
			return !t.IsForLateStart && t.startedAt().Before(s.Returned) && !t.Done.Before(s.Ended)
		})
		isCovered = isCovered || slices.ContainsFunc(p.starts, func(other *Start) bool { // stopped by the termination for another late start
			return other != s && other.Ended.Before(s.Ended) && !other.Returned.Before(s.Ended)
		})
		if isCovered || errors.Is(s.Err, errDidNotReturn) || s.Ended.IsZero() || s.Returned.IsZero() || p.closedAt().Before(s.Returned) {
			continue
		}
		for _, t := range p.terminations {
			// Only starts in progress when the termination began.
			if t.IsForLateStart || !t.usesList() || !s.Begun.Before(t.startedAt()) || s.Ended.Before(t.startedAt()) || !p.forgottenAt(t.startedAt()).IsZero() {
				continue
			}
			isListRequested := slices.ContainsFunc(p.lists, func(l *List) bool { return s.Ended.Before(l.Called) && l.Returned.Before(s.Returned) })
			if isStuck := s.Result != nil && slices.ContainsFunc(s.Result.Containers, func(c lifecycle.ContainerResult) bool { return !hasEnded(c.Outcome) }); !isListRequested && !isStuck {
				p.violation("lateStartsAreStopped", s.Returned.At, "Start(%s) returned, but no list was requested", s.Name)
			}
			for _, l := range p.lists {
				if !s.Ended.Before(l.Called) || !l.Returned.Before(s.Returned) {
					continue
				}
				for _, c := range l.Running {
					if len(p.stopsOf(c)) == 0 {
						p.violation("lateStartsAreStopped", s.Returned.At, "Start(%s) returned, but %q was not stopped", s.Name, c.ID)
					}
				}
			}
		}
	}
}

// failuresAreReported: a run that was forced, is stuck or was left running has an error in its result. Failures of the
// runtime are logged.
func (p *podHistory) failuresAreReported() {
	for _, t := range p.terminations {
		for _, c := range t.Result.Containers {
			if c.Err == nil && (c.Outcome == lifecycle.OutcomeForced || !hasEnded(c.Outcome)) {
				p.violation("failuresAreReported", t.Done.At, "%s(%s) is %s without an error", c.Name, c.ID, c.Outcome)
			}
		}
	}
	for i, s := range p.stops {
		if len(p.logs) == 0 || s.Returned.IsZero() || s.succeeded() || errors.Is(s.Err, context.Canceled) {
			continue
		}
		for _, again := range p.stops[i+1:] {
			if again.ID != s.ID || !s.Returned.Before(again.Called) || s.Returned.At.Equal(again.Called.At) {
				continue
			}
			hasSucceeded := slices.ContainsFunc(p.stops, func(other *Stop) bool { // a concurrent call, so that nobody waited for s
				return other.ID == s.ID && other.succeeded() && s.Called.Before(other.Returned) && other.Returned.Before(s.Returned)
			})
			if hasSucceeded {
				break
			}
			if !slices.ContainsFunc(p.logs, func(line LogEntry) bool {
				return line.IsError && line.Before(again.Called) && strings.Contains(line.Text, p.key) && strings.Contains(line.Text, s.ID)
			}) {
				p.violation("failuresAreReported", again.Called.At, "stop(%d) of %q failed, which was not logged", s.Seconds, s.ID)
			}
			break
		}
	}
	isLogged := slices.ContainsFunc(p.logs, func(s LogEntry) bool { return s.IsError })
	for _, l := range p.Record.lists {
		isCancelled := p.closedAt().Before(l.Returned) && (errors.Is(l.Err, context.Canceled) || errors.Is(l.Err, lifecycle.CauseTerminatorClosed))
		isFailure := l.Err != nil && !isCancelled && !errors.Is(l.Err, errors.ErrUnsupported)
		if l.Pod == p.key && isFailure && len(p.logs) > 0 && !isLogged {
			p.violation("failuresAreReported", l.Returned.At, "a list failed, and nothing was logged")
		}
	}
}

// hasKillContainer reports whether a KillContainer call before the moment may mean the run.
func (p *podHistory) hasKillContainer(c lifecycle.Container, before Moment) bool {
	return slices.ContainsFunc(p.kills, func(u *Request) bool { return u.matches(c) && u.Called.Before(before) })
}

// nothingHangs: each call ends by GiveUpAfter past the deadline. For a run that was listed only after the deadline, the
// time counts from the first call that stops it. Close ends all calls at once.
func (p *podHistory) nothingHangs() {
	slack := maxPause + 4*p.options.StopTimeoutSlack + cancelSlack
	// lastAttempt returns the latest time at which a KillContainer call has begun to stop the run: its first
	// StopContainer call. GiveUpAfter counts from there again.
	lastAttempt := func(c lifecycle.Container) (first time.Time) {
		for _, u := range p.kills {
			for _, s := range p.stops {
				if u.matches(c) && s.ID == c.ID && u.Called.Before(s.Called) {
					first = times.Later(first, s.Called.At)
					break
				}
			}
		}
		return first
	}
	// included returns when the call first included a run; zero if never. Earlier stops of the run were
	// another attempt, with its own GiveUpAfter.
	assertEnds := func(what string, until, lastRequest time.Time, isShared bool, included func(lifecycle.Container) Moment, called, ended Moment) {
		if ended.IsZero() {
			ended.At = time.Now()
		}
		for _, t := range p.terminations {
			for _, u := range t.Requests {
				if isShared && u.Called.Before(ended) {
					until = times.Later(until, u.Deadline)
				}
			}
		}
		for _, c := range p.known {
			since := included(c)
			if since.IsZero() {
				continue
			}
			until = times.Later(until, lastAttempt(c))
			for _, s := range p.stopsOf(c) {
				if since.Before(s.Called) && s.Called.Before(ended) {
					until = times.Later(until, s.Called.At)
					if !isShared {
						break // only the first call counts
					}
				}
			}
		}
		end := times.Later(until.Add(p.options.GiveUpAfter), lastRequest).Add(slack)
		if closed := p.closedAt(); !closed.IsZero() {
			end = times.Earlier(end, times.Later(closed.At, called.At).Add(cancelSlack))
		}
		if ended.At.After(end) {
			p.violation("nothingHangs", end, "%s, called at %v, has not ended", what, p.since(called.At))
		}
	}
	for _, t := range p.terminations {
		lastRequest := t.startedAt().At
		for _, u := range t.Requests {
			lastRequest = times.Later(lastRequest, u.Called.At)
		}
		// Callers that retry, and the next termination of a forgotten pod, stop the containers again.
		isShared := p.isOneAttempt() || !p.forgottenAt(t.startedAt()).IsZero() || p.options.Pods != nil
		assertEnds("the termination", times.Later(t.lastDeadline(), t.startedAt().At), lastRequest, isShared, func(c lifecycle.Container) Moment {
			since := p.includedAt(t, c)
			if since.IsZero() && p.hasKillContainer(c, t.Done) {
				since = t.startedAt()
			}
			return since
		}, t.startedAt(), t.Done)
	}
	for _, u := range p.kills {
		if u.IsPostStart {
			continue
		}
		assertEnds("KillContainer", times.Later(u.Deadline, u.Called.At), u.Called.At, p.isOneAttempt() || len(p.forgets) > 0, func(c lifecycle.Container) Moment {
			if !u.matches(c) {
				return Moment{}
			}
			return u.Called
		}, u.Called, u.Returned)
	}
}
