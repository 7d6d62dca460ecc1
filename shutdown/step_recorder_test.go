package shutdown

import (
	"time"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/noderecord"
)

// StepRecorder records the steps of a manager's core (package node) for package judge. It can record several managers of one
// node, one after the other. It infers from lists and kills which pods run and end.
type StepRecorder struct {
	Record noderecord.Recorder

	hasSchedule bool
	now         time.Time
	began       int                  // the index of the fact that the newest manager has begun
	signalled   map[string]bool      // the pods that were signalled and have not ended
	runs        map[string]bool      // whether each known pod runs
	tells       map[int]node.Message // the messages about pods to the API server, by the number of their call
}

// RecordSteps makes w record the steps of m. Call it before m is run.
func (m *Manager) RecordSteps(w *StepRecorder) {
	w.hasSchedule, w.now, w.began = len(m.shell.node.Schedule) > 0, m.shell.now(), len(w.Record.Facts)
	w.tells = map[int]node.Message{}
	if w.signalled == nil {
		w.signalled, w.runs = map[string]bool{}, map[string]bool{}
	}
	w.Record.HasLog = false // until the log is read
	w.Record.Begin(m.shell.node, w.now)
	m.shell.observe = w.step
}

// add records a fact with the time of the current step.
func (w *StepRecorder) add(f judge.NodeFact) { w.Record.AddAt(w.now, f) }

// step records one step of the core. The shell calls it after each step, before the effects are carried out.
func (w *StepRecorder) step(at time.Time, in node.Input, effects []node.Effect) {
	w.now = at
	w.input(in)
	w.Record.Step(at, in, "", effects)
	for _, e := range effects {
		w.effect(e)
		w.Record.Effect(e)
	}
	w.Record.EndStep(0)
}

// input records what the input of a step says about the pods.
func (w *StepRecorder) input(in node.Input) {
	switch in := in.(type) {
	case node.LogRead:
		w.read(in)
	case node.Listed:
		for _, p := range in.Pods {
			if _, isKnown := w.runs[string(p.Key)]; !isKnown {
				w.runsNow(&p)
			}
		}
	case node.Killed:
		if in.Err == nil {
			w.ended(string(in.Key))
		}
	case node.MessageAnswered:
		if in.Err == nil && w.tells[in.Call] == node.FinalStatus {
			w.add(judge.NodeFact{What: judge.NodeFinalStatusAccepted, Pod: string(in.Key)})
		}
	case node.StaticPodStarts:
		if key := string(in.Key); w.runs[key] { // it has ended without the manager's knowledge, and the next list has the new one
			w.ended(key)
			delete(w.runs, key)
		}
	}
}

// ended records that a pod has ended.
func (w *StepRecorder) ended(pod string) {
	w.runs[pod] = false
	delete(w.signalled, pod)
	w.add(judge.NodeFact{What: judge.NodePodEnded, Pod: pod})
}

// read records what a manager learns from the log of the previous manager: which pods the previous one was killing, and
// whether the machine has booted since.
func (w *StepRecorder) read(in node.LogRead) {
	known := map[string]bool{} // the signalled pods of the log; true: it has not ended
	for _, p := range in.Entries.Pods {
		if !p.Signalled.IsZero() {
			known[string(p.Key)] = p.Ended.IsZero()
		}
	}
	for pod := range w.signalled {
		if _, isKnown := known[pod]; !isKnown {
			w.add(judge.NodeFact{What: judge.NodeKillLostFromLog, Pod: pod})
		}
	}
	for pod, runs := range known {
		if runs {
			w.signalled[pod] = true
		}
		w.add(judge.NodeFact{What: judge.NodeKillReadFromLog, Pod: pod})
	}
	hasEntries, isDraining := in.Entries.Shutdown != nil || len(in.Entries.Pods) > 0, w.Record.Draining() != nil
	if hasEntries && !in.SameBoot {
		for pod := range known {
			w.runs[pod] = false
			w.add(judge.NodeFact{What: judge.NodePodEnded, Pod: pod})
		}
		if !isDraining { // otherwise the drain, which has begun after the boot, would be taken for one before it
			w.add(judge.NodeFact{What: judge.NodeBooted})
			clear(w.signalled)
		}
	}
	if hasEntries && !isDraining { // the fact that the manager has begun then says that it has the log
		w.Record.HasLog, w.Record.Facts[w.began].Failed = true, false
	}
}

// runsNow records that a pod runs.
func (w *StepRecorder) runsNow(p *node.Pod) {
	w.runs[string(p.Key)] = true
	delete(w.signalled, string(p.Key))
	w.Record.AddPodRuns(w.now, p, w.hasSchedule)
}

// effect remembers what an effect says about a pod.
func (w *StepRecorder) effect(e node.Effect) {
	switch e.Do {
	case node.SendMessage:
		w.tells[e.Call] = e.Message
	case node.Kill:
		key := string(e.Pod.Key)
		if !w.runs[key] && !w.signalled[key] && e.Pod.Signalled.Equal(w.now) { // it was started again after its end
			w.runsNow(e.Pod)
		}
		w.signalled[key] = true
	default: // it says nothing about a pod
	}
}
