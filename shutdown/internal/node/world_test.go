package node_test

import (
	"container/heap"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/internal/noderecord"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

var errFault = errors.New("fault")

// worldPod is the real state of a pod.
type worldPod struct {
	node.Pod
	endsAfter          time.Duration // from its signal to its end, unless its grace period is shorter
	isStuck            bool          // it does not end even after its grace period
	boot               int           // the boot in which it started
	ends               time.Time     // when it ends; zero: it was not signalled
	ended              time.Time
	isReady            bool // at the API server
	killedInGeneration int  // the generation of the newest agent that has killed it; 0: no agent has, or the log has lost the kill
	isUnlogged         bool // its newest entry is not in the log
}

// world simulates everything around the agent, in virtual time: the host, the pods, the API server and the
// disk. It records what happens, so that package judge can check the promises of package node.
type world struct {
	record   noderecord.Recorder
	rng      *rand.Rand
	now      time.Time
	events   events // what will happen
	sequence int    // the number of the newest event, so that events at the same time keep their order
	boot     int    // the number of the current boot

	pods            []*worldPod
	pending         *source.Event // the host's pending shutdown
	hostAnswered    bool          // the host has sent this agent an event or answered whether a shutdown is pending
	isHeld          bool
	limit           time.Duration
	hostCanAnswer   bool // the host can say what is pending
	apiServes       bool // the API server works
	apiHangs        bool // its calls do not even return at their deadlines
	failOneIn       int  // one call in failOneIn fails; 0: none
	dieOneIn        int  // the agent dies after one effect in dieOneIn; 0: never
	isQuiet         bool // there are no more faults
	hasFixedLatency bool // every call takes 10 ms
	killerHangs     bool // kills do not return

	log     []logEntry
	durable []logEntry // the part of log that survives a power cut
	logBoot int        // the boot in which the log was begun
	isLossy bool       // the log may lack entries that an agent has stored

	config node.Config
	agent  *node.Node // nil: dead

	generation         int            // goes up with each agent that starts or dies
	calls              map[int]func() // calls in flight by number; the function makes the call fail
	hung               []func()       // makes the calls that hang return; quiesce calls it
	terminateAllCalled bool
	runEnded           bool
}

// logEntry is an entry of the log.
type logEntry struct {
	key  node.Key // "": the shutdown
	data []byte
	pod  node.Pod // zero: the shutdown
}

// event is something that will happen.
type event struct {
	at       time.Time
	sequence int
	do       func()
}

// events is a heap with the next event first.
type events []event

// The methods of heap.Interface.
func (q events) Len() int      { return len(q) }
func (q events) Swap(i, j int) { q[i], q[j] = q[j], q[i] }
func (q *events) Push(e any)   { *q = append(*q, e.(event)) }

// Less puts the next event first. Of two events at the same time, that is the one that was scheduled first.
func (q events) Less(i, j int) bool {
	if c := q[i].at.Compare(q[j].at); c != 0 {
		return c < 0
	}
	return q[i].sequence < q[j].sequence
}

// Pop removes the last element.
func (q *events) Pop() any {
	e := (*q)[len(*q)-1]
	*q = (*q)[:len(*q)-1]
	return e
}

// newWorld returns a world without faults.
func newWorld(seed uint64, c node.Config) *world {
	return &world{rng: rand.New(rand.NewPCG(seed, 41)), now: time.Unix(100, 0), apiServes: true, hostCanAnswer: true, isHeld: true, config: c}
}

// draw returns a random number from 0 to n-1.
func (w *world) draw(n int) int { return w.rng.IntN(n) }

// chance returns true once in n calls, on average. With n = 0 it never does.
func (w *world) chance(n int) bool { return n > 0 && w.draw(n) == 0 }

// latency draws the duration of a call, at most longest milliseconds.
func (w *world) latency(longest int) time.Duration {
	if w.hasFixedLatency {
		return 10 * time.Millisecond
	}
	return time.Duration(1+w.draw(longest)) * time.Millisecond
}

// isFaulty draws whether a call fails.
func (w *world) isFaulty() bool { return !w.isQuiet && w.chance(w.failOneIn) }

// add records a fact that is true from now on.
func (w *world) add(f judge.NodeFact) { w.record.AddAt(w.now, f) }

// schedule has do called after d.
func (w *world) schedule(d time.Duration, do func()) {
	w.sequence++
	heap.Push(&w.events, event{at: w.now.Add(d), sequence: w.sequence, do: do})
}

// after has do called after d, unless the agent has died by then.
func (w *world) after(d time.Duration, do func()) {
	generation := w.generation
	w.schedule(d, func() {
		if w.generation == generation && w.agent != nil {
			do()
		}
	})
}

// run lets d pass. It drops all further events after a panic of the agent, or after 20,000 facts, which only an endless
// loop of the agent reaches.
func (w *world) run(d time.Duration) {
	end := w.now.Add(d)
	for len(w.events) > 0 && !w.events[0].at.After(end) {
		e := heap.Pop(&w.events).(event)
		w.now = e.at
		e.do()
		n := len(w.record.Facts)
		hasPanicked := n > 0 && w.record.Facts[n-1].What == judge.NodePanicked
		if hasPanicked || n > 20_000 {
			w.events = nil
			return
		}
	}
	w.now = end
}

// addPod adds a running pod that ends endsAfter its signal. A negative grace period stands for a pod without one.
func (w *world) addPod(name string, priority int32, grace int64, endsAfter time.Duration) *worldPod {
	object := &v1.Pod{}
	object.Spec.Priority = &priority
	if grace >= 0 {
		object.Spec.TerminationGracePeriodSeconds = &grace
	}
	p := &worldPod{Pod: node.Pod{Key: node.Key(name), Namespace: "default", Name: name, Priority: priority, Object: object}, endsAfter: endsAfter}
	w.pods = append(w.pods, p)
	w.startPod(p)
	return p
}

// startPod starts a pod, also one that has ended.
func (w *world) startPod(p *worldPod) {
	p.boot, p.ends, p.ended, p.isReady, p.killedInGeneration = w.boot, time.Time{}, time.Time{}, true, 0
	w.record.AddPodRuns(w.now, &p.Pod, len(w.config.Schedule) > 0)
}

// podOf returns the pod with a key; nil: there is none.
func (w *world) podOf(key node.Key) *worldPod {
	for _, p := range w.pods {
		if p.Key == key {
			return p
		}
	}
	return nil
}

// end ends a pod, unless it has ended.
func (w *world) end(p *worldPod) {
	if p.ended.IsZero() {
		p.ended = w.now
		w.add(judge.NodeFact{What: judge.NodePodEnded, Pod: p.Name})
	}
}

// start starts an agent, which gets the log after delay. A negative delay means that another agent owns the state folder,
// so that this agent never gets the log.
func (w *world) start(delay time.Duration) {
	w.generation++
	w.agent = node.New(w.config)
	w.calls, w.hung = map[int]func(){}, nil
	w.terminateAllCalled, w.runEnded, w.hostAnswered = false, false, false
	w.record.HasLog = delay == 0
	w.record.Begin(w.agent, w.now)
	if delay != 0 {
		w.step(node.LogOpening{}, "the state folder is not locked yet")
	}
	switch {
	case delay < 0:
		w.after(10*time.Second, func() {
			w.isLossy, w.log, w.durable = true, nil, nil // the other agent has replaced the log
			w.forgetKills(func(*worldPod) bool { return true })
			w.step(node.LogRead{}, "the state folder is another agent's")
		})
	case delay == 0:
		w.read()
	default:
		w.after(delay, w.read)
	}
}

// read passes the log to the agent: the last entry of the shutdown and of each pod. The pods are in the order of their
// first entries.
func (w *world) read() {
	last, order := map[node.Key]logEntry{}, []node.Key{} // the shutdown has the key ""
	for _, e := range w.log {
		if _, isKnown := last[e.key]; !isKnown {
			order = append(order, e.key)
		}
		last[e.key] = e
	}
	in, logged := node.LogRead{SameBoot: w.logBoot == w.boot}, map[node.Key]*node.Pod{} // logged: those that were signalled
	for _, key := range order {
		if key == "" {
			in.Entries.Shutdown = &node.Shutdown{}
			mustDecode(last[key].data, in.Entries.Shutdown)
		} else {
			p := &node.Pod{Object: last[key].pod.Object} // which the JSON does not have
			mustDecode(last[key].data, p)
			in.Entries.Pods = append(in.Entries.Pods, p)
			if !p.Signalled.IsZero() {
				logged[key] = p
			}
		}
	}
	if w.isLossy {
		w.forgetKills(func(p *worldPod) bool { return logged[p.Key] == nil || p.isUnlogged })
	}
	w.record.HasLog = true
	for _, p := range w.pods { // the previous agent may have stored a kill, and died before it began
		entry := logged[p.Key]
		isKillLogged := entry != nil && entry.Ended.IsZero() && p.boot == w.logBoot
		if wasKilled := p.killedInGeneration != 0; isKillLogged && !wasKilled {
			w.add(judge.NodeFact{What: judge.NodeKillReadFromLog, Pod: p.Name})
		}
	}
	w.step(in, fmt.Sprintf("the log has %d entries, same boot %v", len(order), in.SameBoot))
}

// forgetKills records, for each pod that matches, that the agent cannot know of a kill by an earlier agent, because the log has
// lost it. The judge then does not expect the agent to continue that kill.
func (w *world) forgetKills(matches func(*worldPod) bool) {
	for _, p := range w.pods {
		if p.killedInGeneration != w.generation && matches(p) {
			p.killedInGeneration = 0
			w.add(judge.NodeFact{What: judge.NodeKillLostFromLog, Pod: p.Name})
		}
	}
}

// mustDecode decodes what encode has encoded.
func mustDecode(data []byte, to any) {
	if err := json.Unmarshal(data, to); err != nil {
		panic(err)
	}
}

// step passes an input to the agent and carries out the effects. what is the input's text in the record.
func (w *world) step(in node.Input, what string) {
	if w.agent == nil {
		return
	}
	effects, hasReturned := w.stepRecovering(in, what)
	if !hasReturned {
		return
	}
	for _, e := range effects {
		if !w.isQuiet && w.chance(w.dieOneIn) {
			w.die()
			return
		}
		w.record.Effect(e)
		w.carryOut(e)
	}
	w.record.EndStep(len(w.calls))
	w.tickAt(w.agent.Wake())
}

// stepRecovering calls Step, and records the step. If Step panics, it records the panic, and hasReturned is false.
func (w *world) stepRecovering(in node.Input, what string) (effects []node.Effect, hasReturned bool) {
	defer func() {
		if !hasReturned {
			w.add(judge.NodeFact{What: judge.NodePanicked, Text: fmt.Sprint(recover(), " at ", what)})
			w.agent = nil
		}
	}()
	switch in := in.(type) {
	case node.HostAnswered:
		w.hostAnswered = true
	case node.Event:
		w.hostAnswered = w.hostAnswered || in.Host
	}
	effects = w.agent.Step(w.now, in)
	w.record.Step(w.now, in, what, effects)
	return effects, true
}

// tickAt schedules a Tick for the time wake, the result of Wake. The Tick is dropped if Wake returns another time by then.
func (w *world) tickAt(wake time.Time) {
	if wake.IsZero() {
		return
	}
	w.after(wake.Sub(w.now), func() {
		if w.agent.Wake().Equal(wake) {
			w.step(node.Tick{}, "")
		}
	})
}

// begin registers a call in flight. It returns the function that makes the call return. That function calls answer,
// unless the call has returned before.
func (w *world) begin(e node.Effect, answer func(err error)) (returns func(err error)) {
	returns = func(err error) {
		if w.calls[e.Call] != nil {
			delete(w.calls, e.Call)
			answer(err)
		}
	}
	w.calls[e.Call] = func() { returns(errFault) }
	return returns
}

// call makes a call that returns within longest milliseconds. With a fault it fails, is up to 4 s late, or hangs: until
// quiesce, or perhaps only until its deadline.
func (w *world) call(e node.Effect, longest int, answer func(err error)) {
	returns := w.begin(e, answer)
	switch {
	case !w.isFaulty():
		w.after(w.latency(longest), func() { returns(nil) })
	case w.chance(3): // it hangs
		w.hung = append(w.hung, func() { returns(errFault) })
		if !e.Until.IsZero() && w.chance(2) {
			w.after(max(e.Until.Sub(w.now), 0), func() { returns(errFault) })
		}
	case w.chance(2):
		w.after(time.Duration(w.draw(4000))*time.Millisecond, func() { returns(nil) })
	default:
		w.after(w.latency(longest), func() { returns(errFault) })
	}
}

// carryOut carries out an effect.
func (w *world) carryOut(e node.Effect) {
	const longest, longestSync = 800, 20 // latencies in milliseconds
	switch e.Do {
	case node.Prepare, node.Hold, node.Unmount, node.OnRelease:
		w.call(e, longest, func(err error) {
			w.step(node.CallReturned{Call: e.Call, Err: err}, string(e.Do)+" returns")
		})
	case node.Sync:
		log := slices.Clip(w.log)
		w.call(e, longestSync, func(err error) {
			if err == nil {
				w.durable = log
			}
			w.step(node.CallReturned{Call: e.Call, Err: err}, "the log is synced")
		})
	case node.List:
		w.list(e)
	case node.Kill:
		w.kill(e)
	case node.SendMessage:
		w.tell(e)
	case node.Publish:
		w.publish(e)
	case node.Abort:
		if abort := w.calls[e.Call]; abort != nil && !w.isFaulty() {
			w.after(time.Millisecond, abort)
		}
	case node.Store, node.NewLog:
		w.store(e)
	case node.ReleaseLock:
		w.isHeld = false
		w.maybePowerOff()
	case node.RetakeLock:
		w.isHeld = w.chance(2)
	case node.TakeNextLock:
		w.isHeld = true
	case node.KeepLock, node.Report, node.CountPod, node.OnPlan, node.Log, node.LogError, node.LogDrainBegins, node.RecordEvent, node.CountBucket:
	}
}

// list makes the call that lists the running pods.
func (w *world) list(e node.Effect) {
	in := node.Listed{Call: e.Call}
	for _, p := range w.pods {
		if p.ended.IsZero() && p.boot == w.boot {
			in.Pods = append(in.Pods, p.Pod)
		}
	}
	const longest = 20 // milliseconds
	w.call(e, longest, func(err error) {
		in.Err = err
		if err != nil {
			in.Pods = nil
		}
		w.step(in, "")
	})
}

// kill begins to end a pod. The call returns when the pod has ended. With a fault it fails, hangs or is late.
func (w *world) kill(e node.Effect) {
	p := w.podOf(e.Pod.Key)
	p.killedInGeneration = w.generation
	in := node.Killed{Call: e.Call, Key: e.Pod.Key, Outcome: "Graceful"}
	returns := w.begin(e, func(err error) {
		in.Err = err
		if err != nil {
			in.Outcome = "Failed"
		}
		w.step(in, "")
	})
	if w.killerHangs {
		return
	}
	if w.isFaulty() {
		in.NoRetry = w.chance(8)
		if w.chance(6) {
			w.hung = append(w.hung, func() { returns(errFault) })
			return
		}
		w.after(time.Duration(1+w.draw(1500))*time.Millisecond, func() { returns(errFault) })
		return
	}
	if p.ended.IsZero() && !p.isStuck {
		end := w.now.Add(min(p.endsAfter, time.Duration(e.Seconds)*time.Second))
		if p.ends.IsZero() || end.Before(p.ends) {
			p.ends = end
			boot := p.boot
			w.schedule(end.Sub(w.now), func() {
				if p.ends.Equal(end) && p.boot == boot {
					w.end(p)
				}
			})
		}
	}
	late := w.latency(10)
	if w.isFaulty() {
		late = time.Duration(w.draw(3000)) * time.Millisecond
	}
	w.answerWhenEnded(p, late, returns)
}

// answerWhenEnded makes the call of a kill return after the pod has ended: late is the time from the end to the return. The
// kill of a pod that never ends does not return.
func (w *world) answerWhenEnded(p *worldPod, late time.Duration, returns func(error)) {
	switch {
	case !p.ended.IsZero():
		w.after(late, func() { returns(nil) })
	case !p.ends.IsZero():
		w.after(max(p.ends.Sub(w.now), time.Millisecond), func() { w.answerWhenEnded(p, late, returns) })
	}
}

// tell sends a message about a pod to the API server. The message may arrive although the call fails. A final status
// arrives before the call's deadline or never, as StatusFlusher demands.
func (w *world) tell(e node.Effect) {
	p, what := w.podOf(e.Pod.Key), e.Message
	if !w.apiServes {
		returns := w.begin(e, func(err error) { w.step(node.MessageAnswered{Call: e.Call, Key: p.Key, Err: err}, "") })
		w.failLate(e, returns)
		return
	}
	w.call(e, []int{30, 30, 1800}[w.draw(3)], func(err error) {
		arrives := err == nil || !w.isQuiet && w.chance(8)
		if isLate := what == node.FinalStatus && w.now.After(e.Until); arrives && !isLate {
			w.deliver(p, what)
		}
		in := node.MessageAnswered{Call: e.Call, Key: p.Key, Err: err}
		if err != nil && w.chance(4) {
			in.RetryAfter = time.Duration(w.draw(3)) * time.Second
		}
		w.step(in, "the API server: "+string(what)+" of "+p.Name)
	})
}

// deliver makes the API server accept a message about a pod.
func (w *world) deliver(p *worldPod, what node.Message) {
	switch what {
	case node.FinalStatus:
		w.add(judge.NodeFact{What: judge.NodeFinalStatusAccepted, Pod: p.Name})
	case node.NotReady:
		p.isReady = false
		w.add(judge.NodeFact{What: judge.NodeMarked, Pod: p.Name})
	case node.ReadyAgain:
		p.isReady = true
		w.add(judge.NodeFact{What: judge.NodeUnmarked, Pod: p.Name})
	}
}

// failLate makes a call to an API server that does not work fail at its deadline, or hang until quiesce.
func (w *world) failLate(e node.Effect, returns func(error)) {
	if w.apiHangs {
		w.hung = append(w.hung, func() { returns(errFault) })
		return
	}
	w.after(max(e.Until.Sub(w.now), 0), func() { returns(errFault) })
}

// publish sends the node's state to the API server. If the API server does not work, the call fails at its deadline or
// hangs.
func (w *world) publish(e node.Effect) {
	answer := func(err error) {
		w.step(node.Published{Call: e.Call, Err: err}, "")
	}
	if !w.apiServes {
		w.failLate(e, w.begin(e, answer))
		return
	}
	w.call(e, []int{30, 1500}[w.draw(2)], answer)
}

// store appends to the log, or begins a new one, if the agent owns it: an agent writes the log only once it has read it.
func (w *world) store(e node.Effect) {
	for _, p := range e.Pods {
		w.podOf(p.Key).isUnlogged = !w.record.HasLog
	}
	if !w.record.HasLog {
		w.isLossy = true
		return
	}
	if e.Do == node.NewLog {
		w.logBoot, w.isLossy, w.log = w.boot, false, nil
	}
	if e.Shutdown != nil {
		w.log = append(w.log, logEntry{data: encode(e.Shutdown)})
	}
	for _, p := range e.Pods {
		w.log = append(w.log, logEntry{key: p.Key, data: encode(p), pod: *p})
	}
}

// encode returns the JSON of an entity, as the log has it.
func encode(entity any) []byte {
	data, err := json.Marshal(entity)
	if err != nil {
		panic(err)
	}
	return data
}
