package node_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// hostWaits is how long the host of a rig waits, which is more than the schedule of 30 s needs.
const hostWaits = 40 * time.Second

// rig is an agent with scripted surroundings. Lists, publications, syncs and OnRelease succeed at once; the test answers
// kills and other calls. With apiHangs, publications and all lists but the first hang.
type rig struct {
	t           *testing.T
	n           *node.Node
	now         time.Time
	pods        []string       // the names of the running pods
	effects     []string       // the effects since the beginning of the last call of inputs or wait, as text
	kills       map[string]int // the number of the newest kill call, by pod name
	tells       []node.Effect  // the messages to the API server that have no answer yet
	apiHangs    bool
	hungLists   int          // how many lists were requested with apiHangs
	publishCall int          // the number of the newest publication
	stored      node.Entries // the log of this agent
	previousLog node.Entries // the log of the previous agent
}

// newRig returns a rig with a new agent and the running pods low and critical, and a schedule of 20 s and 10 s.
func newRig(t *testing.T) *rig {
	c := node.Config{Schedule: plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}}
	c.Options.Steps = plan.Steps{Publish: true, Statuses: true}
	return &rig{t: t, n: node.New(c), now: time.Unix(1000, 0), pods: []string{"low", "critical"}, kills: map[string]int{}}
}

// inputs passes inputs without letting time pass, and returns the effects as text, such as "keeplock, kill low
// with 15".
func (r *rig) inputs(inputs ...node.Input) string {
	r.effects = nil
	for _, in := range inputs {
		r.step(in)
	}
	return strings.Join(r.effects, ", ")
}

// store carries out a Store or NewLog effect: the newest entry of each entity counts.
func (r *rig) store(e node.Effect) {
	if e.Do == node.NewLog {
		r.stored = node.Entries{}
	}
	if e.Shutdown != nil {
		r.stored.Shutdown = &node.Shutdown{}
		mustDecode(encode(e.Shutdown), r.stored.Shutdown)
	}
	for _, changed := range e.Pods {
		p := &node.Pod{Object: changed.Object} // which the JSON does not have
		mustDecode(encode(changed), p)
		r.stored.Pods = slices.DeleteFunc(r.stored.Pods, func(before *node.Pod) bool { return before.Key == p.Key })
		r.stored.Pods = append(r.stored.Pods, p)
	}
}

// step passes an input, records the effects, and then answers those that succeed at once.
func (r *rig) step(in node.Input) {
	for _, e := range r.n.Step(r.now, in) {
		switch e.Do {
		case node.Store, node.NewLog:
			r.store(e)
		case node.List:
			if r.apiHangs {
				r.hungLists++
				if isFirst := r.hungLists == 1; !isFirst {
					continue
				}
			}
			in := node.Listed{Call: e.Call}
			for _, name := range r.pods {
				in.Pods = append(in.Pods, rigPod(name))
			}
			defer r.step(in)
		case node.Sync, node.OnRelease:
			defer r.step(node.CallReturned{Call: e.Call})
		case node.Publish:
			r.publishCall = e.Call
			if !r.apiHangs {
				defer r.step(node.Published{Call: e.Call})
			}
			if e.Shutdown == nil {
				r.effects = append(r.effects, "clear")
			} else {
				r.effects = append(r.effects, "publish")
			}
		case node.Kill:
			r.kills[e.Pod.Name] = e.Call
			r.effects = append(r.effects, fmt.Sprintf("kill %s with %d", e.Pod.Name, e.Seconds))
		case node.SendMessage:
			r.tells = append(r.tells, e)
			r.effects = append(r.effects, "tell "+e.Pod.Name)
		case node.KeepLock, node.ReleaseLock, node.TakeNextLock, node.RetakeLock, node.Report, node.Log:
			r.effects = append(r.effects, strings.ToLower(string(e.Do)))
		default:
		}
	}
}

// wait lets time pass, with a Tick whenever the agent wants one, and returns the effects as text.
func (r *rig) wait(d time.Duration) string {
	r.effects = nil
	end := r.now.Add(d)
	for wake := r.n.Wake(); !wake.IsZero() && !wake.After(end); wake = r.n.Wake() {
		r.now = wake
		r.step(node.Tick{})
	}
	r.now = end
	return strings.Join(r.effects, ", ")
}

// endPods lets the kills of pods return, and the API server accept their final statuses.
func (r *rig) endPods(names ...string) {
	for _, name := range names {
		r.pods = slices.DeleteFunc(r.pods, func(pod string) bool { return pod == name })
		r.step(node.Killed{Call: r.kills[name], Key: types.UID(name), Outcome: "Graceful"})
		for _, e := range r.tells {
			r.step(node.MessageAnswered{Call: e.Call, Key: e.Pod.Key})
		}
		r.tells = nil
	}
}

// rigPod returns a pod with a grace period of 15 s. The name decides the rest: "critical" is in the bucket of
// 10 s, any other in that of 20 s, and "static" is a static pod.
func rigPod(name string) node.Pod {
	grace := int64(15)
	p := node.Pod{Key: types.UID(name), Name: name, Namespace: "default", Object: &v1.Pod{}}
	p.Object.Spec.TerminationGracePeriodSeconds = &grace
	if name == "critical" {
		p.Priority = 1000
	}
	p.Static = name == "static"
	return p
}

// The inputs. after is the time from now to the deadline of an announcement.

// hostAnnounces is an announcement of the host with a deadline.
func (r *rig) hostAnnounces(after time.Duration) node.Event {
	return node.Event{Event: source.Event{Origin: "logind", Kind: "reboot", Deadline: r.now.Add(after)}, Host: true}
}

// hostHasPending is the host's answer that a shutdown with a deadline is pending.
func (r *rig) hostHasPending(after time.Duration) node.HostAnswered {
	e := r.hostAnnounces(after).Event
	return node.HostAnswered{Known: true, Event: &e}
}

// triggerAnnounces is an announcement of Trigger, without a deadline.
func triggerAnnounces(origin string) node.Event {
	return node.Event{Event: source.Event{Origin: origin}}
}

// triggerCancels withdraws Trigger's announcement of an origin; "": all of them.
func triggerCancels(origin string) node.Event {
	return node.Event{Event: source.Event{Origin: origin, Cancelled: true}}
}

// hostCancels is the host's cancellation of its shutdown.
func hostCancels() node.Event { return node.Event{Event: source.Event{Cancelled: true}, Host: true} }

// nothingPending is the host's answer that it is not shutting down.
func nothingPending() node.HostAnswered { return node.HostAnswered{Known: true} }

// The functions below, down to cancelled, bring the agent of a rig into a state.

// none is an agent that has read an empty log and has no shutdown.
func none(r *rig) { r.step(node.LogRead{SameBoot: true}) }

// awaitingLog is an agent that cannot read the log yet, because another agent owns the state folder.
func awaitingLog(r *rig) { r.step(node.LogOpening{}) }

// draining returns a function that has the announcers announce a shutdown and lets 2 s pass. low is then being killed, and
// critical is not signalled yet.
func draining(announcers ...string) func(*rig) {
	return func(r *rig) {
		none(r)
		r.announce(announcers)
		require.Contains(r.t, r.kills, "low")
		r.wait(2 * time.Second)
	}
}

// announce has each announcer announce the shutdown: "host", with a deadline after hostWaits, or an origin of
// Trigger, without a deadline.
func (r *rig) announce(announcers []string) {
	for _, origin := range announcers {
		if origin == "host" {
			r.step(r.hostAnnounces(hostWaits))
		} else {
			r.step(triggerAnnounces(origin))
		}
	}
}

// awaitingHost returns a function that replaces the agent 2 s after it has begun to kill low. The new agent reads the log, but
// does not know yet whether the shutdown is still pending.
func awaitingHost(announcers ...string) func(*rig) {
	return func(r *rig) {
		draining(announcers...)(r)
		r.restart()
		require.Equal(r.t, node.StateAwaitingHost, r.n.State())
	}
}

// restart starts the next agent, which reads the log of this one.
func (r *rig) restart() {
	r.n, r.kills, r.tells = node.New(r.n.Config), map[string]int{}, nil
	r.step(node.LogRead{SameBoot: true, Entries: r.stored})
}

// awaitingHostTimeOver is like awaitingHost, but the new agent starts only when the time of the previous agent's shutdown is
// over. It does not know either whether that shutdown is still pending.
func awaitingHostTimeOver(announcers ...string) func(*rig) {
	return func(r *rig) {
		draining(announcers...)(r)
		r.now = r.now.Add(hostWaits)
		r.restart()
		require.Equal(r.t, node.StateAwaitingHost, r.n.State())
	}
}

// released is like draining, but then all pods end, so that the lock is released.
func released(announcers ...string) func(*rig) {
	return func(r *rig) {
		draining(announcers...)(r)
		r.endPods("low", "critical")
		require.Equal(r.t, node.StateReleased, r.n.State())
	}
}

// cancelled begins a shutdown, which kills low, and cancels the shutdown 2 s later.
func cancelled(r *rig) {
	draining("host")(r)
	r.inputs(hostCancels())
}

// restarted brings an agent into the state begin, replaces it by a new agent in the state then, and calls the functions
// do, which pass inputs to the new agent. The new agent has not read the log of the first one: the test passes that log
// with r.read.
func restarted(begin, then func(*rig), do ...func(*rig) string) func(*rig) {
	return func(r *rig) {
		begin(r)
		r.previousLog = r.stored.Clone()
		r.n, r.kills, r.tells = node.New(r.n.Config), map[string]int{}, nil
		then(r)
		for _, do := range do {
			do(r)
		}
	}
}

// announceIn25s has the host announce a shutdown whose deadline is in 25 s, which is earlier than the 40 s of hostWaits.
func announceIn25s(r *rig) string { return r.inputs(r.hostAnnounces(25 * time.Second)) }

// drainingIn25s begins a shutdown with announceIn25s and lets 2 s pass.
func drainingIn25s(r *rig) {
	none(r)
	announceIn25s(r)
	r.wait(2 * time.Second)
}

// announceAgain has the host announce a shutdown whose deadline is hostWaits from now.
func announceAgain(r *rig) string { return r.inputs(r.hostAnnounces(hostWaits)) }

// read passes the previous agent's log to the agent.
func (r *rig) read() string { return r.inputs(node.LogRead{SameBoot: true, Entries: r.previousLog}) }

// names returns the names of pods, as text.
func names(pods []*node.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// finalStatusInFlight ends a static pod and cancels its shutdown while the pod's final status is being sent.
func finalStatusInFlight(r *rig) {
	r.pods = []string{"low", "static"}
	draining("host")(r)
	r.endPods("low")
	r.step(node.Killed{Call: r.kills["static"], Key: "static", Outcome: "Graceful"})
	r.step(hostCancels())
	require.Len(r.t, r.tells, 1)
}

// startStatic says that the static pod is about to start, and returns the pods that may not start.
func (r *rig) startStatic() string {
	r.step(node.StaticPodStarts{Key: "static"})
	return names(r.n.Refused())
}

// givenUp lets the time of a shutdown pass, so that the lock is released, and then has the kill of critical fail for
// good. low is still terminating.
func givenUp(r *rig) {
	draining("host")(r)
	r.wait(hostWaits)
	r.step(node.Killed{Call: r.kills["critical"], Key: "critical", Err: errFault, NoRetry: true})
	require.Equal(r.t, node.StateReleased, r.n.State())
}

// withdrawalInFlight has the agent publish that no shutdown is in progress, and the API server not answer that call.
func withdrawalInFlight(r *rig) {
	none(r)
	r.apiHangs = true
	r.step(nothingPending())
}

// input returns a function that passes inputs, for those that do not depend on the time of the rig.
func input(in ...node.Input) func(*rig) string {
	return func(r *rig) string { return r.inputs(in...) }
}

// Each row of the table brings an agent into a state (begin) and passes an input (do). It says the effects (did) of the
// input, the state that follows (then), and whether pods are then refused (refuses).
//
// Effects: "publish" publishes the shutdown, and "clear" that there is none; "keeplock" keeps the lock until a time, "releaselock"
// releases it, "retakelock" tries to get it back, and "takenextlock" takes it for the next shutdown; "tell" sends a final status;
// "report" passes the report, and "log" writes a log line. If do returns names of pods instead of effects, did has these names.
//
// The seconds of the kills: 15 is the grace period of the pods. 13 is what is left of it 2 s after the first kill; 8 is what is
// left another 5 s later. 6 is the share of low if the host leaves 10 s for buckets of 20 s and 10 s: two thirds, rounded down.
// 10 is the bucket of critical, and 9 is what is left of 10 s after 1 s of waiting for a list that hangs. 0 means that the time
// of the shutdown is over.
func TestStateTransitions(t *testing.T) {
	const (
		admits  = false
		refuses = true
	)
	for _, row := range []struct {
		state   string
		begin   func(*rig)
		input   string
		do      func(*rig) string
		then    node.State
		refuses bool
		did     string
	}{
		{"none", none, "the host announces", func(r *rig) string { return r.inputs(r.hostAnnounces(hostWaits)) }, node.StateDraining, refuses, "keeplock, publish, keeplock, kill low with 15"},
		{"none", none, "the host cancels", input(hostCancels()), node.StateNone, admits, "clear"},
		{"none", none, "nothing is pending", input(nothingPending()), node.StateNone, admits, "clear"},
		{"none", none, "Trigger cancels", input(triggerCancels("notice")), node.StateNone, admits, "log"},
		{"none", none, "a shutdown is pending", func(r *rig) string { return r.inputs(r.hostHasPending(hostWaits)) }, node.StateDraining, refuses, "keeplock, publish, keeplock, kill low with 15"},
		{"none", none, "a shutdown is pending, its deadline has passed", func(r *rig) string { return r.inputs(r.hostHasPending(-time.Second)) }, node.StateNone, admits, "log, clear"},
		{"none", none, "the host cannot answer", input(node.HostAnswered{}), node.StateNone, admits, "clear"},
		{"none", none, "the host is unreachable", input(node.HostUnreached{}), node.StateNone, admits, "clear"},
		{"none", none, "TerminateAll", input(node.TerminateAll{}), node.StateNone, refuses, "kill low with 15"},
		{"none", none, "Run ends", input(node.RunEnds{}), node.StateNone, admits, "releaselock"},
		{"awaiting log", awaitingLog, "the host announces", func(r *rig) string { return r.inputs(r.hostAnnounces(hostWaits)) }, node.StateDraining, refuses, "keeplock, publish, keeplock, kill low with 15"},
		{"awaiting log", awaitingLog, "the host cancels", input(hostCancels()), node.StateAwaitingLog, admits, ""},
		{"awaiting log", awaitingLog, "nothing is pending", input(nothingPending()), node.StateAwaitingLog, admits, ""},
		{"awaiting log", awaitingLog, "Trigger cancels", input(triggerCancels("notice")), node.StateAwaitingLog, admits, ""},
		{"awaiting log", awaitingLog, "a shutdown is pending", func(r *rig) string { return r.inputs(r.hostHasPending(hostWaits)) }, node.StateDraining, refuses, "keeplock, publish, keeplock, kill low with 15"},
		{"awaiting log", awaitingLog, "a shutdown is pending, its deadline has passed", func(r *rig) string { return r.inputs(r.hostHasPending(-time.Second)) }, node.StateAwaitingLog, admits, "log"},
		{"awaiting log", awaitingLog, "the host cannot answer", input(node.HostAnswered{}), node.StateAwaitingLog, admits, ""},
		{"awaiting log", awaitingLog, "the host is unreachable", input(node.HostUnreached{}), node.StateAwaitingLog, admits, ""},
		{"awaiting log", awaitingLog, "TerminateAll", input(node.TerminateAll{}), node.StateAwaitingLog, refuses, ""},
		{"awaiting log", awaitingLog, "TerminateAll, and 5 s", func(r *rig) string { r.inputs(node.TerminateAll{}); return r.wait(5 * time.Second) }, node.StateAwaitingLog, refuses, "kill low with 15"},
		{"awaiting log", awaitingLog, "Run ends", input(node.RunEnds{}), node.StateAwaitingLog, admits, "releaselock"},
		{"awaiting log", awaitingLog, "the folder cannot be opened", input(node.LogRead{}), node.StateNone, admits, ""},
		{"awaiting host", awaitingHost("host"), "the host announces", func(r *rig) string { return r.inputs(r.hostAnnounces(hostWaits)) }, node.StateDraining, refuses, "keeplock, publish, kill low with 13, keeplock"},
		{"awaiting host", awaitingHost("host"), "event of another kind", func(r *rig) string { e := r.hostAnnounces(hostWaits); e.Kind = "poweroff"; return r.inputs(e) }, node.StateDraining, refuses, "takenextlock, keeplock, publish, kill low with 13, keeplock"},
		{"awaiting host", awaitingHost("host"), "event, earlier deadline", func(r *rig) string { return r.inputs(r.hostAnnounces(10 * time.Second)) }, node.StateDraining, refuses, "keeplock, publish, keeplock, kill low with 13, keeplock, kill low with 6"},
		{"awaiting host, time over", awaitingHostTimeOver("host"), "the host announces", func(r *rig) string { return r.inputs(r.hostAnnounces(hostWaits)) }, node.StateDraining, refuses, "takenextlock, keeplock, publish, kill low with 0, keeplock"},
		{"awaiting host", awaitingHost("host"), "the host cancels", input(hostCancels()), node.StateNone, admits, "takenextlock, clear, kill low with 13"},
		{"awaiting host", awaitingHost("notice"), "the host cancels, Trigger has not cancelled", input(hostCancels()), node.StateDraining, refuses, "keeplock, publish, kill low with 13, keeplock"},
		{"awaiting host", awaitingHost("host"), "nothing is pending", input(nothingPending()), node.StateNone, admits, "takenextlock, clear, kill low with 13"},
		{"awaiting host", awaitingHost("host", "notice"), "nothing is pending at the host, Trigger has not cancelled", input(nothingPending()), node.StateDraining, refuses, "keeplock, publish, kill low with 13, keeplock"},
		{"awaiting host, time over", awaitingHostTimeOver("host"), "nothing is pending", input(nothingPending()), node.StateNone, admits, "takenextlock, clear, kill low with 0"},
		{"awaiting host, time over", awaitingHostTimeOver("host", "notice"), "nothing is pending at the host, Trigger has not cancelled", input(nothingPending()), node.StateNone, admits, "takenextlock, clear, kill low with 0"},
		{"awaiting host", awaitingHost("notice"), "Trigger cancels", input(triggerCancels("notice")), node.StateNone, admits, "takenextlock, kill low with 13"},
		{"awaiting host", awaitingHost("notice"), "Trigger cancels, the host cannot answer", input(triggerCancels("notice"), node.HostAnswered{}), node.StateNone, admits, "takenextlock, kill low with 13, clear"},
		{"awaiting host", awaitingHost("notice"), "Trigger cancels, a shutdown is pending", func(r *rig) string { return r.inputs(triggerCancels(""), r.hostHasPending(hostWaits)) }, node.StateDraining, refuses, "takenextlock, kill low with 13, keeplock, publish, keeplock"},
		{"awaiting host", awaitingHost("host", "notice"), "Trigger cancels all, a shutdown is pending", func(r *rig) string { return r.inputs(triggerCancels(""), r.hostHasPending(hostWaits)) }, node.StateDraining, refuses, "keeplock, publish, kill low with 13, keeplock"},
		{"awaiting host", awaitingHost("host"), "a shutdown is pending", func(r *rig) string { return r.inputs(r.hostHasPending(hostWaits)) }, node.StateDraining, refuses, "keeplock, publish, kill low with 13, keeplock"},
		{"awaiting host, time over", awaitingHostTimeOver("host"), "a shutdown is pending", func(r *rig) string { return r.inputs(r.hostHasPending(hostWaits)) }, node.StateReleased, refuses, "publish, keeplock, releaselock, report"},
		{"awaiting host, time over", awaitingHostTimeOver("host"), "a shutdown of another kind is pending", func(r *rig) string { e := r.hostHasPending(hostWaits); e.Event.Kind = "poweroff"; return r.inputs(e) }, node.StateDraining, refuses, "takenextlock, keeplock, publish, kill low with 0, keeplock"},
		{"awaiting host", awaitingHost("host"), "a shutdown is pending, its deadline has passed", func(r *rig) string { return r.inputs(r.hostHasPending(-time.Second)) }, node.StateReleased, refuses, "publish, keeplock, releaselock, report"},
		{"awaiting host", awaitingHost("host"), "the host cannot answer", input(node.HostAnswered{}), node.StateDraining, refuses, "keeplock, publish, kill low with 13, keeplock"},
		{"awaiting host", awaitingHost("host"), "the host is unreachable, a lock was adopted", input(node.HostUnreached{Adopted: true}), node.StateDraining, refuses, "keeplock, publish, kill low with 13, keeplock"},
		{"awaiting host", awaitingHost("host"), "the host is unreachable, no lock was adopted", input(node.HostUnreached{}), node.StateAwaitingHost, refuses, ""},
		{"awaiting host", awaitingHost("notice"), "the host is unreachable, only Trigger has announced", input(node.HostUnreached{}), node.StateDraining, refuses, "keeplock, publish, kill low with 13, keeplock"},
		{"awaiting host", awaitingHost("host"), "the time passes", func(r *rig) string { return r.wait(hostWaits) }, node.StateNone, admits, "takenextlock, kill low with 0"},
		{"awaiting host", awaitingHost("host"), "TerminateAll", input(node.TerminateAll{}), node.StateAwaitingHost, refuses, ""},
		{"awaiting host", awaitingHost("host"), "TerminateAll, and 5 s", func(r *rig) string { r.inputs(node.TerminateAll{}); return r.wait(5 * time.Second) }, node.StateAwaitingHost, refuses, "kill low with 8"},
		{"awaiting host", awaitingHost("host"), "Run ends", input(node.RunEnds{}), node.StateAwaitingHost, refuses, "releaselock"},
		{"draining", draining("host"), "event of another announcer", input(triggerAnnounces("notice")), node.StateDraining, refuses, ""},
		{"draining", draining("notice"), "event of another announcer, which is the host", func(r *rig) string { return r.inputs(r.hostAnnounces(hostWaits)) }, node.StateDraining, refuses, ""},
		{"draining", draining("host"), "event of the same announcer, no earlier deadline", func(r *rig) string { return r.inputs(r.hostAnnounces(hostWaits)) }, node.StateDraining, refuses, ""},
		{"draining", draining("host"), "event of the same announcer, earlier deadline", func(r *rig) string { return r.inputs(r.hostAnnounces(10 * time.Second)) }, node.StateDraining, refuses, "keeplock, kill low with 6"},
		{"draining", draining("host"), "the host cancels", input(hostCancels()), node.StateNone, admits, "takenextlock, clear"},
		{"draining", draining("host", "notice"), "the host cancels, Trigger has not cancelled", input(hostCancels()), node.StateDraining, refuses, ""},
		{"draining", draining("host"), "nothing is pending", input(nothingPending()), node.StateNone, admits, "takenextlock, clear"},
		{"draining", draining("notice"), "nothing is pending at the host, Trigger has not cancelled", input(nothingPending()), node.StateDraining, refuses, ""},
		{"draining", draining("notice"), "Trigger cancels", input(triggerCancels("notice")), node.StateNone, admits, "takenextlock, clear"},
		{"draining", draining("notice"), "Trigger cancels for another origin", input(triggerCancels("person")), node.StateDraining, refuses, "log"},
		{"draining", draining("host", "notice"), "Trigger cancels all, the host has not cancelled", input(triggerCancels("")), node.StateDraining, refuses, ""},
		{"draining", draining("notice"), "a shutdown is pending", func(r *rig) string { return r.inputs(r.hostHasPending(hostWaits)) }, node.StateDraining, refuses, ""},
		{"draining", draining("host"), "a shutdown is pending, its deadline has passed", func(r *rig) string { return r.inputs(r.hostHasPending(-time.Second)) }, node.StateDraining, refuses, ""},
		{"draining", draining("host"), "the host cannot answer", input(node.HostAnswered{}), node.StateDraining, refuses, ""},
		{"draining", draining("host"), "the host is unreachable", input(node.HostUnreached{}), node.StateDraining, refuses, ""},
		{"draining", draining("host"), "the time passes", func(r *rig) string { return r.wait(hostWaits) }, node.StateReleased, refuses, "kill critical with 10, releaselock"},
		{"draining", draining("host"), "TerminateAll", input(node.TerminateAll{}), node.StateDraining, refuses, ""},
		{"draining", draining("host"), "Run ends", input(node.RunEnds{}), node.StateDraining, refuses, "releaselock, report"},
		{"draining", draining("host"), "Run ends, TerminateAll", input(node.RunEnds{}, node.TerminateAll{}), node.StateDraining, refuses, "releaselock, report"},
		{"released", released("host"), "event of another announcer", input(triggerAnnounces("notice")), node.StateReleased, refuses, "retakelock, keeplock, keeplock, releaselock, report"},
		{"released, pods run", released("host"), "event of another announcer", func(r *rig) string { r.pods = []string{"late"}; return r.inputs(triggerAnnounces("notice")) }, node.StateDraining, refuses, "retakelock, keeplock, keeplock, kill late with 15"},
		{"released", released("host"), "event of the same announcer", func(r *rig) string { return r.inputs(r.hostAnnounces(10 * time.Second)) }, node.StateReleased, refuses, ""},
		{"released", released("host"), "the host cancels", input(hostCancels()), node.StateNone, admits, "takenextlock, clear"},
		{"released", released("host", "notice"), "the host cancels, Trigger has not cancelled", input(hostCancels()), node.StateReleased, refuses, ""},
		{"released", released("host", "notice"), "Trigger cancels, the host has not cancelled", input(triggerCancels("")), node.StateReleased, refuses, ""},
		{"released", released("notice"), "Trigger cancels", input(triggerCancels("notice")), node.StateNone, admits, "takenextlock, clear"},
		{"released", released("host"), "nothing is pending", input(nothingPending()), node.StateNone, admits, "takenextlock, clear"},
		{"released", released("host"), "a shutdown is pending", func(r *rig) string { return r.inputs(r.hostHasPending(hostWaits)) }, node.StateReleased, refuses, ""},
		{"released", released("host"), "a shutdown is pending, its deadline has passed", func(r *rig) string { return r.inputs(r.hostHasPending(-time.Second)) }, node.StateReleased, refuses, ""},
		{"released", released("host"), "the host cannot answer", input(node.HostAnswered{}), node.StateReleased, refuses, ""},
		{"released", released("host"), "the host is unreachable", input(node.HostUnreached{}), node.StateReleased, refuses, ""},
		{"released", released("host"), "the time passes", func(r *rig) string { return r.wait(hostWaits) }, node.StateReleased, refuses, ""},
		{"released, pods run", released("host"), "TerminateAll", func(r *rig) string { r.pods = []string{"late"}; return r.inputs(node.TerminateAll{}) }, node.StateReleased, refuses, "kill late with 15"},
		{"released", released("host"), "Run ends", input(node.RunEnds{}), node.StateReleased, refuses, ""},
		{"awaiting host, time over", awaitingHostTimeOver("host"), "the host is unreachable", input(node.HostUnreached{}), node.StateNone, admits, "takenextlock, clear, kill low with 0"},
		{"awaiting log, the log comes", restarted(draining("host"), awaitingLog), "with a shutdown that has time left", (*rig).read, node.StateAwaitingHost, refuses, ""},
		{"awaiting log, the log comes", restarted(draining("host"), awaitingLog, input(nothingPending())), "with a shutdown, but nothing is pending at the host", (*rig).read, node.StateNone, admits, "takenextlock, clear, kill low with 13"},
		{"awaiting log, the log comes", restarted(draining("notice"), awaitingLog, input(triggerCancels(""), nothingPending())), "with a shutdown that Trigger has cancelled since", (*rig).read, node.StateNone, admits, "takenextlock, clear, kill low with 13"},
		{"awaiting log, the log comes", restarted(draining("host"), awaitingLog, input(node.HostAnswered{}, hostCancels())), "with a shutdown that the host has cancelled since", (*rig).read, node.StateNone, admits, "takenextlock, clear, kill low with 13"},
		{"awaiting log, the log comes", restarted(drainingIn25s, awaitingLog, announceIn25s), "while draining, its shutdown has an earlier deadline", (*rig).read, node.StateDraining, refuses, "keeplock, kill low with 13"},
		{"awaiting log, the log comes", restarted(draining("notice"), awaitingLog, announceAgain), "while draining, its announcer has not cancelled; the host cancels", func(r *rig) string { r.read(); return r.inputs(hostCancels()) }, node.StateDraining, refuses, ""},
		{"awaiting log, the log comes", restarted(draining("notice"), awaitingLog, input(triggerCancels("notice")), announceAgain), "while draining, its announcer has cancelled; the host cancels", func(r *rig) string { r.read(); return r.inputs(hostCancels()) }, node.StateNone, admits, "takenextlock, clear"},
		{"awaiting log, the log comes", restarted(cancelled, awaitingLog), "with a cancelled shutdown", (*rig).read, node.StateNone, admits, "kill low with 13"},
		{"awaiting log, the log comes", restarted(draining("host"), awaitingLog), "of another boot", func(r *rig) string { return r.inputs(node.LogRead{Entries: r.previousLog}) }, node.StateNone, admits, "tell low"},
		{"awaiting log, the log comes", restarted(draining("host"), awaitingLog, announceAgain), "while draining a shutdown of the same kind", (*rig).read, node.StateDraining, refuses, "kill low with 13"},
		{"awaiting log, the log comes", restarted(draining("host"), awaitingLog, announceAgain, input(hostCancels())), "after a newer shutdown was cancelled", (*rig).read, node.StateNone, admits, "kill low with 13"},
		{"awaiting log, the log comes", restarted(cancelled, awaitingLog, announceAgain), "while draining, its shutdown was cancelled", (*rig).read, node.StateDraining, refuses, "kill low with 13"},
		{"none, a final status is in flight", finalStatusInFlight, "a static pod asks to start", (*rig).startStatic, node.StateNone, admits, "static"},
		{"none, a final status is in flight", finalStatusInFlight, "a static pod asks to start, and the call returns", func(r *rig) string {
			r.startStatic()
			r.step(node.MessageAnswered{Call: r.tells[0].Call, Key: "static", Err: errFault})
			return names(r.n.Refused())
		}, node.StateNone, admits, ""},
		{"released, a pod is given up", givenUp, "TerminateAll, the host cancels", func(r *rig) string {
			r.inputs(node.TerminateAll{}, hostCancels())
			s, _ := r.n.TerminateAllDrain()
			return names(r.n.PodsOf(s))
		}, node.StateNone, refuses, "low, critical"},
		{"released, TerminateAll kills", released("host"), "event of another announcer", func(r *rig) string {
			r.pods = []string{"critical"}
			r.inputs(node.TerminateAll{})
			r.pods = append(r.pods, "late")
			r.inputs(triggerAnnounces("notice"))
			return names(r.n.PodsOf(r.n.Shutdown()))
		}, node.StateDraining, refuses, "low, critical, late"},
		{"none, the API server hangs", withdrawalInFlight, "event, and the answer when critical is killed", func(r *rig) string {
			r.step(r.hostAnnounces(10 * time.Second))
			r.endPods("low")
			r.now = r.n.Wake()
			return r.inputs(node.Published{Call: r.publishCall})
		}, node.StateDraining, refuses, "publish, kill critical with 9"},
		{"awaiting log, the log comes", restarted(draining("host"), awaitingLog), "but cannot be read", input(node.LogRead{}), node.StateNone, admits, ""},
	} {
		t.Run(row.state+"/"+row.input, func(t *testing.T) {
			r := newRig(t)
			row.begin(r)
			require.Equal(t, row.did, row.do(r))
			require.Equal(t, row.then, r.n.State())
			require.Equal(t, row.refuses, r.n.Refuses())
		})
	}
}

// Another agent owns the state folder, so this agent cannot read the log, which has an unfinished shutdown. TerminateAll waits
// 5 s for the log, and then begins a drain of its own, which kills critical. When the log comes, its shutdown gets another
// number than that drain, and critical keeps the drain's number.
func TestTerminateAllBeforeTheLogIsRead(t *testing.T) {
	r := newRig(t)
	restarted(draining("host"), awaitingLog)(r)
	r.step(node.TerminateAll{})
	r.wait(5 * time.Second)
	r.endPods("low")
	require.Contains(t, r.kills, "critical")

	r.stored = node.Entries{} // what is stored before the log is read does not count
	r.read()
	drain, _ := r.n.TerminateAllDrain()
	require.NotEqual(t, drain.Number, r.n.Shutdown().Number)
	i := slices.IndexFunc(r.stored.Pods, func(p *node.Pod) bool { return p.Name == "critical" })
	require.GreaterOrEqual(t, i, 0, "critical is stored")
	require.Equal(t, drain.Number, r.stored.Pods[i].SignalledBy)
}

// A shutdown kills a static pod with 15 s, and 12 s later the machine reboots. A new shutdown kills the pod again, before
// the new agent has read the log of the first one. The old deadline does not shorten the new grace period: when the log is read, the
// pod is not killed once more. It is still refused, because its new run has not ended.
func TestALogOfAnotherBootShortensNoGracePeriod(t *testing.T) {
	r := newRig(t)
	r.pods = []string{"low", "static"}
	restarted(func(r *rig) {
		draining("host")(r) // for 2 s
		r.wait(10 * time.Second)
		r.endPods("low")
	}, awaitingLog)(r)

	// The pod runs again after a reboot, and a new shutdown kills it. Only then does the log of the other boot come.
	r.announce([]string{"host"})
	r.wait(2 * time.Second)
	require.Contains(t, r.kills, "static")
	require.NotContains(t, r.inputs(node.LogRead{Entries: r.previousLog}), "kill")
	require.Contains(t, names(r.n.Refused()), "static")
}

// The agent dies after the release of the lock. The next one starts when the time of the shutdown is over, and the host cannot
// say (HostAnswered without Known) whether the shutdown is still pending. The shutdown then ends, and keeps the time of the
// release as its end.
func TestARestartKeepsTheTimeOfTheRelease(t *testing.T) {
	r := newRig(t)
	released("host")(r)
	ended := r.n.Shutdown().Ended
	r.wait(hostWaits)
	r.restart()
	r.inputs(node.HostAnswered{})
	require.Equal(t, node.StateNone, r.n.State())
	require.Equal(t, ended.Unix(), r.n.Shutdown().Ended.Unix())
}
