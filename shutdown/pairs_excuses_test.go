//go:build linux && go1.25

package shutdown_test

import (
	"slices"
	"strings"
	"time"
)

// pairsNames are the names of the calls that hang, for Run to tell; the pod follows.
var pairsNames = map[string]string{
	"list": "Options.Pods", "kill": "Options.Killer", "publish": "Options.Reporter.PublishNode", "flush": "Options.Reporter.FlushPod",
	"mark": "Options.Reporter.MarkNotReady", "restore": "Options.Reporter.RestoreReadiness", "release": "Options.OnRelease",
	"report": "Options.OnReport", "plan": "Options.OnPlan", "hold": "Options.Hold", "prepare": "Options.Prepare",
	"connect": "Options.Source: Connect", "pending": "Options.Source: Pending", "inhibit": "Options.Source: Inhibit",
	"close": "Options.Source: Close", "delay": "Options.Source: RequestDelay", "policy": "Options.Policy", "volumes": "Options.Volumes", "unlock": "the closing of the shutdown inhibitor",
}

// judgeRun judges the end of Run: it comes in time, and its error names exactly the calls that hang. The
// mutex is held.
func (a *pairsAgent) judgeRun() {
	until := a.stopping
	if s := a.table.current; s != nil && a.table.state == on && s.end.After(until) {
		until = s.end
	}
	if late := a.ranUntil.Sub(until.Add(10 * time.Second)); late > 1100*time.Millisecond {
		a.violate("Run returns %v too late", late)
	}
	text := ""
	if a.err != nil {
		text = a.err.Error()
	}
	all := text // TerminateAll names what it has called, and whom the API server is not told of
	if a.termination != nil && a.termination.err != nil {
		all += a.termination.err.Error()
	}
	hanging := map[string]bool{}
	for kind, name := range pairsNames {
		for _, s := range a.spoilt(a, kind) {
			if s.of != "" {
				name = pairsNames[kind] + " for pod default/" + s.of
			}
			if s.over.IsZero() {
				if hanging[name] = true; !strings.Contains(all, name) && !strings.Contains(all, "among them") {
					a.violate("Run does not name %s, which hangs: %q", name, text)
				}
			}
		}
	}
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		_, names, calls := strings.Cut(line, "not returned")
		names = strings.TrimPrefix(strings.TrimPrefix(names, ", among them "), ": ")
		switch {
		case calls && !slices.ContainsFunc(strings.Split(names, ", "), func(name string) bool { return !hanging[name] }):
		case strings.Contains(line, "for the writing of") && slices.ContainsFunc(append(a.spoilt(a, "write"), a.spoilt(a, "times")...), (*pairsSpoilt).hangs):
		case strings.Contains(line, "failed to release the shutdown inhibitor") && len(a.spoilt(a, "unlock")) > 0:
		case strings.Contains(line, "failed to close the session") && len(a.spoilt(a, "close")) > 0:
		default:
			a.violate("Run: %s", line)
		}
	}
}

func (s *pairsSpoilt) hangs() bool { return s.over.IsZero() }

// hangsNow reports whether a call of a kind, for a pod or whatever else, hangs in an agent that was not
// killed.
func (w *pairsWorld) hangsNow(kind, of string) bool {
	return slices.ContainsFunc(w.spoilt(nil, kind), func(s *pairsSpoilt) bool { return s.hangs() && s.of == of && !s.agent.isDead() })
}

// life returns when the process has ended, or now. What it has come to know since a write of the record
// went wrong counts only if it has lived on long enough to write it again.
func (a *pairsAgent) life() time.Time {
	end := a.stopping
	if end.IsZero() {
		end = a.died
	}
	if end.IsZero() {
		return time.Now()
	}
	known, excused := end, false
	var since, former time.Time
	for _, s := range slices.SortedFunc(slices.Values(a.spoilt(a, "write")), func(s, o *pairsSpoilt) int { return s.at.Compare(o.at) }) {
		over := s.began.Add(s.lasts)
		if s.over.After(over) {
			over = s.over
		}
		excused = excused || s.hangs() || end.Sub(over) < pairsRewrite
		if s.at.Sub(former) > pairsRewrite || !a.wrote.Before(former) { // else nothing was written since the fault before
			since = s.at
		}
		former = over
		if s.hangs() && a.wrote.After(since) {
			since = a.wrote
		}
		if (s.hangs() || !since.Before(a.wrote)) && since.Before(known) {
			known = since
		}
	}
	if excused {
		return known
	}
	return end
}

// pairsRewrite is how long after a fault of the disk the record is written again at the latest.
const pairsRewrite = 700 * time.Millisecond

// writeFails reports whether a write of the record fails now. The mutex is held.
func (a *pairsAgent) writeFails() bool {
	return slices.ContainsFunc(a.spoilt(a, "write"), func(s *pairsSpoilt) bool { return s.hangs() || time.Since(s.over) < time.Second })
}

// lastList is when a release has to know the pods: now, or when they were listed last if the report is
// written since, or a status or OnRelease waited for, which takes longer than it should. The mutex is held.
func (a *pairsAgent) lastList() time.Time {
	for _, kind := range []string{"flush", "write", "release"} {
		for _, s := range a.spoilt(a, kind) {
			if s.hangs() && s.at.Before(time.Now()) || time.Since(s.over) < time.Second && s.over.After(a.listed.Add(time.Second)) {
				return a.listed
			}
		}
	}
	return time.Now()
}

// triesAgain reports whether the last kill of a pod has gone wrong a second ago. A cancellation does not
// keep it from being made again, since the pod may have been signalled. The mutex is held.
func (a *pairsAgent) triesAgain(p *pairsPod) bool {
	return slices.ContainsFunc(a.spoilt(a, "kill"), func(s *pairsSpoilt) bool {
		return s.of == p.pod.Name && !s.hangs() && time.Since(s.over) <= 1100*time.Millisecond
	})
}

// hostFails reports whether a call of the source or of a lock has gone wrong just now. One that hangs
// is given up after eleven seconds. The mutex is held.
func (a *pairsAgent) hostFails() bool {
	for _, kind := range []string{"connect", "event", "pending", "delay", "inhibit", "close", "unlock"} {
		for _, s := range a.spoilt(a, kind) {
			over := s.over
			if given := s.at.Add(11 * time.Second); s.hangs() || given.Before(over) {
				over = given
			}
			if time.Since(over) < 2500*time.Millisecond {
				return true
			}
		}
	}
	return false
}

// judgePublished judges the node state that the API server has. The mutex is held.
func (w *pairsWorld) judgePublished() {
	fails := slices.ContainsFunc(w.spoilt(nil, "publish"), func(s *pairsSpoilt) bool { // half a minute is the longest pause
		return !s.agent.isDead() && (s.hangs() && s.way == deaf || !s.hangs() && time.Since(s.over) < 35*time.Second)
	})
	if w.published.ShuttingDown != (w.table.state == on) && !fails {
		w.violate("the node is published as %+v in state %q", w.published, w.table.state)
	}
}
