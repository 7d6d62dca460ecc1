//go:build go1.25

package lifecycle_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// hasEnded reports whether an outcome says that a container has ended.
func hasEnded(o lifecycle.Outcome) bool {
	return o != "" && o != lifecycle.RuntimeStuck && o != lifecycle.LeftRunning
}

func (j *judgedRun) wrong(format string, args ...any) {
	j.mu.Lock()
	defer j.mu.Unlock()
	j.verdict = append(j.verdict, fmt.Sprintf(format, args...))
}

// hookEnded is OnHook.
func (j *judgedRun) hookEnded(pod *v1.Pod, c lifecycle.Container, r lifecycle.HookResult) {
	if r.Outcome == "" || r.Outcome == lifecycle.HookSkipped || j.sleepers[pod.Name+"/"+c.Name] {
		return
	}
	j.mu.Lock()
	defer j.mu.Unlock()
	j.told[c.ID]++
}

func (j *judgedRun) anyWrongly() bool {
	return slices.ContainsFunc(j.real, func(c *realContainer) bool { return c.watch == watchedWrongly })
}

// judge judges the log.
func (j *judgedRun) judge() []string {
	for _, a := range j.calls {
		if a.kills {
			j.judgeEnds(a)
			j.judgeDuration(a)
		}
	}
	j.judgeStarts()
	j.judgeHooks()
	j.judgeStops()
	for _, c := range j.real {
		j.judgeTime(c)
	}
	return j.verdict
}

// judgeEnds judges that what is said to have ended does not run.
func (j *judgedRun) judgeEnds(a *asked) {
	if a.container != nil {
		r := a.result.Containers[0]
		for _, c := range j.real {
			if c.id == r.ID && hasEnded(r.Outcome) && c.runsAt(a.called) && c.runsAt(a.returned) && c.watch != watchedWrongly && !j.isHidden(a, c) {
				j.wrong("KillContainer says at %v that %s is %s, and it runs", j.since(a.returned), c.id, r.Outcome)
			}
		}
		return
	}
	if !hasEnded(a.result.Outcome()) {
		return
	}
	for _, s := range j.starts {
		if s.pod == a.pod && s.begun.before(a.returned) && a.returned.before(s.returned) && !j.forgotten(a.pod, s.begun, a) {
			j.wrong("Kill of %v says at %v that %s is %s, and the start of %s is under way", j.since(a.called), j.since(a.returned), a.pod, a.result.Outcome(), s.id)
		}
	}
	for _, c := range j.real {
		if c.pod == a.pod && c.runsAt(a.returned) && c.watch != watchedWrongly && !j.isHidden(a, c) && j.knows(a, c) {
			j.wrong("Kill of %v says at %v that %s is %s, and %s runs since %v", j.since(a.called), j.since(a.returned), a.pod, a.result.Outcome(), c.id, j.since(c.began))
		}
	}
}

// isHidden reports whether nothing told a kill a container, of which no Start has returned, from the
// one before it: it has its ID, or is of the unit, and began while that was being stopped, or before
// a watcher that is late has told its end.
func (j *judgedRun) isHidden(a *asked, c *realContainer) bool {
	isKnown := c.start != nil && (a.container == nil || c.start.returned.before(a.called))
	return !isKnown && slices.ContainsFunc(j.stops, func(s *stopCall) bool {
		const late = 2500 * time.Millisecond
		return (s.id == c.id || s.id == c.pod) && !c.began.at.Before(s.called.at) && (s.returned.seq == 0 || !c.began.at.After(s.returned.at.Add(late)))
	})
}

// forgotten reports whether what was known since a moment may be forgotten when a call ends.
func (j *judgedRun) forgotten(pod string, since moment, a *asked) bool {
	return slices.ContainsFunc(j.forgets, func(f *judgedForget) bool {
		return f.pod == pod && (since.before(f.returned) || a.called.before(f.returned)) && f.called.before(a.returned)
	})
}

// judgeStarts judges that no start is called after the pod was terminated, until Forget; but
// sidecars may be started again while it is being terminated.
func (j *judgedRun) judgeStarts() {
	for _, s := range j.starts {
		if slices.ContainsFunc(j.calls, func(a *asked) bool { return a.called.before(s.begun) && j.goesOn(a, s.pod, s.begun) }) {
			continue
		}
		for _, a := range j.calls {
			// Of a kill and a start at the same moment either may be first.
			if a.kills && a.container == nil && a.pod == s.pod && a.returned.seq != 0 && a.returned.at.Before(s.begun.at) && a.result.Outcome() != "" &&
				!errors.Is(a.err, lifecycle.ErrForgotten) && !j.forgotten(s.pod, a.called, &asked{called: a.called, returned: s.begun}) {
				j.wrong("%s is started at %v, after the termination of %v", s.id, j.since(s.begun), j.since(a.called))
			}
		}
	}
}

// goesOn reports whether the termination that a call has begun for a pod may be under way at a
// moment after it: also if the call has not waited for its end, and no later one has.
func (j *judgedRun) goesOn(a *asked, pod string, at moment) bool {
	kills := func(a *asked) bool { return a.kills && a.container == nil && a.pod == pod }
	if !kills(a) || at.before(a.returned) {
		return kills(a)
	}
	isLeft := func(a *asked) bool { return errors.As(a.err, new(*lifecycle.StillRunningError)) }
	return isLeft(a) && !slices.ContainsFunc(j.calls, func(later *asked) bool {
		return kills(later) && a.called.before(later.called) && later.returned.before(at) && !isLeft(later)
	})
}

// knows reports whether a kill of a pod has to know of a container that runs when it returns.
func (j *judgedRun) knows(a *asked, c *realContainer) bool {
	if c.runsAt(a.called) && (slices.Contains(a.named, c.id) || len(a.named) == 0 && !a.complete && slices.Contains(a.shown, c.id)) {
		return true
	}
	s := c.start
	known := s != nil && s.begun.before(a.returned) && !j.forgotten(a.pod, s.begun, a)
	for _, f := range j.forgets { // a start, or a stop, that was under way belongs to the next life
		if f.pod == a.pod && f.returned.before(a.called) && s != nil && s.begun.before(f.called) && f.returned.before(s.returned) && !j.forgotten(a.pod, f.returned, a) {
			known = true
		}
	}
	for _, q := range j.calls {
		refused := errors.Is(q.err, lifecycle.ErrForgotten) || errors.Is(q.err, lifecycle.ErrUnit) || !q.kills && errors.Is(q.err, lifecycle.AgentStopping)
		isBefore := q.called.at.Before(a.called.at) || q.returned.before(a.called) // of two at the same moment either may be first
		if refused || q.pod != a.pod || !isBefore || j.forgotten(a.pod, q.called, a) {
			continue
		}
		if slices.Contains(q.named, c.id) || slices.Contains(q.shown, c.id) {
			known = known || c.runsAt(q.called)
		}
	}
	return known && !j.disproved(a, c) && !j.isCrowded(c.pod, c.name)
}

// disproved reports whether a wrong Complete list, or a status, has said that a container
// does not run.
func (j *judgedRun) disproved(a *asked, c *realContainer) bool {
	s := c.start
	return slices.ContainsFunc(j.calls, func(q *asked) bool {
		// Of a list and of the end of a start at the same moment either may be first.
		isStarted := func(at moment) bool {
			return s != nil && (at.at.Before(s.returned.at) || s.gave != "" && !j.forgotten(q.pod, s.begun, q))
		}
		if q.pod != a.pod || !q.called.before(a.returned) || q.container != nil {
			return false
		}
		if q.complete && !slices.Contains(q.named, c.id) && !isStarted(q.called) && (c.runsAt(q.called) || q == a) {
			return true
		}
		proven := q.proven[c.name]
		return s != nil && s.gave == "" && proven.After(s.begun.at.Truncate(time.Second)) && !slices.Contains(q.shown, c.id)
	})
}

// judgeDuration judges that a kill has come back in time.
func (j *judgedRun) judgeDuration(a *asked) {
	longest := int64(0)
	for _, g := range j.grants {
		longest = max(longest, g.seconds)
	}
	most := time.Duration(longest+2)*time.Second + 20*time.Second
	if j.unit { // what was known later is stopped after the stop that is under way
		most *= 2
	}
	if took := a.returned.at.Sub(a.called.at); took > most {
		j.wrong("a kill of %v took %v", j.since(a.called), took)
	}
}

// judgeHooks judges that no hook runs twice for one start, and that each is told once.
func (j *judgedRun) judgeHooks() {
	runs := map[string]int{} // "" is the ID of a container of a unit that has none
	for i, h := range j.hooks {
		if !j.sleepers[h.pod+"/"+h.name] { // an ID may be named with the name of another container
			runs[h.id]++
		}
		if j.isAfterClose(h.called) {
			j.wrong("the hook of %s is called after Close", h.id)
		}
		if !slices.ContainsFunc(j.grantsFor(h.pod, h.name, h.id, h.called), func(g judgedGrant) bool { return g.end().Equal(h.deadline) }) {
			j.wrong("the hook of %s at %v has the deadline %v, which nobody gave", h.id, j.since(h.called), h.deadline.Sub(j.began))
		}
		for _, former := range j.hooks[:i] {
			if h.id != "" && former.id == h.id && former.run == h.run && !j.mayRunAgain(former, h) {
				j.wrong("the hook of %s runs at %v and again at %v", h.id, j.since(former.called), j.since(h.called))
			}
		}
	}
	for _, h := range j.hooks {
		if h.id != "" && j.told[h.id] != runs[h.id] {
			j.wrong("OnHook was told %d times of the %d runs of the hook of %s", j.told[h.id], runs[h.id], h.id)
			j.told[h.id] = runs[h.id]
		}
	}
}

// isCrowded reports whether a slot had more attempts than are kept.
func (j *judgedRun) isCrowded(pod, name string) bool {
	ids, starts := map[string]bool{"never": true}, 0
	for _, c := range j.real {
		if c.pod == pod && c.name == name {
			ids[c.id] = true
		}
	}
	for _, s := range j.starts {
		if s.pod == pod && s.name == name {
			ids[s.id] = true
			starts++
		}
	}
	return starts+len(ids) > 8
}

// mayRunAgain reports whether the pod was forgotten between two hooks, and what was under way
// then, which belongs to the next life, had ended.
func (j *judgedRun) mayRunAgain(former, h *hookCall) bool {
	isRestart := func(a *asked) bool { // it names the ID early, and a status says that it was started since
		_, slot, _ := strings.Cut(h.id, "/")
		name, _, _ := strings.Cut(slot, "-") // of its status
		return a.called.before(h.called) && slices.Contains(a.shown, h.id) && a.proven[name].After(former.called.at)
	}
	isOfTwoStarts := slices.ContainsFunc(j.starts, func(s *startCall) bool { // at the same time, with one ID
		return slices.ContainsFunc(j.starts, func(other *startCall) bool {
			return other != s && s.id == h.id && other.id == h.id && s.begun.before(other.returned) && other.begun.before(s.returned)
		})
	})
	if j.isCrowded(h.pod, h.name) || isOfTwoStarts || slices.ContainsFunc(j.calls, isRestart) {
		return true
	}
	underWay := slices.ContainsFunc(j.calls, func(a *asked) bool {
		return a.pod == h.pod && a.kills && (a.container == nil || a.container.ID == h.id) && a.err == nil && a.called.before(former.called) && h.called.before(a.returned)
	}) && !j.hadEnded(h)
	return !underWay && slices.ContainsFunc(j.forgets, func(f *judgedForget) bool {
		if f.pod != h.pod || !f.called.before(h.called) {
			return false
		}
		return former.called.before(f.returned) || slices.ContainsFunc(j.calls, func(a *asked) bool { // of the forgotten life
			goesOn := former.called.before(a.returned) || errors.As(a.err, new(*lifecycle.StillRunningError))
			return a.pod == h.pod && a.kills && a.called.before(f.returned) && goesOn && a.returned.before(h.called)
		})
	})
}

// hadEnded reports whether a container had ended when its hook was called. One that there never was
// had when a stop had said so.
func (j *judgedRun) hadEnded(h *hookCall) bool {
	isReal := func(c *realContainer) bool { return c.id == h.id }
	if slices.ContainsFunc(j.real, isReal) {
		return slices.ContainsFunc(j.real, func(c *realContainer) bool { return isReal(c) && c.ended.before(h.called) })
	}
	return slices.ContainsFunc(j.stops, func(s *stopCall) bool {
		return (s.id == h.id || s.id == h.pod) && s.returned.before(h.called)
	})
}

// isAfterClose reports whether a call was made after Close was called.
func (j *judgedRun) isAfterClose(called moment) bool {
	return j.closed.before(called) || j.closing.seq != 0 && called.at.After(j.closing.at)
}

func (g judgedGrant) end() time.Time {
	return g.since.Add(time.Duration(max(g.seconds, 0)) * time.Second)
}

// timeout is what StopContainer gets under a grace period: what is left of it, at least the 2
// seconds of the floor as far as they are before the end and 2 seconds. lag is forgiven.
func (g judgedGrant) timeout(at time.Time, lag time.Duration) int64 {
	left := max(g.seconds, 0) - int64(at.Sub(g.since)/time.Second)
	untilEnd := int64(max(g.end().Add(2*time.Second+lag).Sub(at), 0) / time.Second)
	return min(max(left, 2), untilEnd)
}

// grantsFor are the grace periods that may apply to a container.
func (j *judgedRun) grantsFor(pod, name, id string, at moment) (grants []judgedGrant) {
	for _, g := range j.grants {
		if g.pod == pod && g.seq < at.seq && (g.name == "" || g.name == name || g.id == id) {
			grants = append(grants, g)
		}
	}
	return grants
}

// judgeStops judges that no two stops of one container are under way but a shorter one over a
// longer, and that each has a timeout which somebody gave.
func (j *judgedRun) judgeStops() {
	for i, stop := range j.stops {
		silent, runs := false, slices.ContainsFunc(j.real, func(c *realContainer) bool {
			return (c.id == stop.id || c.pod == stop.id) && c.runsAt(stop.called)
		})
		for _, former := range j.stops[:i] {
			if former.id != stop.id || !stop.called.before(former.returned) || !runs || former.returned.at.Equal(stop.called.at) {
				continue // one that returns at the same moment may have been cancelled before
			}
			end := former.called.at.Add(time.Duration(former.seconds) * time.Second)
			silence := !stop.called.at.Before(end.Add(2 * time.Second))
			silent = silent || silence
			cancelled := !former.cancelled.IsZero() && !stop.called.at.Before(former.cancelled)
			crossed := former.called.at.Equal(stop.called.at) && former.seconds < stop.seconds // they were made in the other order
			if !silence && !cancelled && !crossed && stop.seconds >= former.seconds && !stop.called.at.Add(time.Duration(stop.seconds)*time.Second).Before(end) {
				j.wrong("%s is stopped at %v with %d s while a stop of %v with %d s is under way",
					stop.id, j.since(stop.called), stop.seconds, j.since(former.called), former.seconds)
			}
		}
		if j.isAfterClose(stop.called) {
			j.wrong("%s is stopped after Close", stop.id)
		}
		j.judgeTimeout(i, stop, silent)
	}
}

func (j *judgedRun) judgeTimeout(i int, stop *stopCall, silent bool) {
	pod, slot, alone := strings.Cut(stop.id, "/")
	name, _, _ := strings.Cut(slot, "-")
	if alone == j.unit {
		j.wrong("%s is stopped, unit=%t", stop.id, j.unit)
	}
	if stop.seconds == 0 && (silent || slices.ContainsFunc(j.stops[:i], func(former *stopCall) bool { return former.id == stop.id && former.fault >= hangs })) {
		return // it overtakes one that was silent
	}
	for _, g := range j.grantsFor(pod, name, stop.id, stop.called) {
		if stop.seconds == g.timeout(stop.called.at, 0) || stop.seconds == g.timeout(stop.called.at, 100*time.Millisecond) {
			return
		}
	}
	for _, s := range j.starts { // one that came too late is stopped at once
		if (s.id == stop.id || !alone && s.pod == pod) && stop.seconds <= 2 && s.returned.before(stop.called) {
			return
		}
	}
	j.wrong("%s is stopped at %v with %d s, which nobody gave", stop.id, j.since(stop.called), stop.seconds)
}

// judgeTime judges that a container had the time that it was given, and no more.
func (j *judgedRun) judgeTime(c *realContainer) {
	if c.termAt.IsZero() || c.faulty || j.unit {
		return
	}
	earliest := time.Time{}
	for _, g := range j.grantsFor(c.pod, c.name, c.id, c.ended) {
		if earliest.IsZero() || g.end().Before(earliest) {
			earliest = g.end()
		}
	}
	late := c.start != nil && !c.start.returned.at.Before(earliest)
	if c.killed && c.ended.at.Before(earliest) && !late {
		j.wrong("%s was killed at %v, before %v", c.id, j.since(c.ended), earliest.Sub(j.began))
	}
	for _, a := range j.calls {
		end := a.called.at.Add(time.Duration(a.seconds+2) * time.Second)
		past := c.ended.seq == 0 || c.ended.at.After(end)
		if a.limits && past && c.runsAt(a.called) && slices.Contains(a.named, c.id) && a.err == nil && c.watch != watchedWrongly && (j.closing.seq == 0 || j.closing.at.After(end)) {
			j.wrong("%s ran on after %v, to which a kill of %v has limited it", c.id, end.Sub(j.began), j.since(a.called))
		}
	}
}

func (j *judgedRun) since(m moment) time.Duration { return m.at.Sub(j.began) }

// log is the log of a run, for people.
func (j *judgedRun) log() string {
	type line struct {
		moment
		text string
	}
	var lines []line
	add := func(m moment, format string, args ...any) {
		if m.seq != 0 {
			lines = append(lines, line{m, fmt.Sprintf(format, args...)})
		}
	}
	for _, a := range j.calls {
		what := fmt.Sprintf("%s container=%+v named=%q shown=%q complete=%t seconds=%d kills=%t", a.pod, a.container, a.named, a.shown, a.complete, a.seconds, a.kills)
		add(a.called, "asked %s", what)
		add(a.returned, "  answer to %s: %v %+v", what, a.err, a.result)
	}
	for _, s := range j.starts {
		add(s.begun, "start %s %+v", s.id, s.plan)
		add(s.returned, "  start %s returns %q", s.id, s.gave)
	}
	for _, c := range j.real {
		add(c.began, "%s runs, watch=%d obeys=%v", c.id, c.watch, c.obeys)
		add(c.ended, "%s has ended, killed=%t", c.id, c.killed)
	}
	for _, s := range j.stops {
		add(s.called, "stop %s %d s, fault %d", s.id, s.seconds, s.fault)
		add(s.returned, "  stop %s of %v returns", s.id, j.since(s.called))
	}
	for _, h := range j.hooks {
		add(h.called, "hook %s until %v", h.id, h.deadline.Sub(j.began))
	}
	for _, g := range j.grants {
		add(moment{g.seq, g.since}, "grant %s %s %d s", g.pod, g.name, g.seconds)
	}
	for _, f := range j.forgets {
		add(f.called, "forget %s", f.pod)
	}
	add(j.closing, "close")
	slices.SortFunc(lines, func(a, b line) int { return a.seq - b.seq })
	var b strings.Builder
	for _, l := range lines {
		fmt.Fprintf(&b, "%4d %v %s\n", l.seq, j.since(l.moment), l.text)
	}
	return b.String()
}
