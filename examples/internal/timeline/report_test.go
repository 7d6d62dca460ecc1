package timeline_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/timeline"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// A report adds to the drawn plan what has happened. Of planned's pods, web stopped in time although it was to be
// cut short, the second is not in the report, and network still ran when the host was released (an open bar).
// late-0 was not planned: it gets a row in its bucket.
func TestReportIsDrawnWithThePlan(t *testing.T) {
	node := planned("worker-1")
	require.Len(t, node.Buckets, 2)
	web := node.Buckets[0].Pods[0]
	require.Equal(t, "shop/web-7c9d6b5f4-x2x7k", web.Name)
	require.True(t, web.Bad)
	require.Nil(t, web.Actual)

	node.Report(happened())
	web = node.Buckets[0].Pods[0]
	require.Equal(t, timeline.Bar{Start: 5 * time.Second, End: 14 * time.Second}, *web.Actual)
	require.Contains(t, web.Facts, "got 20s, took 9s")
	require.False(t, web.Bad, "it was to be cut short, and has stopped in time")
	require.Nil(t, node.Buckets[0].Pods[1].Actual, "a planned pod that is not in the report")

	late := node.Buckets[0].Pods[3]
	require.Equal(t, "shop/late-0", late.Name, "a pod that was not planned is in its bucket")
	require.Nil(t, late.Planned)
	require.Contains(t, late.Text, "It was killed, its time was up. The API server has not acknowledged")
	require.True(t, late.Actual.Killed)

	network := node.Buckets[1].Pods[0]
	require.Equal(t, timeline.Bar{Start: 21 * time.Second, End: 28 * time.Second, Open: true}, *network.Actual, "it still ran when the host was released")
	require.Equal(t, 28*time.Second, node.Release)
}

func TestAPodThatWasKilledIsMarked(t *testing.T) {
	for outcome, text := range map[lifecycle.Outcome]string{
		lifecycle.OutcomeGraceful:      "",
		lifecycle.OutcomeGraceExceeded: "It was killed, its time was up.",
		lifecycle.OutcomeForced:        "It was killed, its stop had failed.",
	} {
		report := happened()
		report.Pods = report.Pods[:1]
		report.Pods[0].Outcome = string(outcome)
		var node timeline.Node
		node.Report(report)
		pod := node.Buckets[0].Pods[0]
		require.Equal(t, text, pod.Text, outcome)
		require.Equal(t, text != "", pod.Bad, outcome)
		require.Equal(t, text != "", pod.Actual.Killed, outcome)
	}
}

func TestSummary(t *testing.T) {
	report := happened()
	require.Equal(t, "Pods that stopped in time: 1 of 3. Killed: 1, shop/late-0. Not known to have ended: 1, kube-system/network-abcde.", timeline.Summary(report))
	for range 4 {
		report.Pods = append(report.Pods, report.Pods[1])
	}
	require.Contains(t, timeline.Summary(report), "Killed: 5, shop/late-0, shop/late-0, shop/late-0 and 2 more.")
	require.Equal(t, "Pods that stopped in time: 0 of 0.", timeline.Summary(shutdown.Report{}))
}

func TestReportAlone(t *testing.T) {
	var node timeline.Node
	node.Report(happened())
	require.Len(t, node.Buckets, 2)
	require.Len(t, node.Buckets[0].Pods, 2)
	require.Contains(t, node.Text[0], "by logind")

	var cancelled timeline.Node
	cancelled.Report(shutdown.Report{Started: time.Unix(0, 0).UTC(), Cancelled: true})
	require.Empty(t, cancelled.Buckets)
	require.Contains(t, cancelled.Text[0], "cancelled")
}

func TestPageOfNothingAndOfAllTime(t *testing.T) {
	require.NotEmpty(t, page(t))
	require.NotEmpty(t, page(t, timeline.Node{Name: "empty"}))
	require.NotEmpty(t, page(t, timeline.Node{}))
	backwards := timeline.Node{Buckets: []timeline.Bucket{{Pods: []timeline.Pod{{Planned: &timeline.Bar{Start: 1<<63 - 1, End: -1, Wanted: 1<<63 - 1}}}}}}
	require.NotEmpty(t, page(t, backwards))
}

func TestPageEscapesNames(t *testing.T) {
	text := string(page(t, timeline.Node{Name: "<script>alert(1)</script>"}))
	require.NotContains(t, text, "<script>")
}
