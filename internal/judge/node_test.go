package judge

import (
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// second returns the time that many seconds after the beginning of a record.
func second(seconds float64) time.Time {
	return time.Unix(0, 0).Add(time.Duration(seconds * float64(time.Second)))
}

// changedNode is the record of a node that a test changes, with methods that find facts.
type changedNode struct {
	*testing.T
	*NodeRecord
}

// soundNode returns the record of a shutdown that breaks no rule: the pod "low" and then the pod "high" are killed, the
// lock is released, the host cancels the shutdown, and another pod, "late", starts.
func soundNode(t *testing.T) changedNode {
	windows := []NodeWindow{
		{Priority: math.MinInt32, OwnTime: 10 * time.Second, KillsEnd: second(11), End: second(11)},
		{Priority: 1000, OwnTime: 10 * time.Second, KillsEnd: second(21), End: second(21)},
	}
	draining := NodeFact{What: NodeState, State: "draining", Refuses: true, Calls: 2, Shutdown: 1, Draining: 1}
	state := func(at float64, done int) NodeFact {
		f := draining
		f.At, f.BucketsOver = second(at), done
		return f
	}
	return changedNode{t, &NodeRecord{Publishes: true, Statuses: true, Marks: true, Facts: []NodeFact{
		{At: second(0), What: NodePodRuns, Pod: "low", Seconds: 30},
		{At: second(0), What: NodePodRuns, Pod: "high", Priority: 1000, Seconds: 30},
		{At: second(0), What: NodeAgentBegan},
		{At: second(0), What: NodeState, State: "none"},
		{At: second(1), What: NodeInput, Text: "the host announces"},
		{At: second(1), What: NodeTimetable, Shutdown: 1, Windows: windows, WaitEnd: second(21), ReleaseBy: second(22), Planned: true},
		{At: second(1), What: NodeReleaseAnnounced, Until: second(22)},
		{At: second(1), What: NodePublishBegins, Call: 1, Shutdown: 1},
		{At: second(1), What: NodeKillLogged, Pod: "low", Until: second(11)},
		{At: second(1), What: NodeSyncBegins, Call: 2},
		{At: second(1), What: NodeKill, Pod: "low", Call: 3, Seconds: 10, Until: second(11), Shutdown: 1},
		state(1, 0),
		{At: second(2), What: NodePublishAnswered, Call: 1},
		{At: second(2), What: NodeSynced, Call: 2},
		state(2, 0),
		{At: second(5), What: NodePodEnded, Pod: "low"},
		{At: second(5), What: NodeKillAnswered, Pod: "low", Call: 3},
		{At: second(5), What: NodeDrainStepBegins, Call: 7, Text: "Unmount"},
		{At: second(5), What: NodeCounted, Pod: "low"},
		state(5, 1),
		{At: second(6), What: NodeDrainStepAnswered, Call: 7},
		{At: second(6), What: NodeFinalStatusAccepted, Pod: "low"},
		{At: second(6), What: NodeKillLogged, Pod: "high", Until: second(21)},
		{At: second(6), What: NodeSyncBegins, Call: 4},
		{At: second(6), What: NodeKill, Pod: "high", Call: 5, Seconds: 15, Until: second(21), Shutdown: 1, BucketsOver: 1},
		state(6, 1),
		{At: second(7), What: NodeSynced, Call: 4},
		{At: second(9), What: NodePodEnded, Pod: "high"},
		{At: second(9), What: NodeKillAnswered, Pod: "high", Call: 5},
		{At: second(9), What: NodeCounted, Pod: "high"},
		{At: second(9), What: NodeFinalStatusAccepted, Pod: "high"},
		{At: second(9), What: NodeDrainStepBegins, Call: 8, Text: "Unmount"},
		state(9, 2),
		{At: second(10), What: NodeAborted, Call: 8},
		{At: second(10), What: NodeReleased},
		{At: second(10), What: NodeReported, Shutdown: 1, Pods: []string{"low", "high"}},
		{At: second(10), What: NodeState, State: "released", Refuses: true, Shutdown: 1},
		{At: second(12), What: NodeCancelled, Shutdown: 1},
		{At: second(12), What: NodePublishBegins, Call: 6},
		{At: second(12), What: NodeLockRequested},
		{At: second(12), What: NodeState, State: "none"},
		{At: second(13), What: NodePodRuns, Pod: "late", Seconds: 30},
		{At: second(20), What: NodeFinished, Ready: []string{"late"}},
	}}}
}

// index returns the index of the first fact of a kind, at a time in seconds. If pod is not "", the fact is about that
// pod.
func (h changedNode) index(what NodeWhat, at float64, pod string) int {
	h.Helper()
	i := slices.IndexFunc(h.Facts, func(f NodeFact) bool {
		return f.What == what && f.At.Equal(second(at)) && (pod == "" || f.Pod == pod)
	})
	require.GreaterOrEqual(h, i, 0, "no such fact: %s", what)
	return i
}

// fact returns the fact that index finds. A test may change it.
func (h changedNode) fact(what NodeWhat, at float64, pod string) *NodeFact {
	h.Helper()
	return &h.Facts[h.index(what, at, pod)]
}

// drop removes the fact that index finds.
func (h changedNode) drop(what NodeWhat, at float64, pod string) {
	h.Helper()
	i := h.index(what, at, pod)
	h.Facts = slices.Delete(h.Facts, i, i+1)
}

// insert inserts facts before the first fact of a kind at a time, and gives them this time.
func (h changedNode) insert(what NodeWhat, at float64, facts ...NodeFact) {
	h.Helper()
	for i := range facts {
		facts[i].At = second(at)
	}
	h.Facts = slices.Insert(h.Facts, h.index(what, at, ""), facts...)
}

// The record of soundNode breaks no rule. TestNodeRulesRefuse changes this record.
func TestSoundNodeBreaksNoRule(t *testing.T) {
	h := soundNode(t)
	require.Empty(t, Node(h.NodeRecord), h.Story())
}

// nodeRecordsThatBreakARule returns changes of soundNode's record, by the name of the rule that each one breaks, and by what
// is wrong. In the record of soundNode a shutdown is announced at 1 s, and the lock is due at 22 s. The bucket of the pod
// "low" has until 11 s: low is killed at 1 s with 10 s, and ends at 5 s. The bucket of "high" has until 21 s: high is killed at
// 6 s with 15 s, and ends at 9 s. The lock is released at 10 s, the shutdown is cancelled at 12 s, and the pod "late" runs
// from 13 s on.
//
// A change finds a fact by its kind, its time in seconds and its pod. It modifies the fact, drops it, or inserts other facts
// before it.
func nodeRecordsThatBreakARule() map[string]map[string]func(h changedNode) {
	return map[string]map[string]func(h changedNode){
		"a deadline only moves earlier": {
			"a later kill has a later deadline": func(h changedNode) {
				h.insert(NodePublishAnswered, 2, NodeFact{What: NodeKillLogged, Pod: "low", Until: second(12)},
					NodeFact{What: NodeKill, Pod: "low", Call: 7, Seconds: 10, Until: second(12), Shutdown: 1})
			},
			"more seconds than the deadline leaves": func(h changedNode) { h.fact(NodeKill, 1, "low").Seconds = 11 },
		},
		"no grace period ends after the drain's last wait": {
			"too long": func(h changedNode) { h.fact(NodeKill, 6, "high").Seconds = 16 },
		},
		"a pod gets its grace period, or all that its bucket has left": {
			"too short": func(h changedNode) { h.fact(NodeKill, 6, "high").Seconds = 14 },
			"more than the bucket has, with NoRollOver": func(h changedNode) {
				h.NoRollOver = true
				h.fact(NodeKill, 6, "high").Seconds = 12
			},
		},
		"buckets do not overlap": {
			"a turn ends while its pod runs":  func(h changedNode) { h.fact(NodeState, 2, "").BucketsOver = 1 },
			"a pod is killed before its turn": func(h changedNode) { h.fact(NodeKill, 6, "high").BucketsOver = 0 },
			"a turn ends early with NoRollOver": func(h changedNode) {
				h.NoRollOver = true
				h.fact(NodeTimetable, 1, "").Windows[1].OwnTime = 2 * time.Second // it is over at 7 s
				h.fact(NodeState, 6, "").BucketsOver = 2
			},
		},
		"a new timetable of a shutdown moves no end later": {
			"the end": func(h changedNode) {
				f := *h.fact(NodeTimetable, 1, "")
				f.WaitEnd = second(22)
				h.insert(NodePublishAnswered, 2, f)
			},
			"a bucket": func(h changedNode) {
				f := *h.fact(NodeTimetable, 1, "")
				f.Windows = slices.Clone(f.Windows)
				f.Windows[0].End = second(12)
				h.insert(NodePublishAnswered, 2, f)
			},
		},
		"a pod is logged before it is killed": {
			"not at all":            func(h changedNode) { h.drop(NodeKillLogged, 1, "low") },
			"with another deadline": func(h changedNode) { h.fact(NodeKillLogged, 1, "low").Until = second(12) },
		},
		"the state is published before a kill": {
			"not published": func(h changedNode) { h.drop(NodePublishBegins, 1, "") },
			"only an agent that has died was publishing": func(h changedNode) {
				h.drop(NodePublishBegins, 1, "")
				h.insert(NodeAgentBegan, 0, NodeFact{What: NodePublishBegins, Call: 9})
			},
		},
		"the log is synced before the release": {
			"no sync":              func(h changedNode) { h.drop(NodeSynced, 7, "") },
			"a sync that is older": func(h changedNode) { h.fact(NodeSynced, 7, "").Call = 2 }, // that of call 2 began before high was stored
		},
		"no pod is signalled after a cancellation": {
			"outside a drain": func(h changedNode) { h.fact(NodeKill, 6, "high").Shutdown = 0 },
		},
		"a cancellation admits pods, requests a lock and publishes that at once": {
			"admission": func(h changedNode) { h.fact(NodeState, 12, "").Refuses = true },
			"the lock":  func(h changedNode) { h.drop(NodeLockRequested, 12, "") },
			"the state": func(h changedNode) { h.drop(NodePublishBegins, 12, "") },
		},
		"the lock is released once, in time": {
			"twice":                     func(h changedNode) { h.insert(NodeReported, 10, NodeFact{What: NodeReleased}) },
			"late":                      func(h changedNode) { h.fact(NodeReleaseAnnounced, 1, "").Until = second(9.5) }, // it is released at 10 s
			"without an announced time": func(h changedNode) { h.drop(NodeReleaseAnnounced, 1, "") },
			"the time moves later": func(h changedNode) {
				h.insert(NodePublishAnswered, 2, NodeFact{What: NodeReleaseAnnounced, Until: second(23)})
			},
			"never": func(h changedNode) {
				h.drop(NodeReleased, 10, "")
				h.fact(NodeReleaseAnnounced, 1, "").Until = second(9.5)
			},
		},
		"every end is published": {
			"not this one": func(h changedNode) { h.drop(NodeFinalStatusAccepted, 9, "high") },
			"it ended with its boot": func(h changedNode) {
				h.drop(NodeFinalStatusAccepted, 9, "high")
				*h.fact(NodeKillAnswered, 9, "high") = NodeFact{At: second(9), What: NodeBooted}
			},
		},
		"only ended pods are published": {
			"it runs":          func(h changedNode) { h.drop(NodePodEnded, 9, "high") },
			"it is not killed": func(h changedNode) { h.insert(NodePodRuns, 0, NodeFact{What: NodeFinalStatusAccepted, Pod: "low"}) },
		},
		"each shutdown is reported once, with all killed pods": {
			"never":            func(h changedNode) { h.drop(NodeReported, 10, "") },
			"twice":            func(h changedNode) { h.insert(NodeReported, 10, *h.fact(NodeReported, 10, "")) },
			"a pod is missing": func(h changedNode) { h.fact(NodeReported, 10, "").Pods = []string{"low"} },
			"a pod is twice":   func(h changedNode) { h.fact(NodeReported, 10, "").Pods = []string{"low", "high", "low"} },
		},
		"the metrics count each pod once in a drain": {
			"its end twice": func(h changedNode) { h.insert(NodeCounted, 9, *h.fact(NodeCounted, 9, "high")) },
			"its failed kill and its end": func(h changedNode) {
				h.insert(NodeCounted, 9, NodeFact{What: NodeCounted, Pod: "high", Failed: true})
			},
		},
		"a shutdown and TerminateAll refuse pods, and nothing else does": {
			"it does not":     func(h changedNode) { h.fact(NodeState, 2, "").Refuses = false },
			"only a shutdown": func(h changedNode) { h.fact(NodeState, 0, "").Refuses = true },
		},
		"killed pods stay refused, others are ready": {
			"a killed pod runs and may start": func(h changedNode) { h.drop(NodePodEnded, 9, "high") },
			"another pod is not ready":        func(h changedNode) { h.fact(NodeFinished, 20, "").Ready = nil },
		},
		"a failed kill is repeated": {
			"it is not": func(h changedNode) {
				h.fact(NodeKillAnswered, 5, "low").Failed = true
				h.fact(NodeState, 6, "").At = second(6.1) // more than the pause of 1 s and 50 ms
			},
		},
		"a kill that was given up is not repeated": {
			"it is": func(h changedNode) {
				f := h.fact(NodeKillAnswered, 5, "low")
				f.Failed, f.NoRetry = true, true
				again := *h.fact(NodeKill, 1, "low")
				again.Seconds = 4
				h.insert(NodeFinalStatusAccepted, 6, again)
			},
		},
		"the number of calls is bounded": {
			"too many": func(h changedNode) {
				const allowed = maxOtherCalls + 3*2 // three for each of the two pods
				h.fact(NodeState, 2, "").Calls = allowed + 1
			},
		},
		"no busy loop": {
			"ticks without an effect": func(h changedNode) {
				for range maxIdleTicks + 1 {
					h.insert(NodePublishAnswered, 2, NodeFact{What: NodeTicked})
				}
			},
		},
		"no call of a drain's step outlasts the step": {
			"not at the next step": func(h changedNode) { h.drop(NodeDrainStepAnswered, 6, "") },
			"not at the end":       func(h changedNode) { h.drop(NodeAborted, 10, "") },
		},
		"no panic": {
			"a panic": func(h changedNode) { h.insert(NodePublishAnswered, 2, NodeFact{What: NodePanicked}) },
		},
		"every drain ends once the faults stop": {
			"it does not": func(h changedNode) { h.fact(NodeState, 12, "").State = "draining" },
		},
	}
}

// Each rule refuses a record that differs from that of soundNode only in what the rule forbids.
func TestNodeRulesRefuse(t *testing.T) {
	changes := nodeRecordsThatBreakARule()
	require.Len(t, changes, len(nodeRules()))
	for _, rule := range nodeRules() {
		require.NotEmpty(t, changes[rule.name], "no record breaks the rule: %s", rule.name)
		for what, change := range changes[rule.name] {
			t.Run(rule.name+": "+what, func(t *testing.T) {
				h := soundNode(t)
				change(h)
				require.True(t, slices.ContainsFunc(Node(h.NodeRecord), func(text string) bool {
					return strings.HasPrefix(text, rule.name+": ")
				}), h.Story())
			})
		}
	}
}
