package judge

import (
	"slices"
	"time"

	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/lifecycle"
)

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
