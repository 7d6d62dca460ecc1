package output_test

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/golden"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
	"github.com/kubegrace/kubegrace/shutdown/source"
)

// plannedNode returns a planned node with four pods, two of which are cut short. web asks for 60 s and gets 17 s.
// forever asks for the longest possible time and gets 17 s. The third pod of their bucket has the longest possible
// names.
func plannedNode(name string) nodeplan.Node {
	pod := func(namespace, name string, asks, gets int64, start float64) nodeplan.Pod {
		return nodeplan.Pod{
			Namespace: namespace, Name: name, PrioritySource: "guess",
			OwnSeconds: asks, GrantedSeconds: gets, CutShort: gets < asks,
			LatestStartSeconds: start, LatestEndSeconds: start + float64(gets),
		}
	}
	long := strings.Repeat("and-a-name-of-the-longest-that-there-may-be-", 6)[:253]
	return nodeplan.Node{Name: name, PodCount: 4, CutShort: 2, ReleaseSeconds: 34, Buckets: []nodeplan.Bucket{
		{Seconds: 17, ConfiguredSeconds: 20, EndSeconds: 23, Pods: []nodeplan.Pod{
			pod("shop", "web-7c9d6b5f4-x2x7k", 60, 17, 6),
			pod(strings.Repeat("a-very-long-namespace-", 3)[:63], long, 5, 5, 6),
			pod("data", "forever-0", math.MaxInt64, 17, 6),
		}},
		{Priority: 1000},
		{Priority: plan.SystemCriticalPriority, Seconds: 10, ConfiguredSeconds: 10, EndSeconds: 33, Pods: []nodeplan.Pod{pod("kube-system", "network-abcde", 10, 10, 23)}},
	}}
}

// shutdownReport returns the report of a shutdown that took 28 s. It has two of the pods of plannedNode, web and
// network-abcde, and two pods that were not planned, early-0 and late-0. It is not known whether network-abcde has
// ended.
func shutdownReport() api.Report {
	at := func(seconds float64) time.Time { return began.Add(time.Duration(seconds * float64(time.Second))) }
	return api.ReportOf(shutdown.Report{
		Kind: source.KindReboot, Origin: "logind", Started: began, Ended: at(28), Errors: []string{"publish the node's state: the API server did not answer"},
		Pods: []shutdown.PodReport{
			{Namespace: "shop", Name: "web-7c9d6b5f4-x2x7k", GrantedSeconds: 20, Started: at(5), Ended: at(14), Outcome: "Graceful"},
			{Namespace: "shop", Name: "early-0", GrantedSeconds: 20, Started: at(5), Ended: at(6), Outcome: "Graceful"},
			{Namespace: "shop", Name: "late-0", GrantedSeconds: 11, Started: at(9), Ended: at(20.5), Outcome: "GraceExceeded", Unflushed: true},
			{Namespace: "kube-system", Name: "network-abcde", Bucket: plan.SystemCriticalPriority, GrantedSeconds: 10, Started: at(21), Error: "context deadline exceeded"},
		},
	})
}

// planPage returns the page of a plan that shows these nodes. The summary counts one node more, as if a node were left
// out of the page.
func planPage(t *testing.T, nodes ...nodeplan.Node) string {
	t.Helper()
	limit := 34.0
	long := strings.Repeat("a line that is very long and is not broken in the terminal ", 4)
	var out strings.Builder
	require.NoError(t, output.Write(output.HTML, &out, nodeplan.Document{
		Header: nodeplan.Header{Agent: nodeplan.Kubegrace, LimitSeconds: &limit, NeededSeconds: 37.5}, Nodes: nodes,
		Summary: nodeplan.Summary{
			NodeCount: len(nodes) + 1, PodCount: 4, CutShort: 2, LostSeconds: 43,
			Losses:    []nodeplan.Loss{{By: nodeplan.ByWorkload, Name: strings.Repeat("a-long-name", 20), PodCount: 12000, CutShort: 11000, LostSeconds: 1179405}},
			Proposals: []nodeplan.Proposal{{Title: "Lengthen the buckets", Changes: []nodeplan.Change{{Where: "a file", Lines: []string{long}}}}},
			Outliers:  []nodeplan.Outlier{{Name: "data/statefulset/forever", PodCount: 2, AsksSeconds: math.MaxInt64}},
		},
	}))
	return out.String()
}

// reportPage returns the page of [shutdownReport], together with a plan.
func reportPage(t *testing.T, planned nodeplan.Node) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, output.WriteReportPage(&out, shutdownReport(), planned))
	return out.String()
}

// The pages of a plan and of a report can be read in a browser, on a wide screen and on a phone, in light and in dark
// colors. The legend of the plan explains only what is on the page. On the page of the report the bars of the plan and
// of the shutdown have the same scale: web was planned to stop after 6 s, and was stopped after 5 s, which is 0.83 of
// it.
func TestPagesCanBeReadInABrowser(t *testing.T) {
	const (
		legend     = `[...document.querySelectorAll(".legend span")].filter(e => getComputedStyle(e).display != "none").map(e => e.className)`
		background = `getComputedStyle(document.body).backgroundColor`
		left       = `(q) => document.querySelector(q).getBoundingClientRect().left - document.querySelector(".track").getBoundingClientRect().left`
		starts     = `((left) => (left(".actual .bar") / left(".planned .bar")).toFixed(2))(` + left + `)` // of web's two bars
	)
	plan, report := planPage(t, plannedNode("worker-1"), plannedNode("worker-2")), reportPage(t, plannedNode("worker-1"))
	for _, test := range []struct {
		page, script string
		colors       colorScheme
		want         string // the result of the script
	}{
		{page: plan, script: legend, want: `["planned","lost","beyond"]`},
		{page: plan, script: background, colors: dark, want: `"rgb(18, 22, 27)"`},
		{page: report, script: starts, want: `"0.83"`},
		{page: report, script: background, colors: dark, want: `"rgb(18, 22, 27)"`},
	} {
		want := "[[]," + test.want + "]" // [] is the empty list of problems
		wide, narrow := evaluate(t, test.page, "["+inspectScript+", "+test.script+"]", test.colors)
		require.Equal(t, want, wide)
		require.Equal(t, want, narrow)
	}
}

// A page is 500 pixels wide, and has small gray letters and two labels that cover each other. inspectScript finds these
// problems in a frame as narrow as a phone, and does not find the page too wide in a wide one.
func TestInspectScriptFindsWhatCannotBeRead(t *testing.T) {
	wide, narrow := evaluate(t, `<!DOCTYPE html><meta http-equiv="Content-Security-Policy" content="default-src 'none'; style-src 'unsafe-inline'"><body style="margin:0">
		<p style="width:500px;font-size:9px;color:#999">gray</p>
		<div class="axis"><span style="position:absolute;left:10px">one</span><span style="position:absolute;left:15px">two</span></div>`, inspectScript, light)
	require.NotContains(t, wide, "pixels wide")
	for _, want := range []string{"the page is 500 pixels wide", "cut off", "letters of 9px", "contrast of 2.8", "cover each other"} {
		require.Contains(t, narrow, want)
	}
}

// The page of a plan has the summary, the proposals, and a bar for each pod. A name with an HTML tag must be escaped.
// The lock is released after 34 s, and the axis reaches to 136 s, which is four times as long. The bar of web's 17 s
// has 12.5 % of the axis, and that of the 43 s that web loses has 31.618 %. The time that forever asks for ends beyond
// the axis, and is written beside its bar.
func TestThePageOfAPlan(t *testing.T) {
	text := planPage(t, plannedNode("<script>alert(1)</script>"))
	require.NotContains(t, text, "<script>")
	for _, want := range []string{
		"<p>It asks the host for 37.5s, but the host waits for 34s only.</p>", "<h2>What to change</h2>\n<h3>Lengthen the buckets: none is cut short then.</h3>\n<p>In a file:</p>",
		"2 pods ask for up to 106751d23h: data/statefulset/forever;", "<td>12000</td><td>11000</td><td>13d15h</td>", "Here are 1 of the 2 nodes.",
		"Bucket 0, 17s of its 20s, over after 23s at the latest: 3 pods.", `<span class="facts">priority 0?, asks for 1m, gets 17s</span>`,
		`aria-label="planned 6s to 23s, asked for until 1m6s"`, `style="width:12.500%"></div><div class="lost" style="width:31.618%"`, "106751d23h ▸</div>",
		`style="left:25.000%">host's limit 34s`, "Source of the priority: guess.",
	} {
		require.Contains(t, text, want)
	}
	require.NotContains(t, text, "Bucket 1000", "it has no pods")
	require.NotEmpty(t, planPage(t))
}

// The page of a report shows what has happened, beside the plan. web stopped in time although the plan cuts it short,
// so its row is not highlighted. network-abcde still ran when the lock was released, so its bar has an open end.
// early-0 and late-0 were not planned, and get rows in their bucket. Without a plan, too, each pod of the report has a
// row.
func TestThePageOfAReport(t *testing.T) {
	for name, planned := range map[string]nodeplan.Node{"with a plan": plannedNode("worker-1"), "without a plan": {}} {
		t.Run(name, func(t *testing.T) {
			text := reportPage(t, planned)
			for _, want := range []string{
				"<p>4 pods: stopped in time (2); killed, its time was up (1); not stopped (1).</p>", "took 28s.</p>", "the API server did not answer</p>", "lock released at 28s",
				"got 20s, took 9s</span>", `aria-label="actual 5s to 14s"`,
				`aria-label="actual 9s to 20.5s, killed"`, `<div class="text">killed, its time was up; the API server has not acknowledged its final status.</div>`,
				`aria-label="actual 21s to 28s at least, its end is not known"`, `<div class="text">not stopped; context deadline exceeded.</div>`,
			} {
				require.Contains(t, text, want)
			}
			require.Contains(t, text, "<li class=\"pod\">\n<div class=\"head\"><span class=\"name\">shop/web", "it was to be cut short, and has stopped in time")
			require.Contains(t, text, "<li class=\"pod bad\">\n<div class=\"head\"><span class=\"name\">shop/late-0")
			require.Less(t, strings.Index(text, "late-0"), strings.Index(text, "network-abcde"), "its bucket is the first")
			hasPlan := len(planned.Buckets) > 0
			require.Equal(t, hasPlan, strings.Contains(text, "planned 6s to 23s"))
		})
	}
}

// began is when the shutdown of [shutdownReport] began.
var began = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// writeReport returns a report as a text in a format.
func writeReport(t *testing.T, format string, r api.Report) string {
	t.Helper()
	var out strings.Builder
	require.NoError(t, output.WriteReport(format, &out, r))
	return out.String()
}

// A report is written as a table and as JSON, which golden files have. The last sentence of the table says whether the
// shutdown ended, was called off, has no known end, or is under way.
func TestReport(t *testing.T) {
	report := shutdownReport()
	golden.Require(t, "report.txt", writeReport(t, output.Table, report))
	golden.Require(t, "report.json", writeReport(t, output.JSON, report))
	t.Setenv("COLUMNS", "200")

	report.Shutdown.Cancelled = true
	require.Contains(t, writeReport(t, output.Table, report), "and was called off after 28s.")
	report.Shutdown.Ended = time.Time{}
	require.Contains(t, writeReport(t, output.Table, report), "; its end is not known.")
	report.UnderWay = true
	require.Contains(t, writeReport(t, output.Table, report), " and is under way.")
}
