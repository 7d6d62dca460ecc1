package node_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/judge"
	"github.com/kubegrace/kubegrace/shutdown/internal/node"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// 200 times, the host announces a shutdown, which begins to kill one more pod that never ends, and then cancels it. Nothing grows
// with the number of shutdowns but the number of pods: each pod has one kill in flight and at most two numbers of later shutdowns. Each
// shutdown has one report.
func TestCancelledShutdownsLeaveNothingBehind(t *testing.T) {
	const cycles = 200
	c := node.Config{Schedule: plan.Schedule{{Priority: 0, Seconds: 20}, {Priority: 1000, Seconds: 10}}}
	c.Options.Steps = plan.Steps{Publish: true, Statuses: true}
	const seed, logDelay, priority, grace = 1, 0, 0, 5
	w := newWorld(seed, c)
	w.hasFixedLatency = true
	w.start(logDelay)
	w.run(2 * time.Second)
	for i := range cycles {
		w.addPod(fmt.Sprintf("pod-%d", i), priority, grace, time.Second).isStuck = true
		w.step(node.Event{Event: source.Event{Origin: "logind"}, Host: true}, "the host announces")
		w.run(time.Second)
		w.step(node.Event{Event: source.Event{Cancelled: true}, Host: true}, "the host cancels")
		w.run(time.Minute)
		require.LessOrEqual(t, len(w.calls), i+1+2, "a kill for each pod so far, and two other calls")
		w.record.Facts = reportsOf(w.record.Facts) // the test counts the reports and needs no other facts
	}
	require.Len(t, w.record.Facts, cycles, "one report each")
	refused := w.agent.Refused()
	require.Len(t, refused, cycles, "every pod still runs")
	for _, p := range refused {
		require.LessOrEqual(t, len(p.StillRanIn), 2, "the numbers of later shutdowns")
	}
}

// reportsOf returns those of the facts that are reports.
func reportsOf(facts []judge.NodeFact) (reports []judge.NodeFact) {
	for _, f := range facts {
		if f.What == judge.NodeReported {
			reports = append(reports, f)
		}
	}
	return reports
}
