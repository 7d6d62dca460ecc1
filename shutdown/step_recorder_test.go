package shutdown

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// StepRecorder records the inputs and effects of a manager's core for package judge. It can record several
// managers of one node, one after the other.
type StepRecorder struct {
	Record judge.NodeRecord

	node      *node.Node
	now       time.Time
	began     int                     // the index of the fact that the newest manager has begun
	signalled map[string]bool         // the pods that were signalled and have not ended
	runs      map[string]bool         // whether each known pod runs
	tells     map[int]node.Message    // the messages about pods to the API server, by the number of their call
	syncs     map[int]bool            // the numbers of the calls that sync the log
	cancelled map[*node.Shutdown]bool // the shutdowns whose cancellation was recorded
	windows   judge.NodeFact          // the newest recorded timetable
}

// RecordSteps makes w record the steps of m, which has not been run.
func (m *Manager) RecordSteps(w *StepRecorder) {
	c := m.shell.node.Config
	isFirst := w.node == nil
	does := func(before, now bool) bool { return (isFirst || before) && now } // true if all managers of the node do it
	w.Record.Publishes = does(w.Record.Publishes, c.Options.Steps.Publish)
	w.Record.Statuses = does(w.Record.Statuses, c.Options.Steps.Statuses)
	w.Record.Marks = does(w.Record.Marks, c.Options.Steps.Readiness)
	w.Record.NoRollOver = c.Options.NoRollOver
	w.node = m.shell.node
	w.windows = judge.NodeFact{} // each agent records its own
	w.tells, w.syncs, w.cancelled = map[int]node.Message{}, map[int]bool{}, map[*node.Shutdown]bool{}
	if w.signalled == nil {
		w.signalled, w.runs = map[string]bool{}, map[string]bool{}
	}
	w.now = m.shell.now()
	w.began = len(w.Record.Facts)
	w.add(judge.NodeFact{What: judge.NodeAgentBegan, Failed: true}) // until the log is read
	m.shell.observe = w.step
}

// add records a fact with the time of the current step.
func (w *StepRecorder) add(f judge.NodeFact) {
	f.At = w.now
	w.Record.Add(f)
}

// step records one step of the core. The shell calls it after each step, before the effects are carried out.
func (w *StepRecorder) step(at time.Time, in node.Input, effects []node.Effect) {
	w.now = at
	w.input(in, len(effects))
	if s := w.node.Shutdown(); s != nil && s.Cancelled && !w.cancelled[s] {
		w.cancelled[s] = true
		if _, isRead := in.(node.Read); !isRead { // otherwise a previous agent recorded it
			w.add(judge.NodeFact{What: judge.NodeCancelled, Shutdown: s.Number})
		}
	}
	if slices.ContainsFunc(effects, func(e node.Effect) bool { return e.Do == node.Retake }) {
		w.add(judge.NodeFact{What: judge.NodeRetaken})
	}
	w.timetable()
	for _, e := range effects {
		w.effect(e)
	}
	f := judge.NodeFact{What: judge.NodeState, State: w.node.State().String(), Refuses: w.node.Refuses()}
	if s := w.node.Shutdown(); s != nil {
		f.Shutdown = s.Number
	}
	if s := w.draining(); s != nil {
		f.Drain, f.Done = s.Number, s.Done
	}
	w.add(f)
}

// input records what the input of a step says about the pods and the calls. effects is the number of effects of the
// step: the judge looks for ticks that do nothing.
func (w *StepRecorder) input(in node.Input, effects int) {
	switch in := in.(type) {
	case node.Tick:
		w.add(judge.NodeFact{What: judge.NodeTicked, Effects: effects})
		return
	case node.Read:
		w.read(in)
	case node.Listed:
		f := judge.NodeFact{What: judge.NodeListed, Call: in.Call, Failed: in.Err != nil}
		for _, p := range in.Pods {
			f.Pods = append(f.Pods, string(p.Key))
			if _, isKnown := w.runs[string(p.Key)]; !isKnown {
				w.runsNow(&p)
			}
		}
		w.add(f)
	case node.Killed:
		if in.Err == nil {
			w.runs[string(in.Key)] = false
			delete(w.signalled, string(in.Key))
			w.add(judge.NodeFact{What: judge.NodePodEnded, Pod: string(in.Key)})
		}
		w.add(judge.NodeFact{What: judge.NodeKilled, Pod: string(in.Key), Call: in.Call, Failed: in.Err != nil, NoRetry: in.NoRetry})
	case node.Told:
		if in.Err == nil && w.tells[in.Call] == node.FinalStatus {
			w.add(judge.NodeFact{What: judge.NodeTold, Pod: string(in.Key)})
		}
	case node.Published:
		w.add(judge.NodeFact{What: judge.NodePublished, Call: in.Call, Failed: in.Err != nil})
	case node.Answered:
		if w.syncs[in.Call] {
			w.add(judge.NodeFact{What: judge.NodeSynced, Call: in.Call})
		}
	case node.Start:
		key := string(in.Key)
		if w.runs[key] { // it has ended without the manager's knowledge, and the next list has the new one
			delete(w.runs, key)
			delete(w.signalled, key)
			w.add(judge.NodeFact{What: judge.NodePodEnded, Pod: key})
		}
		w.add(judge.NodeFact{What: judge.NodeStarts, Pod: key})
	case node.RunEnds:
		w.add(judge.NodeFact{What: judge.NodeRunEnded})
	case node.TerminateAll:
		w.add(judge.NodeFact{What: judge.NodeTerminateAll})
	}
	w.add(judge.NodeFact{What: judge.NodeInput})
}

// read records what a manager learns from the log of the previous manager: which pods the previous one was killing, and
// whether the machine has booted since.
func (w *StepRecorder) read(in node.Read) {
	known := map[string]bool{} // the signalled pods of the log; true: it has not ended
	for _, p := range in.Entries.Pods {
		if !p.Signalled.IsZero() {
			known[string(p.Key)] = p.Ended.IsZero()
		}
	}
	for pod := range w.signalled {
		if _, isKnown := known[pod]; !isKnown {
			w.add(judge.NodeFact{What: judge.NodePodLost, Pod: pod})
		}
	}
	for pod, runs := range known {
		if runs {
			w.signalled[pod] = true
		}
		w.add(judge.NodeFact{What: judge.NodeLogged, Pod: pod})
	}
	hasEntries := in.Entries.Shutdown != nil || len(in.Entries.Pods) > 0
	if hasEntries && !in.SameBoot {
		for pod := range known {
			w.runs[pod] = false
			w.add(judge.NodeFact{What: judge.NodePodEnded, Pod: pod})
		}
		if w.draining() == nil { // otherwise the drain, which has begun after the boot, would be taken for one before it
			w.add(judge.NodeFact{What: judge.NodeBooted})
			clear(w.signalled)
		}
	}
	if hasEntries && w.draining() == nil {
		w.Record.Facts[w.began].Failed = false
	}
}

// runsNow records that a pod runs.
func (w *StepRecorder) runsNow(p *node.Pod) {
	key := string(p.Key)
	w.runs[key] = true
	delete(w.signalled, key)
	f := judge.NodeFact{What: judge.NodePodRuns, Pod: key, Priority: p.Priority, Seconds: -1}
	if grace := p.Object.Spec.TerminationGracePeriodSeconds; grace != nil {
		f.Seconds = *grace
	} else if len(w.node.Schedule) == 0 {
		f.Seconds = v1.DefaultTerminationGracePeriodSeconds
	}
	w.add(f)
}

// effect records an effect that the judge needs to know of.
func (w *StepRecorder) effect(e node.Effect) {
	switch e.Do {
	case node.Sync:
		w.syncs[e.Call] = true
		w.add(judge.NodeFact{What: judge.NodeSync, Call: e.Call})
	case node.Tell:
		w.tells[e.Call] = e.What
	case node.Kill:
		if key := string(e.Pod.Key); !w.runs[key] && !w.signalled[key] && e.Pod.Signalled.Equal(w.now) { // it was started again after its end
			w.runsNow(e.Pod)
		}
		f := judge.NodeFact{What: judge.NodeKill, Pod: string(e.Pod.Key), Call: e.Call, Seconds: e.Seconds, Until: e.Until}
		if s := w.draining(); s != nil {
			f.Shutdown, f.Own, f.Done = s.Number, isOwn(s), s.Done
		}
		w.signalled[string(e.Pod.Key)] = true
		w.add(f)
	case node.Publish:
		f := judge.NodeFact{What: judge.NodePublish, Call: e.Call}
		if e.Shutdown != nil {
			f.Shutdown = e.Shutdown.Number
		}
		w.add(f)
	case node.Store, node.NewLog:
		for _, p := range e.Pods {
			w.add(judge.NodeFact{What: judge.NodeStored, Pod: string(p.Key), Until: p.Deadline})
		}
	case node.CountPod:
		w.add(judge.NodeFact{What: judge.NodeCounted, Pod: string(e.Pod.Key), Failed: e.Pod.Ended.IsZero()})
	case node.Suspend:
		w.add(judge.NodeFact{What: judge.NodeSuspended, Until: e.Until})
	case node.Release:
		w.add(judge.NodeFact{What: judge.NodeReleased})
	case node.HoldAgain:
		w.add(judge.NodeFact{What: judge.NodeHeldAgain})
	case node.Report:
		f := judge.NodeFact{What: judge.NodeReported, Shutdown: e.Shutdown.Number}
		for _, p := range e.Pods {
			f.Pods = append(f.Pods, string(p.Key))
		}
		w.add(f)
	default: // irrelevant for the judge
	}
}

// isOwn reports whether a shutdown is a drain of TerminateAll.
func isOwn(s *node.Shutdown) bool { return s.Origin == "TerminateAll" }

// draining returns the shutdown that kills pods now; nil: none.
func (w *StepRecorder) draining() *node.Shutdown {
	if s, _ := w.node.Terminated(); s != nil && isOwn(s) && (s.Ended.IsZero() || s.Ended.Equal(w.now)) {
		return s
	}
	if w.node.State() == node.StateDraining {
		return w.node.Shutdown()
	}
	return nil
}

// timetable records the timetable if it has changed.
func (w *StepRecorder) timetable() {
	s := w.draining()
	if s == nil || s.Timetable == nil {
		return
	}
	table := s.Timetable
	f := judge.NodeFact{
		What: judge.NodeWindows, Shutdown: s.Number, WaitEnd: table.WaitEnd(), ReleaseBy: table.Unlock(), Planned: s.Planned,
		Own: isOwn(s), Failed: w.Record.Facts[w.began].Failed,
	}
	for i, b := range table.Budget.Buckets {
		end := table.At(b.End)
		kills := end.Add(-b.Unmount - b.Statuses) // when the wait for the kills ends
		if kills.After(f.WaitEnd) {
			kills = f.WaitEnd
		}
		priority := b.Priority
		if i == 0 { // the first bucket also has the pods of all lower priorities
			priority = math.MinInt32
		}
		f.Windows = append(f.Windows, judge.NodeWindow{Priority: priority, OwnTime: b.Pods, KillsEnd: kills, End: end})
	}
	if old := w.windows; old.Shutdown == f.Shutdown && old.WaitEnd.Equal(f.WaitEnd) && old.Planned == f.Planned && slices.Equal(old.Windows, f.Windows) {
		return
	}
	w.windows = f
	w.add(f)
}
