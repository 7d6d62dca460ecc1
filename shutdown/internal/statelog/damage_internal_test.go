package statelog

import (
	"bytes"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/internal/times"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// agent runs a Node with a log, for a host that waits 30 s. It has three pods: batch ends as soon as it is killed, web and
// etcd never end.
type agent struct {
	n         *node.Node
	now       time.Time
	entries   newestEntries
	log       []byte
	graceEnds map[string]time.Time // the latest time until which a kill has let a pod run, by pod name
}

// newAgent starts an agent with a log. event is the shutdown that the host has announced; nil: none.
func newAgent(now time.Time, log Contents, event *source.Event) *agent {
	a := &agent{n: node.New(node.Config{Schedule: plan.Schedule{{Seconds: 20}, {Priority: 10, Seconds: 10}}}), now: now, graceEnds: map[string]time.Time{}}
	for _, in := range []node.Input{node.LogOpening{}, node.LogRead{Entries: log.Entries, SameBoot: log.SameBoot}, node.HostLimit(30 * time.Second), node.HostAnswered{Known: true, Event: event}} {
		a.step(in)
	}
	return a
}

// step passes an input to the Node, and carries out its effects.
func (a *agent) step(in node.Input) {
	for _, e := range a.n.Step(a.now, in) {
		switch e.Do {
		case node.NewLog:
			a.entries = newestEntries{}
			a.store(e)
			a.log, _ = a.entries.text(bootOfLog)
		case node.Store:
			a.log = append(a.log, a.store(e)...)
		case node.Kill:
			a.graceEnds[e.Pod.Name] = times.Later(a.graceEnds[e.Pod.Name], e.Until.UTC())
			if e.Pod.Name == "batch" {
				a.step(node.Killed{Call: e.Call, Key: e.Pod.Key, Outcome: "Graceful"})
			}
		case node.List:
			a.step(node.Listed{Call: e.Call, Pods: []node.Pod{pod("web", 0), pod("batch", 0), pod("etcd", 10)}})
		default:
		}
	}
}

// store makes the shutdown and the pods of a Store or NewLog effect the newest entries, and returns their lines for the log.
func (a *agent) store(e node.Effect) []byte {
	lines, _ := a.entries.update(node.Entries{Shutdown: e.Shutdown, Pods: e.Pods}.Clone()) // no error: the test finds a missing entry
	return lines
}

// runUntil lets time pass until end, with a Tick whenever the Node wants one. It returns a.
func (a *agent) runUntil(end time.Time) *agent {
	for wake := a.n.Wake(); !wake.IsZero() && wake.Before(end); wake = a.n.Wake() {
		a.now = times.Later(wake, a.now.Add(1))
		a.step(node.Tick{})
	}
	a.now = end
	return a
}

// pod returns a pod with a grace period of a minute, which is more than its bucket has.
func pod(name string, priority int32) node.Pod {
	grace := int64(60)
	return node.Pod{Key: types.UID(name), Namespace: "shop", Name: name, Priority: priority, Object: &v1.Pod{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: name, UID: types.UID(name)},
		Spec:       v1.PodSpec{TerminationGracePeriodSeconds: &grace, Containers: []v1.Container{{Name: "main"}}},
	}}
}

// An agent is killed 5 s after the host's announcement, and its log is damaged: it is cut at some byte, or one of its bits is
// flipped. The next agent starts a second later with the damaged log. If the log still has the shutdown, the agent gives no pod
// more time than the first agent planned (20 s for web and batch, 30 s for etcd), but for the lag of a timer. Otherwise it
// gives no pod more time than an agent without a log would.
func TestADamagedLogGrantsNoTime(t *testing.T) {
	began := at(3000).Add(123456789) // no whole second, so that the log has times with all their digits
	first := newAgent(began, Contents{}, nil)
	first.step(node.Event{Host: true})
	log := first.runUntil(began.Add(5 * time.Second)).log
	resumedGraceEnds := func(c Contents) map[string]time.Time {
		return newAgent(began.Add(6*time.Second), c, &source.Event{}).runUntil(began.Add(time.Minute)).graceEnds
	}
	planned := map[string]time.Time{"web": began.Add(20 * time.Second), "batch": began.Add(20 * time.Second), "etcd": began.Add(30 * time.Second)}
	check := func(text []byte) (c Contents) {
		c = parse(text, bootOfLog, began.Add(6*time.Second))
		latest := planned
		if !c.SameBoot || c.Entries.Shutdown == nil {
			latest = resumedGraceEnds(Contents{})
		}
		for name, end := range resumedGraceEnds(c) {
			require.False(t, end.After(latest[name].Add(times.Lag)), "%s until %v, not %v, with the log %q", name, end, latest[name], text)
		}
		return c
	}
	// The undamaged log has all pods, and the next agent kills those that have not ended, as planned.
	require.Len(t, check(log).Entries.Pods, 3)
	require.Equal(t, map[string]time.Time{"web": planned["web"], "etcd": planned["etcd"]}, resumedGraceEnds(check(log)))
	// Cut the log at each byte, and flip each bit.
	step := 1
	if need.Shortened(t, "seven of eight bytes of a state log, and seven of eight bits of the others") {
		step = 8
	}
	for i := 0; i < len(log); i += step {
		check(log[:i])
		for bit := range 8 {
			if step == 1 || bit == i/step%8 { // with a longer step one bit of each byte, in turn
				damaged := bytes.Clone(log)
				damaged[i] ^= 1 << bit
				check(damaged)
			}
		}
	}
}
