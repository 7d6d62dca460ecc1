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

// limit is how long the host waits.
const hostWaits = 40 * time.Second

// rig drives an agent whose lists, publications, syncs and OnRelease are answered at once, and whose
// kills and other calls by hand. If it hangs, that is true of publications and of all lists but the first, too.
type rig struct {
	t       *testing.T
	n       *node.Node
	now     time.Time
	pods    []string // that run
	did     []string // by the inputs since the newest call of tell
	kills   map[string]int
	tells   []node.Effect
	hangs   bool
	lists   int   // that were asked for while it hangs
	publish int   // the newest call
	entries []any // that were stored
	left    []any // those of the agent before
}

func newRig(t *testing.T) *rig {
	c := node.Config{Schedule: plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}}
	c.Options.Steps = plan.Steps{Publish: true, Statuses: true}
	return &rig{t: t, n: node.New(c), now: time.Unix(1000, 0), pods: []string{"low", "critical"}, kills: map[string]int{}}
}

// tell passes inputs at once, and returns what the agent does.
func (r *rig) tell(inputs ...node.Input) string {
	r.did = nil
	for _, in := range inputs {
		r.step(in)
	}
	return strings.Join(r.did, ", ")
}

func (r *rig) step(in node.Input) {
	for _, e := range r.n.Step(r.now, in) {
		switch e.Do {
		case node.Store, node.NewLog:
			if e.Shutdown != nil {
				var s node.Shutdown
				mustDecode(encode(e.Shutdown), &s)
				r.entries = append(r.entries, s)
			}
			for _, stored := range e.Pods {
				var p node.Pod
				mustDecode(encode(stored), &p)
				r.entries = append(r.entries, p)
			}
		case node.List:
			if r.hangs {
				if r.lists++; r.lists > 1 {
					continue
				}
			}
			in := node.Listed{Call: e.Call}
			for _, name := range r.pods {
				in.Pods = append(in.Pods, rigPod(name))
			}
			defer r.step(in)
		case node.Sync, node.OnRelease:
			defer r.step(node.Answered{Call: e.Call})
		case node.Publish:
			if r.publish = e.Call; !r.hangs {
				defer r.step(node.Published{Call: e.Call})
			}
			if e.Shutdown == nil {
				r.did = append(r.did, "clear")
			} else {
				r.did = append(r.did, "publish")
			}
		case node.Kill:
			r.kills[e.Pod.Name] = e.Call
			r.did = append(r.did, fmt.Sprintf("kill %s with %d", e.Pod.Name, e.Seconds))
		case node.Tell:
			r.tells = append(r.tells, e)
			r.did = append(r.did, "tell "+e.Pod.Name)
		case node.Suspend, node.Release, node.HoldAgain, node.Retake, node.Report, node.Log:
			r.did = append(r.did, strings.ToLower(string(e.Do)))
		default:
		}
	}
}

// wait lets time pass.
func (r *rig) wait(d time.Duration) string {
	r.did = nil
	end := r.now.Add(d)
	for wake := r.n.Wake(); !wake.IsZero() && !wake.After(end); wake = r.n.Wake() {
		r.now = wake
		r.step(node.Tick{})
	}
	r.now = end
	return strings.Join(r.did, ", ")
}

// ends ends pods, with their final statuses.
func (r *rig) ends(names ...string) {
	for _, name := range names {
		r.pods = slices.DeleteFunc(r.pods, func(pod string) bool { return pod == name })
		r.step(node.Killed{Call: r.kills[name], Key: types.UID(name), Outcome: "Graceful"})
		for _, e := range r.tells {
			r.step(node.Told{Call: e.Call, Key: e.Pod.Key})
		}
		r.tells = nil
	}
}

// rigPod returns a pod with a grace period of 15 s.
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

// The inputs.

func (r *rig) host(after time.Duration) node.Event {
	return node.Event{Event: source.Event{Origin: "logind", Kind: "reboot", Deadline: r.now.Add(after)}, Host: true}
}

func (r *rig) pending(after time.Duration) node.Pending {
	e := r.host(after).Event
	return node.Pending{Known: true, Event: &e}
}

func trigger(origin string) node.Event { return node.Event{Event: source.Event{Origin: origin}} }

func triggerTakesBack(origin string) node.Event {
	return node.Event{Event: source.Event{Origin: origin, Cancelled: true}}
}

func hostTakesBack() node.Event { return node.Event{Event: source.Event{Cancelled: true}, Host: true} }

func nothingPending() node.Pending { return node.Pending{Known: true} }

// The states.

func none(r *rig) { r.step(node.Read{SameBoot: true}) }

func opening(r *rig) { r.step(node.Opening{}) }

// draining has low killed 2 s ago, and critical to come.
func draining(announcers ...string) func(*rig) {
	return func(r *rig) {
		none(r)
		r.announce(announcers)
		require.Contains(r.t, r.kills, "low")
		r.wait(2 * time.Second)
	}
}

func (r *rig) announce(announcers []string) {
	for _, origin := range announcers {
		if origin == "host" {
			r.step(r.host(hostWaits))
		} else {
			r.step(trigger(origin))
		}
	}
}

// unsettled has the log of an agent that has died, with low killed 2 s ago.
func unsettled(announcers ...string) func(*rig) {
	return func(r *rig) {
		draining(announcers...)(r)
		r.restart()
		require.Equal(r.t, node.StateUnsettled, r.n.State())
	}
}

// restart starts the next agent.
func (r *rig) restart() {
	r.n, r.kills, r.tells = node.New(r.n.Config), map[string]int{}, nil
	r.step(node.Read{SameBoot: true, Entries: r.entries})
}

// unsettledPast is unsettled after the time of the shutdown, of which nothing was killed for want of an
// agent.
func unsettledPast(announcers ...string) func(*rig) {
	return func(r *rig) {
		draining(announcers...)(r)
		r.now = r.now.Add(hostWaits)
		r.restart()
		require.Equal(r.t, node.StateUnsettled, r.n.State())
	}
}

// released has all pods ended.
func released(announcers ...string) func(*rig) {
	return func(r *rig) {
		draining(announcers...)(r)
		r.ends("low", "critical")
		require.Equal(r.t, node.StateReleased, r.n.State())
	}
}

// cancelled has low killed by a shutdown that was cancelled 2 s later.
func cancelled(r *rig) {
	draining("host")(r)
	r.tell(hostTakesBack())
}

// leaves has an agent die in a state, and the next one begin in another.
func leaves(begin, then func(*rig), do ...func(*rig) string) func(*rig) {
	return func(r *rig) {
		begin(r)
		r.left = r.entries
		r.n, r.kills, r.tells = node.New(r.n.Config), map[string]int{}, nil
		then(r)
		for _, do := range do {
			do(r)
		}
	}
}

func drainFor25s(r *rig) string { return r.tell(r.host(25 * time.Second)) }

func drainingFor25s(r *rig) {
	none(r)
	drainFor25s(r)
	r.wait(2 * time.Second)
}

func announceAgain(r *rig) string { return r.tell(r.host(hostWaits)) }

// read has the agent read the log of the one before.
func (r *rig) read() string { return r.tell(node.Read{SameBoot: true, Entries: r.left}) }

// names returns the names of pods.
func names(pods []*node.Pod) string {
	var names []string
	for _, p := range pods {
		names = append(names, p.Name)
	}
	return strings.Join(names, ", ")
}

// apiUpdate has the final status of a static pod under way, and the shutdown that has killed it cancelled.
func apiUpdate(r *rig) {
	r.pods = []string{"low", "static"}
	draining("host")(r)
	r.ends("low")
	r.step(node.Killed{Call: r.kills["static"], Key: "static", Outcome: "Graceful"})
	r.step(hostTakesBack())
	require.Len(r.t, r.tells, 1)
}

// startStatic has the static pod ask to start, and returns who is refused.
func (r *rig) startStatic() string {
	r.step(node.Start{Key: "static"})
	return names(r.n.Refused())
}

// givenUp has the kill of critical failed for good, and the lock released. low runs.
func givenUp(r *rig) {
	draining("host")(r)
	r.wait(hostWaits)
	r.step(node.Killed{Call: r.kills["critical"], Key: "critical", Err: errFault, NoRetry: true})
	require.Equal(r.t, node.StateReleased, r.n.State())
}

// publishing has the withdrawal of the node's state under way.
func publishing(r *rig) {
	none(r)
	r.hangs = true
	r.step(nothingPending())
}

// now is an input that does not depend on the moment.
func now(in ...node.Input) func(*rig) string {
	return func(r *rig) string { return r.tell(in...) }
}

func TestStates(t *testing.T) {
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
		{"none", none, "event", func(r *rig) string { return r.tell(r.host(hostWaits)) }, node.StateDraining, refuses, "suspend, publish, suspend, kill low with 15"},
		{"none", none, "the host takes back", now(hostTakesBack()), node.StateNone, admits, "clear"},
		{"none", none, "Pending says no", now(nothingPending()), node.StateNone, admits, "clear"},
		{"none", none, "Trigger takes back", now(triggerTakesBack("notice")), node.StateNone, admits, "log"},
		{"none", none, "Pending says yes", func(r *rig) string { return r.tell(r.pending(hostWaits)) }, node.StateDraining, refuses, "suspend, publish, suspend, kill low with 15"},
		{"none", none, "Pending says yes, in the past", func(r *rig) string { return r.tell(r.pending(-time.Second)) }, node.StateNone, admits, "log, clear"},
		{"none", none, "Pending cannot tell", now(node.Pending{}), node.StateNone, admits, "clear"},
		{"none", none, "the host is not reached", now(node.Unreached{}), node.StateNone, admits, "clear"},
		{"none", none, "TerminateAll", now(node.TerminateAll{}), node.StateNone, refuses, "kill low with 15"},
		{"none", none, "Run ends", now(node.RunEnds{}), node.StateNone, admits, "release"},
		{"opening", opening, "event", func(r *rig) string { return r.tell(r.host(hostWaits)) }, node.StateDraining, refuses, "suspend, publish, suspend, kill low with 15"},
		{"opening", opening, "the host takes back", now(hostTakesBack()), node.StateOpening, admits, ""},
		{"opening", opening, "Pending says no", now(nothingPending()), node.StateOpening, admits, ""},
		{"opening", opening, "Trigger takes back", now(triggerTakesBack("notice")), node.StateOpening, admits, ""},
		{"opening", opening, "Pending says yes", func(r *rig) string { return r.tell(r.pending(hostWaits)) }, node.StateDraining, refuses, "suspend, publish, suspend, kill low with 15"},
		{"opening", opening, "Pending says yes, in the past", func(r *rig) string { return r.tell(r.pending(-time.Second)) }, node.StateOpening, admits, "log"},
		{"opening", opening, "Pending cannot tell", now(node.Pending{}), node.StateOpening, admits, ""},
		{"opening", opening, "the host is not reached", now(node.Unreached{}), node.StateOpening, admits, ""},
		{"opening", opening, "TerminateAll", now(node.TerminateAll{}), node.StateOpening, refuses, ""},
		{"opening", opening, "TerminateAll, and 5 s", func(r *rig) string { r.tell(node.TerminateAll{}); return r.wait(5 * time.Second) }, node.StateOpening, refuses, "kill low with 15"},
		{"opening", opening, "Run ends", now(node.RunEnds{}), node.StateOpening, admits, "release"},
		{"opening", opening, "the folder is not to be had", now(node.Read{}), node.StateNone, admits, ""},
		{"unsettled", unsettled("host"), "event", func(r *rig) string { return r.tell(r.host(hostWaits)) }, node.StateDraining, refuses, "suspend, publish, kill low with 13, suspend"},
		{"unsettled", unsettled("host"), "event of another kind", func(r *rig) string { e := r.host(hostWaits); e.Kind = "poweroff"; return r.tell(e) }, node.StateDraining, refuses, "holdagain, suspend, publish, kill low with 13, suspend"},
		{"unsettled", unsettled("host"), "event, earlier deadline", func(r *rig) string { return r.tell(r.host(10 * time.Second)) }, node.StateDraining, refuses, "suspend, publish, suspend, kill low with 13, suspend, kill low with 6"},
		{"unsettled, H past", unsettledPast("host"), "event", func(r *rig) string { return r.tell(r.host(hostWaits)) }, node.StateDraining, refuses, "holdagain, suspend, publish, kill low with 0, suspend"},
		{"unsettled", unsettled("host"), "the host takes back", now(hostTakesBack()), node.StateNone, admits, "holdagain, clear, kill low with 13"},
		{"unsettled", unsettled("notice"), "the host takes back, Trigger's is left", now(hostTakesBack()), node.StateDraining, refuses, "suspend, publish, kill low with 13, suspend"},
		{"unsettled", unsettled("host"), "Pending says no", now(nothingPending()), node.StateNone, admits, "holdagain, clear, kill low with 13"},
		{"unsettled", unsettled("host", "notice"), "Pending says no, Trigger's is left", now(nothingPending()), node.StateDraining, refuses, "suspend, publish, kill low with 13, suspend"},
		{"unsettled, H past", unsettledPast("host"), "Pending says no", now(nothingPending()), node.StateNone, admits, "holdagain, clear, kill low with 0"},
		{"unsettled, H past", unsettledPast("host", "notice"), "Pending says no, Trigger's is left", now(nothingPending()), node.StateNone, admits, "holdagain, clear, kill low with 0"},
		{"unsettled", unsettled("notice"), "Trigger takes back", now(triggerTakesBack("notice")), node.StateUnsettled, refuses, ""},
		{"unsettled", unsettled("notice"), "Trigger takes back, Pending cannot tell", now(triggerTakesBack("notice"), node.Pending{}), node.StateNone, admits, "holdagain, clear, kill low with 13"},
		{"unsettled", unsettled("host", "notice"), "Trigger takes back all, Pending says yes", func(r *rig) string { return r.tell(triggerTakesBack(""), r.pending(hostWaits)) }, node.StateDraining, refuses, "suspend, publish, kill low with 13, suspend"},
		{"unsettled", unsettled("host"), "Pending says yes", func(r *rig) string { return r.tell(r.pending(hostWaits)) }, node.StateDraining, refuses, "suspend, publish, kill low with 13, suspend"},
		{"unsettled, H past", unsettledPast("host"), "Pending says yes", func(r *rig) string { return r.tell(r.pending(hostWaits)) }, node.StateReleased, refuses, "publish, suspend, release, report"},
		{"unsettled, H past", unsettledPast("host"), "Pending says yes, another kind", func(r *rig) string { e := r.pending(hostWaits); e.Event.Kind = "poweroff"; return r.tell(e) }, node.StateDraining, refuses, "holdagain, suspend, publish, kill low with 0, suspend"},
		{"unsettled", unsettled("host"), "Pending says yes, in the past", func(r *rig) string { return r.tell(r.pending(-time.Second)) }, node.StateReleased, refuses, "publish, suspend, release, report"},
		{"unsettled", unsettled("host"), "Pending cannot tell", now(node.Pending{}), node.StateDraining, refuses, "suspend, publish, kill low with 13, suspend"},
		{"unsettled", unsettled("host"), "the host is not reached, a lock was adopted", now(node.Unreached{Adopted: true}), node.StateDraining, refuses, "suspend, publish, kill low with 13, suspend"},
		{"unsettled", unsettled("host"), "the host is not reached, and no lock", now(node.Unreached{}), node.StateUnsettled, refuses, ""},
		{"unsettled", unsettled("host"), "H passes", func(r *rig) string { return r.wait(hostWaits) }, node.StateNone, admits, "holdagain, kill low with 0"},
		{"unsettled", unsettled("host"), "TerminateAll", now(node.TerminateAll{}), node.StateUnsettled, refuses, ""},
		{"unsettled", unsettled("host"), "TerminateAll, and 5 s", func(r *rig) string { r.tell(node.TerminateAll{}); return r.wait(5 * time.Second) }, node.StateUnsettled, refuses, "kill low with 8"},
		{"unsettled", unsettled("host"), "Run ends", now(node.RunEnds{}), node.StateUnsettled, refuses, "release"},
		{"draining", draining("host"), "event of another announcer", now(trigger("notice")), node.StateDraining, refuses, ""},
		{"draining", draining("notice"), "event of another announcer, the host", func(r *rig) string { return r.tell(r.host(hostWaits)) }, node.StateDraining, refuses, ""},
		{"draining", draining("host"), "the same announcer, not earlier", func(r *rig) string { return r.tell(r.host(hostWaits)) }, node.StateDraining, refuses, ""},
		{"draining", draining("host"), "earlier deadline", func(r *rig) string { return r.tell(r.host(10 * time.Second)) }, node.StateDraining, refuses, "suspend, kill low with 6"},
		{"draining", draining("host"), "the host takes back", now(hostTakesBack()), node.StateNone, admits, "holdagain, clear"},
		{"draining", draining("host", "notice"), "the host takes back, Trigger's is left", now(hostTakesBack()), node.StateDraining, refuses, ""},
		{"draining", draining("host"), "Pending says no", now(nothingPending()), node.StateNone, admits, "holdagain, clear"},
		{"draining", draining("notice"), "Pending says no, Trigger's is left", now(nothingPending()), node.StateDraining, refuses, ""},
		{"draining", draining("notice"), "Trigger takes back", now(triggerTakesBack("notice")), node.StateNone, admits, "holdagain, clear"},
		{"draining", draining("notice"), "Trigger takes back another", now(triggerTakesBack("person")), node.StateDraining, refuses, "log"},
		{"draining", draining("host", "notice"), "Trigger takes all back, the host's stands", now(triggerTakesBack("")), node.StateDraining, refuses, ""},
		{"draining", draining("notice"), "Pending says yes", func(r *rig) string { return r.tell(r.pending(hostWaits)) }, node.StateDraining, refuses, ""},
		{"draining", draining("host"), "Pending says yes, in the past", func(r *rig) string { return r.tell(r.pending(-time.Second)) }, node.StateDraining, refuses, ""},
		{"draining", draining("host"), "Pending cannot tell", now(node.Pending{}), node.StateDraining, refuses, ""},
		{"draining", draining("host"), "the host is not reached", now(node.Unreached{}), node.StateDraining, refuses, ""},
		{"draining", draining("host"), "H passes", func(r *rig) string { return r.wait(hostWaits) }, node.StateReleased, refuses, "kill critical with 10, release"},
		{"draining", draining("host"), "TerminateAll", now(node.TerminateAll{}), node.StateDraining, refuses, ""},
		{"draining", draining("host"), "Run ends", now(node.RunEnds{}), node.StateDraining, refuses, "release, report"},
		{"draining", draining("host"), "Run ends, TerminateAll", now(node.RunEnds{}, node.TerminateAll{}), node.StateDraining, refuses, "release, report"},
		{"released", released("host"), "event of another announcer", now(trigger("notice")), node.StateReleased, refuses, "retake, suspend, suspend, release, report"},
		{"released, pods run", released("host"), "event of another announcer", func(r *rig) string { r.pods = []string{"late"}; return r.tell(trigger("notice")) }, node.StateDraining, refuses, "retake, suspend, suspend, kill late with 15"},
		{"released", released("host"), "the same announcer", func(r *rig) string { return r.tell(r.host(10 * time.Second)) }, node.StateReleased, refuses, ""},
		{"released", released("host"), "the host takes back", now(hostTakesBack()), node.StateNone, admits, "holdagain, clear"},
		{"released", released("host", "notice"), "the host takes back, Trigger's is left", now(hostTakesBack()), node.StateReleased, refuses, ""},
		{"released", released("host", "notice"), "Trigger takes back, the host's stands", now(triggerTakesBack("")), node.StateReleased, refuses, ""},
		{"released", released("notice"), "Trigger takes back", now(triggerTakesBack("notice")), node.StateNone, admits, "holdagain, clear"},
		{"released", released("host"), "Pending says no", now(nothingPending()), node.StateNone, admits, "holdagain, clear"},
		{"released", released("host"), "Pending says yes", func(r *rig) string { return r.tell(r.pending(hostWaits)) }, node.StateReleased, refuses, ""},
		{"released", released("host"), "Pending says yes, in the past", func(r *rig) string { return r.tell(r.pending(-time.Second)) }, node.StateReleased, refuses, ""},
		{"released", released("host"), "Pending cannot tell", now(node.Pending{}), node.StateReleased, refuses, ""},
		{"released", released("host"), "the host is not reached", now(node.Unreached{}), node.StateReleased, refuses, ""},
		{"released", released("host"), "H passes", func(r *rig) string { return r.wait(hostWaits) }, node.StateReleased, refuses, ""},
		{"released, pods run", released("host"), "TerminateAll", func(r *rig) string { r.pods = []string{"late"}; return r.tell(node.TerminateAll{}) }, node.StateReleased, refuses, "kill late with 15"},
		{"released", released("host"), "Run ends", now(node.RunEnds{}), node.StateReleased, refuses, ""},
		{"unsettled, H past", unsettledPast("host"), "the host is not reached", now(node.Unreached{}), node.StateNone, admits, "holdagain, clear, kill low with 0"},
		{"the log", leaves(draining("host"), opening), "announced, H ahead", (*rig).read, node.StateUnsettled, refuses, ""},
		{"the log", leaves(draining("host"), opening, now(nothingPending())), "announced, but nothing was pending", (*rig).read, node.StateNone, admits, "holdagain, clear, kill low with 13"},
		{"the log", leaves(draining("notice"), opening, now(triggerTakesBack(""), nothingPending())), "Trigger has taken back before", (*rig).read, node.StateNone, admits, "holdagain, clear, kill low with 13"},
		{"the log", leaves(draining("host"), opening, now(node.Pending{}, hostTakesBack())), "the host has taken back before", (*rig).read, node.StateNone, admits, "holdagain, clear, kill low with 13"},
		{"the log", leaves(drainingFor25s, opening, drainFor25s), "while draining, with an earlier end", (*rig).read, node.StateDraining, refuses, "suspend, kill low with 13"},
		{"the log", leaves(draining("notice"), opening, announceAgain), "while draining, and its announcer stands", func(r *rig) string { r.read(); return r.tell(hostTakesBack()) }, node.StateDraining, refuses, ""},
		{"the log", leaves(draining("notice"), opening, now(triggerTakesBack("notice")), announceAgain), "while draining, and its announcer has taken back", func(r *rig) string { r.read(); return r.tell(hostTakesBack()) }, node.StateNone, admits, "holdagain, clear"},
		{"the log", leaves(cancelled, opening), "cancelled", (*rig).read, node.StateNone, admits, "kill low with 13"},
		{"the log", leaves(draining("host"), opening), "of another boot", func(r *rig) string { return r.tell(node.Read{Entries: r.left}) }, node.StateNone, admits, "tell low"},
		{"the log", leaves(draining("host"), opening, announceAgain), "while draining, it fits", (*rig).read, node.StateDraining, refuses, "kill low with 13"},
		{"the log", leaves(draining("host"), opening, announceAgain, now(hostTakesBack())), "after a cancellation", (*rig).read, node.StateNone, admits, "kill low with 13"},
		{"the log", leaves(cancelled, opening, announceAgain), "while draining, it is closed", (*rig).read, node.StateDraining, refuses, "kill low with 13"},
		{"none, a final status is under way", apiUpdate, "a static pod asks to start", (*rig).startStatic, node.StateNone, admits, "static"},
		{"none, a final status is under way", apiUpdate, "a static pod asks to start, and the call returns", func(r *rig) string {
			r.startStatic()
			r.step(node.Told{Call: r.tells[0].Call, Key: "static", Err: errFault})
			return names(r.n.Refused())
		}, node.StateNone, admits, ""},
		{"released, a pod is given up", givenUp, "TerminateAll, the host takes back", func(r *rig) string {
			r.tell(node.TerminateAll{}, hostTakesBack())
			s, _ := r.n.Terminated()
			return names(r.n.PodsOf(s))
		}, node.StateNone, refuses, "low, critical"},
		{"released, TerminateAll kills", released("host"), "event of another announcer", func(r *rig) string {
			r.pods = []string{"critical"}
			r.tell(node.TerminateAll{})
			r.pods = append(r.pods, "late")
			r.tell(trigger("notice"))
			return names(r.n.PodsOf(r.n.Shutdown()))
		}, node.StateDraining, refuses, "low, critical, late"},
		{"none, the API server hangs", publishing, "event, and the answer when critical is killed", func(r *rig) string {
			r.step(r.host(10 * time.Second))
			r.ends("low")
			r.now = r.n.Wake()
			return r.tell(node.Published{Call: r.publish})
		}, node.StateDraining, refuses, "publish, kill critical with 9"},
		{"the log", leaves(draining("host"), opening), "not to be had", now(node.Read{}), node.StateNone, admits, ""},
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
