package timeline_test

import (
	"bytes"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/kubegrace/kubegrace/shutdown/source"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/timeline"
	"github.com/kubegrace/kubegrace/examples/internal/timeline/timelinetest"
	"github.com/kubegrace/kubegrace/shutdown"
)

// planned returns a planned node in which pods are cut short.
func planned(name string) timeline.Node {
	row := func(name string, start, end int, wanted time.Duration) timeline.Pod {
		return timeline.Pod{Name: name, Bad: wanted > 0, Facts: "asks for much", Planned: &timeline.Bar{Start: time.Duration(start) * time.Second, End: time.Duration(end) * time.Second, Wanted: wanted}}
	}
	return timeline.Node{Name: name, Release: 34 * time.Second, Buckets: []timeline.Bucket{
		{Name: "Bucket 0", Pods: []timeline.Pod{
			row("shop/web-7c9d6b5f4-x2x7k", 6, 23, 66*time.Second),
			row(strings.Repeat("a-very-long-namespace-", 3)[:63]+"/"+strings.Repeat("and-a-name-of-the-longest-that-there-may-be-", 6)[:253], 6, 11, 0),
			row("data/forever-0", 6, 23, math.MaxInt64),
		}},
		{Name: "Bucket 2000000000", Priority: critical, Pods: []timeline.Pod{row("kube-system/network-abcde", 23, 33, 0)}},
	}}
}

const critical = 2_000_000_000

// happened returns a report about two of the planned pods, one of which is not known to have
// ended, and about a pod that was not planned.
func happened() shutdown.Report {
	t0 := time.Date(2026, 5, 1, 6, 0, 0, 0, time.UTC)
	at := func(s float64) time.Time { return t0.Add(time.Duration(s * float64(time.Second))) }
	return shutdown.Report{
		Kind: source.KindReboot, Origin: "logind", Started: t0, Ended: at(28), Errors: []string{"publish the node's state: the API server did not answer"},
		Pods: []shutdown.PodReport{
			{Namespace: "shop", Name: "web-7c9d6b5f4-x2x7k", GrantedSeconds: 20, Started: at(5), Ended: at(14), Outcome: "Graceful"},
			{Namespace: "shop", Name: "late-0", GrantedSeconds: 11, Started: at(9), Ended: at(20.5), Outcome: "GraceExceeded", Unflushed: true},
			{Namespace: "kube-system", Name: "network-abcde", Bucket: critical, GrantedSeconds: 10, Started: at(21), Error: "context deadline exceeded"},
		},
	}
}

// page returns the HTML of a page with these nodes.
func page(t *testing.T, nodes ...timeline.Node) []byte {
	t.Helper()
	var b bytes.Buffer
	require.NoError(t, timeline.Page{
		Title: "A shutdown", Text: []string{"The host is asked for 37.5 s."}, Nodes: nodes, NodeText: "Here are two of three nodes.",
		Begin:       [][]string{{"LOSES MOST", "PODS", "CUT", "LOST"}, {"workload " + strings.Repeat("a-long-name", 20), "12000", "11000", "13d15h"}},
		ChangeTitle: "What to change", Changes: []timeline.Change{{Title: "Lengthen the buckets", Text: "the host: wait for longer", Lines: []string{strings.Repeat("a line that is very long and is not broken in the terminal ", 4)}}},
	}.Write(&b))
	return b.Bytes()
}

func TestPageCanBeReadInABrowser(t *testing.T) {
	both := planned("worker-2")
	both.Limit = 34 * time.Second
	both.Report(happened())
	reported := timeline.Node{Name: "worker-3"}
	reported.Report(happened())
	text := page(t, planned("worker-1"), both, reported)

	browser := timelinetest.Start(t)
	browser.Open(text)
	browser.RequireReadable()
	require.Empty(t, browser.Inspect(400, "dark"))
	var dark string
	browser.Value(`getComputedStyle(document.body).backgroundColor`, &dark)
	require.Equal(t, "rgb(18, 22, 27)", dark)

	var bars []float64
	browser.Value(`(() => { const r = (q) => document.querySelectorAll("section")[1].querySelector(q).getBoundingClientRect();
		const t = r(".track"); return [".planned .bar", ".actual .bar"].map(q => (r(q).left - t.left) / t.width) })()`, &bars)
	start := both.Buckets[0].Pods[0].Planned.Start
	require.InDelta(t, 5/start.Seconds()*bars[0], bars[1], 0.001, "both bars have one scale: the plan starts at %v, the pod at 5 s", start)
}

func TestTheBarsOfAllNodesHaveOneScale(t *testing.T) {
	node := func(name string, wanted time.Duration) timeline.Node {
		return timeline.Node{Name: name, Buckets: []timeline.Bucket{{Pods: []timeline.Pod{{Planned: &timeline.Bar{End: 30 * time.Second, Wanted: wanted}}}}}}
	}
	text := string(page(t, node("a", 2*time.Minute), node("b", time.Hour)))
	require.Equal(t, 2, strings.Count(text, `class="bar" style="width:25.000%"`), "the axis reaches to four times the last end")
	require.Equal(t, 1, strings.Count(text, "1h ▸"), "what is beyond it is said")
}

func TestBrowserFindsWhatCannotBeRead(t *testing.T) {
	browser := timelinetest.Start(t)
	browser.Open([]byte(`<!DOCTYPE html><body style="margin:0"><p style="width:500px;font-size:9px;color:#999">gray</p>
		<div class="axis"><span style="position:absolute;left:10px">one</span><span style="position:absolute;left:15px">two</span></div>`))
	problems := strings.Join(browser.Inspect(400, "light"), "\n")
	for _, want := range []string{"the page is 500 pixels wide", "cut off", "letters of 9px", "contrast of 2.8", "cover each other"} {
		require.Contains(t, problems, want)
	}
}
