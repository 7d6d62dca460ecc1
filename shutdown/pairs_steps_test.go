//go:build linux && go1.25

package shutdown_test

import (
	"context"
	"errors"
	"slices"
	"testing/synctest"
	"time"

	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/shutdowntest"
)

type pairsStep struct {
	name string
	do   func(*pairsWorld)
}

// pairsBases begin the drain of a run, and pairsSteps are the inputs of which two follow.
var (
	pairsBases = []pairsStep{
		{"ofHost", func(w *pairsWorld) { w.announceHost(40 * time.Second) }},
		{"ofNotice", func(w *pairsWorld) { w.announceNotice(time.Minute) }},
		{"ofLateNotice", func(w *pairsWorld) { w.late = true; w.announceNotice(time.Minute) }},
	}
	pairsSteps = []pairsStep{
		{"notice", func(w *pairsWorld) { w.announceNotice(time.Minute) }},
		{"event", func(w *pairsWorld) { w.announceHost(40 * time.Second) }},
		{"earlier", func(w *pairsWorld) { w.announceAgain(time.Duration(2+w.rng.IntN(16)) * time.Second) }},
		{"later", func(w *pairsWorld) { w.announceAgain(time.Minute) }},
		{"hostCancels", (*pairsWorld).cancelHost},
		{"triggerCancels", (*pairsWorld).cancelTrigger},
		{"sessionLost", (*pairsWorld).loseSession},
		{"killed", (*pairsWorld).killAgent},
		{"reboot", (*pairsWorld).reboot},
		{"listEmpty", func(w *pairsWorld) { w.spoilList(&w.empty) }},
		{"terminateAll", (*pairsWorld).terminateAll},
		{"listFails", func(w *pairsWorld) { w.spoilList(&w.failing) }},
	}
)

// run runs a drain with two inputs. The first comes at a moment of the drain, and the second at once
// or some time later.
func (w *pairsWorld) run(base int, moment time.Duration, first, second int) {
	lag := time.Duration([]int{0, 3, 45, 1013, 4007, 12345}[w.rng.IntN(6)]) * time.Millisecond
	w.begins(base, nil)
	w.advance(moment)
	w.step(pairsSteps[first])
	w.advance(lag)
	w.step(pairsSteps[second])
	w.ends()
}

// begins starts an agent, and after a second the drain of a base, with the deaths that follow.
func (w *pairsWorld) begins(base int, deaths []pairsDeath) {
	w.table.origin = time.Now().Add(time.Second)
	w.newPods()
	w.start()
	w.advance(time.Second)
	w.locked(func() { w.calls, w.kills = 0, append(w.kills, deaths...) })
	w.step(pairsBases[base])
}

// ends waits until the node has come to rest, and judges the run.
func (w *pairsWorld) ends() {
	w.advance(70 * time.Second)
	w.locked(func() { w.kills, w.settled = nil, true })
	if a := w.agent(); a != nil && time.Since(a.started) > 40*time.Second {
		w.locked(w.judgePublished)
	}
	if w.table.state == on && w.rng.IntN(4) > 0 || w.rng.IntN(4) == 0 {
		w.goDown()
		w.advance(40 * time.Second)
	}
	w.advance(5 * time.Second) // a killed agent has a successor by now
	a := w.agent()
	a.finish()
	w.judge()
	w.judgeLast(a)
	close(w.over)
	for _, a := range w.agents {
		a.stop()
		<-a.returned
		a.unanswered.Wait()
		_ = a.terminator.Close(w.Context()) // what hangs in a call ends with over
	}
	for _, p := range w.pods {
		w.rt.Exit(p.pod.Name)
	}
	synctest.Wait()
}

// finish ends an agent as an init system does. Some agents stop their pods when they are stopped, before
// the end of Run or beside it.
func (a *pairsAgent) finish() {
	if a.rng.IntN(4) == 0 {
		a.terminateAll()
		<-time.After(time.Duration(a.rng.IntN(3_000)) * time.Millisecond)
	}
	a.locked(func() { a.say("the agent ends"); a.stopping = time.Now() })
	a.stop()
	<-a.returned
	a.locked(func() { clear(a.unsynced); a.ranUntil = time.Now() }) // Run ends with a sync
	if a.termination != nil {
		<-a.termination.returned
	}
	a.locked(a.judgeRun)
	left, cancel := context.WithTimeout(a.Context(), time.Second)
	defer cancel()
	_ = a.terminator.Close(left) // a container that hangs ends with the process
	synctest.Wait()
}

// goDown ends the boot, with the agent before it or with a power cut.
func (w *pairsWorld) goDown() {
	if a := w.agent(); a != nil && w.rng.IntN(2) == 0 {
		a.finish()
	}
	w.reboot()
}

// advance has time pass, and judges the agent at random moments.
func (w *pairsWorld) advance(d time.Duration) {
	for until := time.Now().Add(d); ; {
		left := time.Until(until)
		<-time.After(min(left, time.Duration(w.rng.IntN(3_000_000))*time.Microsecond))
		synctest.Wait()
		w.check()
		if left <= 0 {
			return
		}
	}
}

func (w *pairsWorld) step(s pairsStep) {
	<-time.After(time.Nanosecond) // no two shutdowns begin at the same time
	w.locked(func() { w.say("STEP %s", s.name) })
	s.do(w)
	synctest.Wait()
	w.check()
}

func (w *pairsWorld) announceNotice(in time.Duration) {
	if w.notice.IsZero() {
		w.notice = time.Now().Add(in)
	}
	if a := w.agent(); a != nil {
		a.watchNotice()
	}
}

func (w *pairsWorld) announceHost(in time.Duration) {
	w.locked(func() {
		if w.pending.IsZero() {
			w.pending = time.Now().Add(in)
		}
	})
	w.host.Announce(shutdown.Event{Kind: shutdown.KindReboot, Origin: "logind", Deadline: w.pending})
}

// announceAgain has another deadline announced by whoever has announced the shutdown.
func (w *pairsWorld) announceAgain(in time.Duration) {
	if w.pending.IsZero() && !w.notice.IsZero() {
		w.notice = time.Time{}
		w.announceNotice(in)
		return
	}
	w.pending = time.Time{}
	w.announceHost(in)
}

func (w *pairsWorld) cancelHost() {
	w.locked(func() {
		w.pending, w.stays = time.Time{}, time.Now()
	})
	w.host.Cancel()
}

// cancelTrigger takes the notice back, or all announcements.
func (w *pairsWorld) cancelTrigger() { w.takeBack([]string{"", "notice"}[w.rng.IntN(2)]) }

// takeBack takes back the announcements of an origin; "" stands for all.
func (w *pairsWorld) takeBack(origin string) {
	a := w.agent()
	w.locked(func() {
		if w.notice = (time.Time{}); a != nil {
			w.cancelled(origin)
		}
	})
	if a != nil {
		a.trigger(shutdown.Event{Cancelled: true, Origin: origin})
	}
}

func (w *pairsWorld) loseSession() {
	w.unreachable()
	w.locked(func() {
		if a := w.agent(); a != nil {
			a.connected, a.lost, a.sessions = time.Time{}, time.Now(), nil
		}
	})
	w.host.Lose()
}

// unreachable has new sessions fail for a while, or not at all.
func (w *pairsWorld) unreachable() {
	if lasts := time.Duration([]int{0, 0, 3, 7}[w.rng.IntN(4)]) * time.Second; lasts > 0 {
		w.refuse(lasts)
	}
}

// refuse has new sessions fail for some time.
func (w *pairsWorld) refuse(lasts time.Duration) {
	refuse := func(err error) { w.host.Script(func(h *shutdowntest.Host) { h.ConnectErr = err }) }
	refuse(errors.New("the host is not reached"))
	w.locked(func() { w.refused = time.Now().Add(lasts) })
	time.AfterFunc(lasts, func() { refuse(nil) })
}

func (w *pairsWorld) killAgent() {
	w.unreachable()
	w.locked(func() {
		if a := w.agent(); a != nil {
			a.kill()
		}
	})
}

func (w *pairsWorld) reboot() {
	w.locked(func() {
		if a := w.agent(); a != nil {
			a.kill()
		}
		w.powerOff()
	})
}

// spoilList has the list be empty, or fail, for a while.
func (w *pairsWorld) spoilList(until *time.Time) {
	lasts := time.Duration([]int{400, 2900, 9100}[w.rng.IntN(3)]) * time.Millisecond
	w.locked(func() {
		*until = time.Now().Add(lasts)
		w.badLists = append(slices.Clone(w.badLists), pairsSpan{time.Now(), *until, until == &w.empty})
	})
}
