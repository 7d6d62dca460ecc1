package node_test

import (
	"fmt"
	"runtime/debug"
	"slices"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/internal/seeds"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// newSim returns a random world: a schedule, steps, pods and faults.
func newSim(seed uint64) *world {
	w := newWorld(seed, node.Config{})
	w.drawFaults()
	c := &w.config
	c.Schedule = [][]plan.Bucket{
		{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}},
		{{Priority: 0, Seconds: 5}, {Priority: 500, Seconds: 0}, {Priority: 1000, Seconds: 3}, {Priority: 2000, Seconds: 1}},
		nil,
	}[w.draw(3)]
	steps := &c.Options.Steps
	steps.Publish, steps.Statuses, steps.Readiness = w.draw(4) > 0, w.draw(4) > 0, w.draw(2) == 0
	steps.Unmount, steps.Hold, steps.Prepare = w.draw(4) == 0, w.draw(4) == 0, w.draw(4) == 0
	c.Options.NoRollOver = w.draw(5) == 0
	c.Options.Limit = []time.Duration{0, 0, 12 * time.Second}[w.draw(3)]
	for i := range 1 + w.draw(6) {
		w.addRandom(i)
	}
	return w
}

// drawFaults draws how long the host waits and how often it, the calls and the agent fail.
func (w *world) drawFaults() {
	w.limit = []time.Duration{0, 0, 500 * time.Millisecond, 5 * time.Second, 30 * time.Second, time.Minute}[w.draw(6)]
	w.hostCanAnswer = w.draw(4) != 0
	w.failOneIn = []int{0, 0, 3, 8, 20}[w.draw(5)]
	w.dieOneIn = []int{0, 0, 100, 400}[w.draw(4)]
}

// addRandom adds a random pod.
func (w *world) addRandom(i int) {
	grace := []int64{-1, 0, 2, 5, 10, 30, 100}[w.draw(7)]
	p := w.addPod(fmt.Sprintf("pod-%d", i), []int32{-5, 0, 0, 700, 1000, 3000}[w.draw(6)], grace, time.Duration(w.draw(12_000))*time.Millisecond)
	p.Static, p.DaemonSet = w.chance(8), w.chance(8)
	p.isStuck = w.chance(12)
	if w.chance(6) {
		p.endsAfter = time.Hour
	}
}

// simulate runs the world of a seed. In the first 50 s two to nine random things happen (injectRandom), and calls may fail
// until 70 s. Then all faults end, and the agent has 3 min to finish what it has begun.
func simulate(seed uint64) *judge.NodeRecord {
	w := newSim(seed)
	w.startAgent()
	for range 2 + w.draw(8) {
		w.schedule(time.Duration(w.draw(50_000))*time.Millisecond, w.injectRandom)
	}
	w.run(70 * time.Second)
	w.quiesce()
	w.run(3 * time.Minute)
	w.recordEnd()
	return &w.record.NodeRecord
}

// startAgent starts an agent. Its first inputs (the log, the limit, the answer of the host) come in random order.
func (w *world) startAgent() {
	const never = -1 // another agent owns the state folder
	logDelay := []time.Duration{0, 0, 0, time.Duration(100+w.draw(3000)) * time.Millisecond, time.Duration(5+w.draw(10)) * time.Second, never}[w.draw(6)]
	w.start(logDelay)
	if w.agent == nil { // it has died already
		return
	}
	if logDelay > 0 && !w.isQuiet && w.chance(4) { // it dies before it has the log
		w.after(time.Duration(w.draw(int(logDelay))), w.die)
	}
	if w.limit > 0 {
		w.after(time.Duration(w.draw(200))*time.Millisecond, func() { w.step(node.HostLimit(w.limit), fmt.Sprintf("the host waits for %v", w.limit)) })
	}
	if w.isQuiet { // the agent missed the cancellation while it was dead
		w.after(15*time.Second, func() { w.step(node.Event{Event: source.Event{Cancelled: true}}, "Trigger cancels all") })
	}
	// In one of eight cases the host never answers. After 5 s without an event of the host, it counts as unreachable.
	if !w.isQuiet && w.chance(8) {
		w.after(5*time.Second, func() {
			if adopted := w.chance(2); !w.hostAnswered {
				w.step(node.HostUnreached{Adopted: adopted}, "the host is unreachable")
			}
		})
		return
	}
	w.after(time.Duration(1+w.draw([]int{50, 400, 8000}[w.draw(3)]))*time.Millisecond, w.answerPending)
}

// answerPending passes the host's answer: whether a shutdown is pending, or that the host does not know.
func (w *world) answerPending() {
	in := node.HostAnswered{Known: w.hostCanAnswer || w.isQuiet}
	if in.Known && w.pending != nil {
		event := *w.pending
		in.Event = &event
	}
	w.step(in, fmt.Sprintf("the host can tell: %v, pending: %v", in.Known, in.Event != nil))
}

// injectRandom does one random thing that people, the host or the node may do.
func (w *world) injectRandom() {
	if w.isQuiet {
		return
	}
	switch w.draw(16) {
	case 0, 1, 2, 3:
		w.announce()
	case 4:
		if w.pending != nil {
			w.pending = nil
			w.step(node.Event{Event: source.Event{Cancelled: true}, Host: true}, "the host cancels")
		}
	case 5, 6, 7:
		e := source.Event{Origin: []string{"notice", "person"}[w.draw(2)], Kind: []source.Kind{"", "reboot", "poweroff"}[w.draw(3)]}
		if w.chance(2) {
			e.Deadline = w.now.Add(time.Duration(w.draw(60_000)) * time.Millisecond)
		}
		w.step(node.Event{Event: e}, fmt.Sprintf("Trigger announces %+v", e))
	case 8, 9:
		origin := []string{"", "notice", "person"}[w.draw(3)]
		w.step(node.Event{Event: source.Event{Cancelled: true, Origin: origin}}, fmt.Sprintf("Trigger cancels %q", origin))
	case 10:
		w.apiServes = !w.apiServes
	case 11:
		w.addRandom(len(w.pods))
	case 12:
		if w.agent != nil {
			w.die()
		}
	case 13:
		w.terminateOrEndRun()
	case 14:
		if p := w.pods[w.draw(len(w.pods))]; p.Static && !p.ended.IsZero() && w.agent != nil && !w.agent.Refuses() {
			w.restartStaticPod(p)
		}
	case 15:
		w.limit = time.Duration(1+w.draw(40)) * time.Second
		w.step(node.HostLimit(w.limit), fmt.Sprintf("the host waits for %v", w.limit))
	}
}

// restartStaticPod starts a static pod again once the agent admits it. Until then it asks every second. In StateAwaitingLog it does
// not ask, because the log may have the pod.
func (w *world) restartStaticPod(p *worldPod) {
	isRefused := w.agent.Refuses() || w.agent.State() == node.StateAwaitingLog
	switch {
	case p.ended.IsZero():
	case isRefused || slices.ContainsFunc(w.agent.Refused(), func(refused *node.Pod) bool { return refused.Key == p.Key }):
		if !isRefused {
			w.step(node.StaticPodStarts{Key: p.Key}, "a static pod is to start: "+p.Name)
		}
		w.after(time.Second, func() { w.restartStaticPod(p) })
	default:
		w.startPod(p)
	}
}

// announce makes the host announce a shutdown. Once the host has waited for its limit, it may power off the machine.
func (w *world) announce() {
	e := &source.Event{Kind: []source.Kind{"reboot", ""}[w.draw(2)], Origin: "logind"}
	if w.limit > 0 && w.chance(2) {
		e.Deadline = w.now.Add(w.limit)
	}
	w.pending = e
	w.step(node.Event{Event: *e, Host: true}, fmt.Sprintf("the host announces %+v", *e))
	if w.limit > 0 {
		w.schedule(w.limit, func() {
			if w.pending == e && w.chance(2) {
				w.powerOff()
			}
		})
	}
	w.maybePowerOff()
}

// maybePowerOff may power off the machine of a pending shutdown if no lock is held.
func (w *world) maybePowerOff() {
	e := w.pending
	if e == nil || w.hasFixedLatency { // a script has no random faults
		return
	}
	isPossible := func() bool { return w.pending == e && !w.isHeld && !w.isQuiet }
	if isPossible() && w.chance(2) {
		w.schedule(time.Duration(w.draw(15_000))*time.Millisecond, func() {
			if isPossible() {
				w.powerOff()
			}
		})
	}
}

// terminateOrEndRun calls TerminateAll, ends its context, or ends Run.
func (w *world) terminateOrEndRun() {
	if w.agent == nil {
		return
	}
	if w.chance(2) {
		w.terminateAllCalled = true
		w.step(node.TerminateAll{}, "TerminateAll")
		if w.chance(3) {
			w.after(time.Duration(w.draw(20_000))*time.Millisecond, func() { w.step(node.StopTerminateAll{}, "the context of TerminateAll ends") })
		}
		return
	}
	if w.runEnded {
		return
	}
	w.runEnded = true
	w.step(node.RunEnds{}, "the context of Run ends")
	w.after(time.Duration(w.draw(20_000))*time.Millisecond, w.die)
}

// die kills the agent. Another one starts, or the machine reboots.
func (w *world) die() {
	w.add(judge.NodeFact{What: judge.NodeDied})
	w.agent = nil
	w.generation++
	if w.chance(6) && !w.isQuiet {
		w.powerOff()
		return
	}
	if w.chance(5) { // its lock is lost
		w.isHeld = false
		w.maybePowerOff()
	}
	generation := w.generation
	w.schedule(time.Duration(w.draw(3000))*time.Millisecond, func() {
		if w.generation == generation && w.agent == nil {
			w.startAgent()
		}
	})
}

// powerOff reboots the machine. Entries that were not synced may be lost.
func (w *world) powerOff() {
	w.agent = nil
	w.generation++
	for _, p := range w.pods {
		if p.boot == w.boot {
			w.end(p)
		}
	}
	w.boot++
	w.pending, w.isHeld = nil, true
	kept, isWhole := w.durable, false
	synced := len(w.durable)
	isDurableReplaced := synced > len(w.log) || synced > 0 && &w.durable[0] != &w.log[0] // by a NewLog that was not synced
	switch {
	case !isDurableReplaced: // the synced entries survive, and some of those after them
		kept = w.log[: synced+w.draw(len(w.log)-synced+1) : len(w.log)]
		isWhole = len(kept) == len(w.log)
	case w.chance(2): // the new log survives, rather than the old one
		kept, isWhole = w.log, true
	}
	w.isLossy = w.isLossy || !isWhole
	w.log = append([]logEntry(nil), kept...)
	w.durable = slices.Clip(w.log)
	w.now = w.now.Add(time.Millisecond)
	w.add(judge.NodeFact{What: judge.NodeBooted})
	for _, p := range w.pods {
		if p.Static {
			w.startPod(p)
		}
	}
	w.startAgent()
}

// quiesce ends all faults and cancels all announcements, so that recordEnd can require that the agent has finished everything.
// Each stuck pod ends now with a probability of one half.
func (w *world) quiesce() {
	w.isQuiet, w.apiServes, w.pending = true, true, nil
	for _, returns := range w.hung {
		w.after(time.Millisecond, returns)
	}
	w.step(node.Event{Event: source.Event{Cancelled: true}}, "Trigger cancels all")
	w.step(node.Event{Event: source.Event{Cancelled: true}, Host: true}, "the host takes all back")
	w.step(node.HostAnswered{Known: true}, "nothing is pending")
	for _, p := range w.pods {
		if p.isStuck && w.chance(2) {
			p.isStuck, p.ends = false, w.now
			if w.agent != nil {
				w.end(p)
			}
		}
	}
}

// recordEnd records for the judge whether the agent still refuses all pods, which single pods it refuses, and which pods are
// Ready at the API server. It records nothing if the agent is dead.
func (w *world) recordEnd() {
	if w.agent == nil {
		return
	}
	f := judge.NodeFact{What: judge.NodeFinished, Refuses: w.agent.Refuses()}
	for _, p := range w.agent.Refused() {
		f.Pods = append(f.Pods, p.Name)
	}
	for _, p := range w.pods {
		if p.isReady {
			f.Ready = append(f.Ready, p.Name)
		}
	}
	w.add(f)
}

// Each seed is a random world with random faults: agents die, calls fail or hang, the machine is powered off. What happens
// there breaks no rule of judge.Node. Package seeds says how to replay the world of one seed.
func TestSimulator(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // a world needs little memory; this saves a third of the time
	seeds.Play(t, 10_000, func(_ *testing.T, seed uint64) (func() string, error) {
		r := simulate(seed)
		if broken := judge.Node(r); len(broken) > 0 {
			return r.Story, fmt.Errorf("%q", broken)
		}
		return r.Story, nil
	})
}
