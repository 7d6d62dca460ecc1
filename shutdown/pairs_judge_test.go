//go:build linux && go1.25

package shutdown_test

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/internal/store"
)

// judgeKill judges a call of KillPod for a pod that runs. The mutex is held.
func (w *pairsWorld) judgeKill(p *pairsPod, k pairsKill) {
	until := k.until()
	w.tick()
	t := w.table
	wide := 1100 * time.Millisecond
	if w.hasFault("policy") { // it is waited for for a second
		wide += time.Second
	}
	if k.agent.termination != nil { // a drain of its own has a plan of its own, and no record
		for _, former := range p.kills {
			if left := former.until().Sub(k.at); former.agent == k.agent && k.seconds > 0 && until.Sub(k.at) > left+wide {
				w.violate("%s is killed by TerminateAll with %d s, and had only %v left", p.pod.Name, k.seconds, left)
			}
		}
		return
	}
	left, before := w.left(p)
	if t.state != on && !t.since.Equal(k.at) && !k.agent.triesAgain(p) {
		w.violate("%s is killed in state %q", p.pod.Name, t.state)
		return
	}
	if t.state != on {
		return
	}
	plan := t.current.plans[len(t.current.plans)-1]
	needs, known := plan.pods[p]
	fits := plan.leaves(p.bucket)
	switch {
	case len(p.kills) == 0:
		if known && !w.wasBad(t.current.began, k.at) && until.Sub(k.at) < min(needs, fits)-wide {
			w.violate("%s is killed with %d s, and needs %v, for which %v were there", p.pod.Name, k.seconds, needs, fits)
		}
	case before && k.seconds > 0 && until.Sub(k.at) > left+wide:
		w.violate("%s is killed with %d s, and had only %v left", p.pod.Name, k.seconds, left)
	case before && until.Sub(k.at) < left-wide:
		if known && fits-wide >= needs && !w.wasBad(plan.at, k.at) {
			w.violate("%s is shortened to %d s, and had %v left, for which %v were there", p.pod.Name, k.seconds, left, fits)
		}
	}
}

// judgeRelease judges the release of a lock: nobody may need the host's time any more. The mutex is
// held.
func (w *pairsWorld) judgeRelease(a *pairsAgent) {
	t, now := w.table, time.Now()
	w.say("a lock is released, %d are left", len(a.locks))
	if t.state != on || len(a.locks) > 0 || !a.stopping.IsZero() || t.since.Equal(now) {
		return
	}
	asked := t.current.asked
	if w.wasBad(now.Add(-2*time.Second), now) { // the last list that could still be of use was tried
		asked = asked.Add(-1050 * time.Millisecond)
	}
	if s := t.current; now.After(s.end.Add(-1050*time.Millisecond)) || now.After(asked) || !s.h.IsZero() && now.After(s.h.Add(-10*time.Millisecond)) {
		return // it is past H, or nearly
	}
	if r, err := store.ReadRecord(a.dir); err != nil || r == nil || r.Report.Ended.IsZero() {
		if !a.writeFails() {
			w.violate("the host is let go before the end of the drain is on record")
		}
	}
	last := a.lastList()
	emptyOnce := w.wasEmpty(t.current.began.Add(-2*time.Second), now)
	for _, p := range w.pods {
		switch {
		case !p.ended.IsZero():
		case len(p.kills) == 0 && p.listed.Before(t.current.began) && !emptyOnce,
			len(p.kills) == 0 && last.Sub(p.listed) > 1100*time.Millisecond && !w.wasBad(last.Add(-2*time.Second), last):
			w.violate("the host is let go while %s runs, which nobody has killed", p.pod.Name)
		case len(p.kills) > 0 && now.Before(p.killed.Add(-10*time.Millisecond)) && (!w.isForgotten(p) || !w.wasEmpty(last.Add(-2*time.Second), last)):
			w.violate("the host is let go while %s has %v left", p.pod.Name, p.killed.Sub(now))
		}
	}
}

// isForgotten reports whether no kill of a pod is known to the running agent, by itself or by the record
// of a shutdown that goes on. The mutex is held.
func (w *pairsWorld) isForgotten(p *pairsPod) bool {
	_, known := w.left(p)
	return !known
}

// addReport is a report that an agent passes on or shows. The mutex is held.
func (w *pairsWorld) addReport(a *pairsAgent, r shutdown.Report, shown bool) {
	if !shown {
		w.say("a report of the shutdown of %v with %d pods, cancelled %v", r.Started.Sub(w.table.origin), len(r.Pods), r.Cancelled)
	}
	w.reports = slices.DeleteFunc(w.reports, func(o pairsReport) bool { return shown && o.shown && o.Started.Equal(r.Started) })
	w.reports = append(w.reports, pairsReport{r, a, time.Now(), shown})
}

// check judges the agent at one moment.
func (w *pairsWorld) check() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.tick()
	t, a, now := w.table, w.agent(), time.Now()
	if a == nil || now.Sub(a.started) < 200*time.Millisecond || now.Sub(t.since) < time.Millisecond {
		return
	}
	refuses := t.state == on || t.state == unsettled || a.termination != nil
	if admits := a.m.Admit(nil).Admit; admits == refuses {
		w.violate("Admit says %v in state %q", admits, t.state)
	}
	for _, p := range w.pods {
		mine := slices.ContainsFunc(p.kills, func(k pairsKill) bool { return k.agent == a })
		if mine && p.ended.IsZero() && a.m.Admit(p.pod).Admit {
			w.violate("%s is admitted, which was killed and runs", p.pod.Name)
		}
	}
	if since := slices.MaxFunc([]time.Time{a.started, a.lost, w.refused}, time.Time.Compare); !a.hears() && now.Sub(since) > 2500*time.Millisecond && !a.hostFails() {
		w.violate("there is no session with the host since %v", since.Sub(t.origin))
	}
	for _, k := range w.spoilt(a, "kill", hears) {
		if k.hangs() && k.lasts == 0 && t.state == on && k.at.After(t.current.began) && now.After(t.current.asked.Add(2*time.Second)) && now.After(t.current.end.Add(2*time.Second)) {
			w.violate("the call of the killer for %s goes on after the host's time", k.of)
		}
	}
	s := t.current
	settled := min(now.Sub(a.started), now.Sub(t.since), now.Sub(a.connected), now.Sub(w.stays)) > 1500*time.Millisecond && !a.connected.IsZero()
	switch {
	case t.state == on && len(a.locks) > 0:
		since := s.plans[len(s.plans)-1].at
		if s.changed.After(since) {
			since = s.changed
		}
		margin := min(500*time.Millisecond, s.end.Sub(since)/10)
		late := min(now.Sub(s.end.Add(-margin/2)), now.Sub(s.plans[len(s.plans)-1].at.Add(500*time.Millisecond)))
		if late > time.Millisecond && settled {
			w.violate("the lock is held %v too long", late)
		}
	case t.state == off && settled && w.pending.IsZero() && len(a.locks) == 0 && !a.hostFails():
		w.violate("no lock is held without a shutdown")
	case t.state == dismissed && s.kept && len(a.locks) == 0 && now.Before(s.end.Add(-600*time.Millisecond)) && now.Before(s.began.Add(20*time.Second)) && t.since.After(a.started):
		w.violate("the lock of a dismissed shutdown is not kept")
	case t.state == dismissed && len(a.locks) > 0 && now.After(s.end) && settled:
		w.violate("the lock of a dismissed shutdown is held past its end")
	}
	w.show(a)
}

// show adds the last report of an agent. The mutex is held.
func (w *pairsWorld) show(a *pairsAgent) {
	if r, found := a.m.LastReport(); found {
		w.addReport(a, r, true)
	}
}

// judge judges the whole run, after the last agent has ended.
func (w *pairsWorld) judge() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, p := range w.pods {
		w.judgeTold(p)
		w.judgeStop(p)
		if live := w.table.state == off || w.table.state == dismissed; live && p.ended.IsZero() && len(p.kills) == 0 && !p.isReady() && !w.hangsNow("mark", p.pod.Name) && !w.hangsNow("restore", p.pod.Name) {
			w.violate("%s is not ready, and lives on", p.pod.Name)
		}
	}
	w.judgePublished()
	if w.host.Held() > w.stuckLocks || w.host.Err() != nil {
		w.violate("%d locks are left: %v", w.host.Held()-w.stuckLocks, w.host.Err())
	}
	for _, r := range w.reports {
		w.judgeReport(r)
	}
	for _, s := range w.table.all {
		w.judgeShutdown(s)
	}
}

func (w *pairsWorld) judgeTold(p *pairsPod) {
	told := len(p.told) > 0
	if len(p.kills) == 0 {
		if told {
			w.violate("the API server is told of the end of %s, which nobody has killed", p.pod.Name)
		}
		return
	}
	k, a := p.kills[len(p.kills)-1], p.reached.agent
	over := k.of == nil || !k.of.over.IsZero()
	joined := slices.ContainsFunc(w.table.all, func(s *pairsShutdown) bool { return s.began.After(k.at) && s.boot == p.boot && s.over.IsZero() })
	switch {
	case a != nil && (!a.isDead() || a.life().Sub(p.reached.at) > pairsLag+w.latency):
		if !told && !w.hangsNow("flush", p.pod.Name) {
			w.violate("the API server is not told of the end of %s, which was reached", p.pod.Name)
		}
	case a != nil || k.of == nil || k.terminateAll || over && (joined || !k.of.cancelled):
	case over && told:
		w.violate("the API server is told of the end of %s, which was not reached", p.pod.Name)
	case p.rebooted.IsZero() && told:
		w.violate("the API server is told of the end of %s, which was not reached in this boot", p.pod.Name)
	case !over && !p.rebooted.IsZero() && !told && !w.hangsNow("flush", p.pod.Name) && k.agent.life().Sub(k.at) > pairsLag:
		w.violate("the API server is not told after the boot of the end of %s", p.pod.Name)
	}
}

// judgeReport judges that nothing in a report is invented.
func (w *pairsWorld) judgeReport(r pairsReport) {
	s := w.shutdownOf(r.Report)
	if s == nil && r.Origin == terminateAllOrigin {
		s = &pairsShutdown{began: r.Started}
	}
	if s == nil {
		w.violate("a report of a shutdown that began at %v", r.Started.Sub(w.table.origin))
		return
	}
	seen := map[types.UID]bool{}
	for _, rp := range r.Pods {
		p := w.pods[slices.IndexFunc(w.pods, func(p *pairsPod) bool { return p.pod.UID == rp.UID })]
		own := slices.ContainsFunc(p.kills, func(k pairsKill) bool { return k.of == s || k.at.Equal(s.over) || k.terminateAll })
		former := slices.ContainsFunc(p.kills, func(k pairsKill) bool { return (k.of != s || k.terminateAll) && k.at.Before(r.at) })
		if seen[rp.UID] {
			w.violate("%s is in the report of %v twice", p.pod.Name, s.began.Sub(w.table.origin))
		}
		seen[rp.UID] = true
		if rp.Joined && !former || !rp.Joined && !own {
			w.violate("%s is in the report of %v (joined %v), which has not killed it", p.pod.Name, s.began.Sub(w.table.origin), rp.Joined)
		}
		if !rp.Ended.IsZero() && (p.ended.IsZero() || p.ended.After(rp.Ended)) {
			w.violate("%s has ended by a report at %v", p.pod.Name, rp.Ended.Sub(w.table.origin))
		}
	}
}

func (w *pairsWorld) shutdownOf(r shutdown.Report) *pairsShutdown {
	for _, s := range w.table.all {
		if s.began.Equal(r.Started) {
			return s
		}
	}
	return nil
}

// judgeShutdown judges that a shutdown has one report, which forgets nobody.
func (w *pairsWorld) judgeShutdown(s *pairsShutdown) {
	began := s.began.Sub(w.table.origin)
	var last *pairsReport
	passed := map[*pairsAgent]int{}
	for i, r := range w.reports {
		if !r.Started.Equal(s.began) {
			continue
		}
		if last = &w.reports[i]; !r.shown {
			passed[r.agent]++
			again := 0
			for _, at := range s.joined {
				if at.After(s.began) {
					again++
				}
			}
			if passed[r.agent] > 1+again {
				w.violate("the shutdown of %v has %d reports of one agent", began, passed[r.agent])
			}
		}
	}
	if s.lost {
		return
	}
	overtaken := slices.ContainsFunc(w.agents, func(a *pairsAgent) bool { // the next one has begun before its agent was killed, or at once afterwards
		return slices.ContainsFunc(w.table.all, func(o *pairsShutdown) bool {
			return o.began.After(s.began) && (a.isDead() && !o.began.After(a.died) || !o.began.Before(a.started) && o.began.Sub(a.started) < 200*time.Millisecond)
		})
	})
	if overtaken && (last == nil || last.shown) {
		return
	}
	if last == nil {
		w.violate("the shutdown of %v has no report", began)
		return
	}
	if last.Cancelled != s.cancelled && last.at.After(s.over) {
		w.violate("the report of %v is cancelled: %v", began, last.Cancelled)
	}
	for _, p := range w.pods {
		i := slices.IndexFunc(p.kills, func(k pairsKill) bool { return k.of == s && !k.terminateAll && k.agent.life().Sub(k.at) > pairsLag })
		if i < 0 || p.kills[i].at.After(last.at) {
			continue
		}
		at := slices.IndexFunc(last.Pods, func(r shutdown.PodReport) bool { return r.UID == p.pod.UID })
		if at < 0 {
			w.violate("%s is not in the report of %v", p.pod.Name, began)
		} else if a := p.reached.agent; last.Pods[at].Ended.IsZero() && a != nil && p.reached.of == s && !p.reached.terminateAll && p.reached.at.Before(last.at) && a.life().Sub(p.reached.at) > pairsLag {
			w.violate("%s has not ended by the report of %v", p.pod.Name, began)
		}
	}
}

// judgeLast judges that the last agent shows the report that is stored, unless the report is that of
// TerminateAll, which is not stored.
func (w *pairsWorld) judgeLast(a *pairsAgent) {
	w.mu.Lock()
	defer w.mu.Unlock()
	last, found := a.m.LastReport()
	stored, onRecord, err := shutdown.StoredReport(a.dir)
	switch {
	case err != nil:
		w.violate("StoredReport: %v", err)
	case w.hangsNow("write", "") || last.Origin == terminateAllOrigin:
	case found != onRecord:
		w.violate("LastReport has one: %v, StoredReport: %v", found, onRecord)
	case found:
		w.judgeSame(last, stored)
	}
}

// judgeSame judges that the last report and the stored one are the same.
func (w *pairsWorld) judgeSame(last, stored shutdown.Report) {
	outline := func(r shutdown.Report) string {
		return fmt.Sprint(r.Started.Sub(w.table.origin), r.Ended.Sub(w.table.origin), r.Cancelled, r.Origin, len(r.Errors), len(r.Pods))
	}
	if a, b := outline(last), outline(stored); a != b {
		w.violate("LastReport is %s, StoredReport is %s", a, b)
		return
	}
	for i, a := range last.Pods {
		one := func(p shutdown.PodReport) string {
			return fmt.Sprint(p.Name, p.Started.Sub(w.table.origin), !p.Ended.IsZero(), p.Ended.Sub(a.Ended), p.Unflushed, p.GrantedSeconds, p.Error, p.Joined)
		}
		if a, b := one(a), one(stored.Pods[i]); a != b {
			w.violate("LastReport has %s, StoredReport has %s", a, b)
		}
	}
}
