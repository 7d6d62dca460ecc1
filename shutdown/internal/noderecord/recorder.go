// Package noderecord records the steps of a node for package judge. The simulator of package node uses it, and so do the
// tests of package shutdown, so that both judge the same facts.
package noderecord

import (
	"math"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
)

// Recorder records the agents of a node, one after the other. It derives facts from the inputs and effects of each step.
// Its user adds what the steps do not say: which pods run and end, what the API server has, and the end of the run.
type Recorder struct {
	judge.NodeRecord

	// HasLog says that the agent has read the state log, so that it writes it. The user sets it.
	HasLog bool

	node                 *node.Node // the newest agent
	now                  time.Time  // of the newest step
	runHasEnded          bool
	shutdownBefore       *node.Shutdown // the newest shutdown after the previous step; nil: none
	wasCancelledBefore   bool           // shutdownBefore was cancelled in the previous step or earlier
	drainBefore          *node.Shutdown // the drain after the previous step; nil: none
	newestTimetable      judge.NodeFact // of this agent
	syncCalls, stepCalls map[int]bool   // the numbers of the calls that sync the log, and of those that a drain waits for
}

// Begin records that an agent begins at the given time, the first one or the successor of another. It forgets which calls of
// the previous agent were in progress. The caller must set HasLog before, because the record of the beginning says whether the
// agent has read the log.
func (r *Recorder) Begin(n *node.Node, at time.Time) {
	isFirst, steps := r.node == nil, n.Options.Steps
	// Each of these is true if all agents so far were configured with the step.
	r.Publishes = (isFirst || r.Publishes) && steps.Publish
	r.Statuses = (isFirst || r.Statuses) && steps.Statuses
	r.Marks = (isFirst || r.Marks) && steps.Readiness
	r.NoRollOver = n.Options.NoRollOver
	*r = Recorder{NodeRecord: r.NodeRecord, HasLog: r.HasLog, node: n, now: at, syncCalls: map[int]bool{}, stepCalls: map[int]bool{}}
	r.AddAt(at, judge.NodeFact{What: judge.NodeAgentBegan, NoLog: !r.HasLog})
}

// AddAt records a fact that is true from the time at on.
func (r *Recorder) AddAt(at time.Time, f judge.NodeFact) {
	f.At = at
	r.Add(f)
}

// addNow records a fact of the newest step.
func (r *Recorder) addNow(f judge.NodeFact) { r.AddAt(r.now, f) }

// AddPodRuns records that a pod runs, with its grace period. A pod without one gets the time of its bucket, or Kubernetes' default of
// 30 s if the agent has no schedule (hasSchedule).
func (r *Recorder) AddPodRuns(at time.Time, p *node.Pod, hasSchedule bool) {
	const timeOfBucket = -1
	f := judge.NodeFact{What: judge.NodePodRuns, Pod: string(p.Key), Priority: p.Priority, Seconds: timeOfBucket}
	if grace := p.Object.Spec.TerminationGracePeriodSeconds; grace != nil {
		f.Seconds = *grace
	} else if !hasSchedule {
		f.Seconds = v1.DefaultTerminationGracePeriodSeconds
	}
	r.AddAt(at, f)
}

// Step records a step that the agent has made; text describes its input. Call Effect then for each effect, and EndStep last.
func (r *Recorder) Step(at time.Time, in node.Input, text string, effects []node.Effect) {
	r.now = at
	r.addInput(in, text, len(effects))
	if s := r.shutdownBefore; s != nil && s.Cancelled && !r.wasCancelledBefore {
		r.addNow(judge.NodeFact{What: judge.NodeCancelled, Shutdown: s.Number})
	}
	retakesLock := func(e node.Effect) bool { return e.Do == node.RetakeLock }
	if beginsAnotherDrain := slices.ContainsFunc(effects, retakesLock); beginsAnotherDrain {
		r.addNow(judge.NodeFact{What: judge.NodeRetaken}) // before the new timetable, which may end later than the old one
	}
	r.addChangedTimetable()
}

// addInput records what an input says. effectCount is the number of effects of the step.
func (r *Recorder) addInput(in node.Input, text string, effectCount int) {
	switch in := in.(type) {
	case node.Tick:
		r.addNow(judge.NodeFact{What: judge.NodeTicked, Effects: effectCount})
		return
	case node.Listed:
		f := judge.NodeFact{What: judge.NodeListed, Call: in.Call, Failed: in.Err != nil}
		for _, p := range in.Pods {
			f.Pods = append(f.Pods, string(p.Key))
		}
		r.addNow(f)
	case node.Killed:
		r.addNow(judge.NodeFact{What: judge.NodeKillAnswered, Pod: string(in.Key), Call: in.Call, Failed: in.Err != nil, NoRetry: in.NoRetry})
	case node.Published:
		r.addNow(judge.NodeFact{What: judge.NodePublishAnswered, Call: in.Call, Failed: in.Err != nil})
	case node.CallReturned:
		if r.syncCalls[in.Call] {
			r.addNow(judge.NodeFact{What: judge.NodeSynced, Call: in.Call})
		}
		if r.stepCalls[in.Call] {
			r.addNow(judge.NodeFact{What: judge.NodeDrainStepAnswered, Call: in.Call})
		}
	case node.StaticPodStarts:
		r.addNow(judge.NodeFact{What: judge.NodeStaticPodStarts, Pod: string(in.Key)})
	case node.RunEnds:
		r.runHasEnded = true
		r.addNow(judge.NodeFact{What: judge.NodeRunEnded})
	case node.TerminateAll:
		r.addNow(judge.NodeFact{What: judge.NodeTerminateAll})
	}
	r.addNow(judge.NodeFact{What: judge.NodeInput, Text: text})
}

// Draining returns the shutdown, or the drain of TerminateAll, whose pods are being killed, or were until the newest step; nil: none.
func (r *Recorder) Draining() *node.Shutdown {
	if s, isOver := r.node.TerminateAllDrain(); s != nil && isOfTerminateAll(s) && !isOver {
		return s
	}
	if r.node.State() == node.StateDraining && !r.runHasEnded {
		return r.node.Shutdown()
	}
	if s := r.drainBefore; s != nil && isOfTerminateAll(s) { // it has ended in this step
		return s
	}
	return nil
}

// isOfTerminateAll reports whether a shutdown is in fact a drain of TerminateAll.
func isOfTerminateAll(s *node.Shutdown) bool { return s.Origin == "TerminateAll" }

// addChangedTimetable records the timetable of the drain, if it has changed.
func (r *Recorder) addChangedTimetable() {
	s := r.Draining()
	if s == nil || s.Timetable == nil {
		return
	}
	table := s.Timetable
	f := judge.NodeFact{
		What: judge.NodeTimetable, Shutdown: s.Number, WaitEnd: table.WaitEnd(), ReleaseBy: table.ReleaseBy(), Planned: s.HasFinalTable,
		ByTerminateAll: isOfTerminateAll(s), NoLog: !r.HasLog, Windows: windowsOf(s),
	}
	isSameDrain := r.newestTimetable.Shutdown == f.Shutdown && r.newestTimetable.Planned == f.Planned
	hasSameTimes := r.newestTimetable.WaitEnd.Equal(f.WaitEnd) && slices.Equal(r.newestTimetable.Windows, f.Windows)
	if isSameDrain && hasSameTimes {
		return
	}
	r.newestTimetable = f
	r.addNow(f)
}

// windowsOf returns the windows of the buckets in the timetable of a shutdown.
func windowsOf(s *node.Shutdown) (windows []judge.NodeWindow) {
	waitEnd := s.Timetable.WaitEnd()
	for i, b := range s.Timetable.Budget.Buckets {
		end := s.Timetable.At(b.End)
		killsEnd := end.Add(-b.Unmount - b.Statuses)
		if killsEnd.After(waitEnd) {
			killsEnd = waitEnd
		}
		priority := b.Priority
		if i == 0 { // the first bucket also has the pods of all lower priorities
			priority = math.MinInt32
		}
		windows = append(windows, judge.NodeWindow{Priority: priority, OwnTime: b.Pods, KillsEnd: killsEnd, End: end})
	}
	return windows
}

// Effect records an effect of the newest step. Call it before the effect is carried out.
func (r *Recorder) Effect(e node.Effect) {
	switch e.Do {
	case node.Prepare, node.Hold, node.Unmount, node.OnRelease:
		r.stepCalls[e.Call] = true
		r.addNow(judge.NodeFact{What: judge.NodeDrainStepBegins, Call: e.Call, Text: string(e.Do)})
	case node.Sync:
		r.syncCalls[e.Call] = true
		r.addNow(judge.NodeFact{What: judge.NodeSyncBegins, Call: e.Call})
	case node.Abort:
		r.addNow(judge.NodeFact{What: judge.NodeAborted, Call: e.Call})
	case node.Kill:
		f := judge.NodeFact{What: judge.NodeKill, Pod: string(e.Pod.Key), Call: e.Call, Seconds: e.Seconds, Until: e.Until}
		if s := r.Draining(); s != nil {
			f.Shutdown, f.ByTerminateAll, f.BucketsOver = s.Number, isOfTerminateAll(s), s.DoneBuckets
		}
		r.addNow(f)
	case node.Publish:
		f := judge.NodeFact{What: judge.NodePublishBegins, Call: e.Call}
		if e.Shutdown != nil {
			f.Shutdown = e.Shutdown.Number
		}
		r.addNow(f)
	case node.Store, node.NewLog:
		for _, p := range e.Pods {
			r.addNow(judge.NodeFact{What: judge.NodeKillLogged, Pod: string(p.Key), Until: p.Deadline})
		}
	case node.CountPod:
		r.addNow(judge.NodeFact{What: judge.NodeCounted, Pod: string(e.Pod.Key), Failed: e.Pod.Ended.IsZero()})
	case node.KeepLock:
		r.addNow(judge.NodeFact{What: judge.NodeReleaseAnnounced, Until: e.Until})
	case node.ReleaseLock:
		r.addNow(judge.NodeFact{What: judge.NodeReleased})
	case node.TakeNextLock:
		r.addNow(judge.NodeFact{What: judge.NodeLockRequested})
	case node.Report:
		f := judge.NodeFact{What: judge.NodeReported, Shutdown: e.Shutdown.Number}
		for _, p := range e.Pods {
			f.Pods = append(f.Pods, string(p.Key))
		}
		r.addNow(f)
	case node.List, node.SendMessage, node.OnPlan, node.RetakeLock, node.Log, node.LogError, node.LogDrainBegins, node.RecordEvent, node.CountBucket:
		// irrelevant for the judge, or recorded elsewhere
	}
}

// EndStep records the state after the newest step. callsInProgress is the number of calls that have not returned.
func (r *Recorder) EndStep(callsInProgress int) {
	f := judge.NodeFact{What: judge.NodeState, State: r.node.State().String(), Refuses: r.node.Refuses(), Calls: callsInProgress}
	if s := r.node.Shutdown(); s != nil {
		f.Shutdown = s.Number
	}
	if s := r.Draining(); s != nil {
		f.Draining, f.BucketsOver = s.Number, s.DoneBuckets
	}
	r.addNow(f)
	r.shutdownBefore = r.node.Shutdown()
	r.wasCancelledBefore = r.shutdownBefore != nil && r.shutdownBefore.Cancelled
	r.drainBefore = r.Draining()
}
