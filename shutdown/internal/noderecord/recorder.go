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

	node         *node.Node // the newest agent
	now          time.Time  // of the newest step
	runHasEnded  bool
	newest       *node.Shutdown // after the previous step; nil: none
	wasCancelled bool           // newest was cancelled after the previous step
	drained      *node.Shutdown // the drain after the previous step; nil: none
	windows      judge.NodeFact // the newest timetable of this agent
	syncs, steps map[int]bool   // the calls that sync the log, and those that a drain waits for
}

// Begin records that another agent begins at a time, and forgets the steps of the previous one. Set HasLog first: the record
// says whether the agent has read the log.
func (r *Recorder) Begin(n *node.Node, at time.Time) {
	isFirst, steps := r.node == nil, n.Options.Steps
	// These stay true as long as every agent has had the step.
	r.Publishes = (isFirst || r.Publishes) && steps.Publish
	r.Statuses = (isFirst || r.Statuses) && steps.Statuses
	r.Marks = (isFirst || r.Marks) && steps.Readiness
	r.NoRollOver = n.Options.NoRollOver
	*r = Recorder{NodeRecord: r.NodeRecord, HasLog: r.HasLog, node: n, now: at, syncs: map[int]bool{}, steps: map[int]bool{}}
	r.AddAt(at, judge.NodeFact{What: judge.NodeAgentBegan, NoLog: !r.HasLog})
}

// AddAt records a fact that is true from the time at on.
func (r *Recorder) AddAt(at time.Time, f judge.NodeFact) {
	f.At = at
	r.Add(f)
}

// add records a fact of the newest step.
func (r *Recorder) add(f judge.NodeFact) { r.AddAt(r.now, f) }

// AddPodRuns records that a pod runs. hasSchedule says whether the agent has one: without it, a pod without a grace period
// gets Kubernetes' default of 30 s, otherwise the time of its bucket.
func (r *Recorder) AddPodRuns(at time.Time, p *node.Pod, hasSchedule bool) {
	f := judge.NodeFact{What: judge.NodePodRuns, Pod: string(p.Key), Priority: p.Priority, Seconds: -1}
	if grace := p.Object.Spec.TerminationGracePeriodSeconds; grace != nil {
		f.Seconds = *grace
	} else if !hasSchedule {
		f.Seconds = v1.DefaultTerminationGracePeriodSeconds
	}
	r.AddAt(at, f)
}

// Step records a step that the agent has made. Effect then records each of its effects, and EndStep the state after it. text
// says what the input is.
func (r *Recorder) Step(at time.Time, in node.Input, text string, effects []node.Effect) {
	r.now = at
	r.addInput(in, text, len(effects))
	if s := r.newest; s != nil && s.Cancelled && !r.wasCancelled { // this step has cancelled it
		r.add(judge.NodeFact{What: judge.NodeCancelled, Shutdown: s.Number})
	}
	// Another drain of the same shutdown begins. This is recorded before its timetable, which may end later than the old one.
	if slices.ContainsFunc(effects, func(e node.Effect) bool { return e.Do == node.RetakeLock }) {
		r.add(judge.NodeFact{What: judge.NodeRetaken})
	}
	r.addTimetable()
}

// addInput records what an input says. effects is the number of effects of the step.
func (r *Recorder) addInput(in node.Input, text string, effects int) {
	switch in := in.(type) {
	case node.Tick:
		r.add(judge.NodeFact{What: judge.NodeTicked, Effects: effects})
		return
	case node.Listed:
		f := judge.NodeFact{What: judge.NodeListed, Call: in.Call, Failed: in.Err != nil}
		for _, p := range in.Pods {
			f.Pods = append(f.Pods, string(p.Key))
		}
		r.add(f)
	case node.Killed:
		r.add(judge.NodeFact{What: judge.NodeKilled, Pod: string(in.Key), Call: in.Call, Failed: in.Err != nil, NoRetry: in.NoRetry})
	case node.Published:
		r.add(judge.NodeFact{What: judge.NodePublished, Call: in.Call, Failed: in.Err != nil})
	case node.CallReturned:
		if r.syncs[in.Call] {
			r.add(judge.NodeFact{What: judge.NodeSynced, Call: in.Call})
		}
		if r.steps[in.Call] {
			r.add(judge.NodeFact{What: judge.NodeStepped, Call: in.Call})
		}
	case node.StaticPodStarts:
		r.add(judge.NodeFact{What: judge.NodeStarts, Pod: string(in.Key)})
	case node.RunEnds:
		r.runHasEnded = true
		r.add(judge.NodeFact{What: judge.NodeRunEnded})
	case node.TerminateAll:
		r.add(judge.NodeFact{What: judge.NodeTerminateAll})
	}
	r.add(judge.NodeFact{What: judge.NodeInput, Text: text})
}

// Draining returns the shutdown whose pods are being killed, or were until the newest step; nil: none.
func (r *Recorder) Draining() *node.Shutdown {
	if s, isOver := r.node.TerminateAllDrain(); s != nil && isOwn(s) && !isOver {
		return s
	}
	if r.node.State() == node.StateDraining && !r.runHasEnded {
		return r.node.Shutdown()
	}
	if s := r.drained; s != nil && isOwn(s) {
		return s // it has ended in this step
	}
	return nil
}

// isOwn reports whether a shutdown is a drain of TerminateAll.
func isOwn(s *node.Shutdown) bool { return s.Origin == "TerminateAll" }

// addTimetable records the timetable of the drain, if it has changed.
func (r *Recorder) addTimetable() {
	s := r.Draining()
	if s == nil || s.Timetable == nil {
		return
	}
	table := s.Timetable
	f := judge.NodeFact{
		What: judge.NodeWindows, Shutdown: s.Number, WaitEnd: table.WaitEnd(), ReleaseBy: table.ReleaseBy(), Planned: s.HasFinalTable,
		ByTerminateAll: isOwn(s), NoLog: !r.HasLog,
	}
	for i, b := range table.Budget.Buckets {
		end := table.At(b.End)
		killsEnd := end.Add(-b.Unmount - b.Statuses)
		if killsEnd.After(f.WaitEnd) {
			killsEnd = f.WaitEnd
		}
		priority := b.Priority
		if i == 0 { // the first bucket also has the pods of all lower priorities
			priority = math.MinInt32
		}
		f.Windows = append(f.Windows, judge.NodeWindow{Priority: priority, OwnTime: b.Pods, KillsEnd: killsEnd, End: end})
	}
	isSameDrain := r.windows.Shutdown == f.Shutdown && r.windows.Planned == f.Planned
	hasSameTimes := r.windows.WaitEnd.Equal(f.WaitEnd) && slices.Equal(r.windows.Windows, f.Windows)
	if isSameDrain && hasSameTimes {
		return
	}
	r.windows = f
	r.add(f)
}

// Effect records an effect of the newest step. Call it before the effect is carried out.
func (r *Recorder) Effect(e node.Effect) {
	switch e.Do {
	case node.Prepare, node.Hold, node.Unmount, node.OnRelease:
		r.steps[e.Call] = true
		r.add(judge.NodeFact{What: judge.NodeStep, Call: e.Call, Text: string(e.Do)})
	case node.Sync:
		r.syncs[e.Call] = true
		r.add(judge.NodeFact{What: judge.NodeSync, Call: e.Call})
	case node.Abort:
		r.add(judge.NodeFact{What: judge.NodeAborted, Call: e.Call})
	case node.Kill:
		f := judge.NodeFact{What: judge.NodeKill, Pod: string(e.Pod.Key), Call: e.Call, Seconds: e.Seconds, Until: e.Until}
		if s := r.Draining(); s != nil {
			f.Shutdown, f.ByTerminateAll, f.Done = s.Number, isOwn(s), s.DoneBuckets
		}
		r.add(f)
	case node.Publish:
		f := judge.NodeFact{What: judge.NodePublish, Call: e.Call}
		if e.Shutdown != nil {
			f.Shutdown = e.Shutdown.Number
		}
		r.add(f)
	case node.Store, node.NewLog:
		for _, p := range e.Pods {
			r.add(judge.NodeFact{What: judge.NodeStored, Pod: string(p.Key), Until: p.Deadline})
		}
	case node.CountPod:
		r.add(judge.NodeFact{What: judge.NodeCounted, Pod: string(e.Pod.Key), Failed: e.Pod.Ended.IsZero()})
	case node.KeepLock:
		r.add(judge.NodeFact{What: judge.NodeSuspended, Until: e.Until})
	case node.ReleaseLock:
		r.add(judge.NodeFact{What: judge.NodeReleased})
	case node.TakeNextLock:
		r.add(judge.NodeFact{What: judge.NodeHeldAgain})
	case node.Report:
		f := judge.NodeFact{What: judge.NodeReported, Shutdown: e.Shutdown.Number}
		for _, p := range e.Pods {
			f.Pods = append(f.Pods, string(p.Key))
		}
		r.add(f)
	case node.List, node.SendMessage, node.OnPlan, node.RetakeLock, node.Log, node.LogError, node.LogDrainBegins, node.RecordEvent, node.CountBucket:
		// irrelevant for the judge, or recorded elsewhere
	}
}

// EndStep records the state after the newest step. calls is the number of calls in progress.
func (r *Recorder) EndStep(calls int) {
	f := judge.NodeFact{What: judge.NodeState, State: r.node.State().String(), Refuses: r.node.Refuses(), Calls: calls}
	if s := r.node.Shutdown(); s != nil {
		f.Shutdown = s.Number
	}
	if s := r.Draining(); s != nil {
		f.Drain, f.Done = s.Number, s.DoneBuckets
	}
	r.add(f)
	r.newest = r.node.Shutdown()
	r.wasCancelled = r.newest != nil && r.newest.Cancelled
	r.drained = r.Draining()
}
