package output

import (
	_ "embed"
	"fmt"
	"html/template"
	"io"
	"math"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

//go:embed page.html
var pageTemplate string

// page has the values for the template page.html. The page shows a plan, what a shutdown has done, or both. If it
// shows both, a pod has two bars, one above the other. The page has no script and loads nothing. Its bars are scaled
// to the width of the window but its labels are not, so that both can be read on a phone.
type page struct {
	Title string
	Text  []string
	// Summary and Outliers say what to change.
	Summary  nodeplan.Summary
	Outliers []string
	// Begin is a table of what loses most, for readers of a plan of several nodes, who cannot look at each
	// node. Its first row is the header. It is empty if nothing is lost or there is one node only.
	Begin [][]string
	// NodeText says how many of the nodes the page shows; "" if it shows all.
	NodeText string
	Nodes    []*chart
}

// chart is the shutdown of one node on a page. Its times count from the announcement of the shutdown.
type chart struct {
	Name string
	Text []string
	// Limit is when the host goes down even if the agent has not released its lock. Release is when the agent
	// releases it. 0 means that the time is not known.
	Limit, Release time.Duration
	Buckets        []*bucketRows
}

// bucketRows are the pods of a bucket.
type bucketRows struct {
	priority int32
	Title    string
	Pods     []*row
}

// row is a pod on a page. Facts stand beside its name, and Text under its bars. Bad highlights the row,
// because the pod is cut short, was killed, or is not known to have ended.
type row struct {
	Name, Facts, Text string
	Bad               bool
	Bars              []bar
}

// bar is the time from the moment when a pod is told to stop until its end.
type bar struct {
	Kind       string // planned or actual
	Start, End time.Duration
	// Wanted is when the pod would end with its whole grace period. If it is after End, the difference is
	// drawn as lost.
	Wanted time.Duration
	// Open says that the end of the pod is not known: it ran at least until End. Killed says that it was
	// killed at End.
	Open, Killed bool
}

// write writes the page as HTML.
func (p page) write(out io.Writer) error {
	funcs := template.FuncMap{"changeTitle": changeTitle, "proposalText": proposalText, "placeText": placeText, "text": duration.Text, "scale": p.commonScale}
	return template.Must(template.New("page.html").Funcs(funcs).Parse(pageTemplate)).Execute(out, p)
}

// writePlanPage writes a plan as a page. The page of a fleet, which is a plan of several nodes, begins with
// the rows of p.Begin: the workloads and the nodes that lose most, so that the reader knows where to look
// first.
func writePlanPage(out io.Writer, d nodeplan.Document) error {
	p := page{Title: "What a shutdown would do", Text: append(hostLines(d.Header), sumLine(d.Summary)), Summary: d.Summary, Outliers: outlierLines(d.Summary), Begin: lossRows(d.Summary)}
	if len(d.Nodes) < d.Summary.NodeCount {
		p.NodeText = fmt.Sprintf("Here are %d of the %s.", len(d.Nodes), CountText(d.Summary.NodeCount, "node"))
	}
	for _, n := range d.Nodes {
		c := chartOf(n)
		if d.LimitSeconds != nil {
			c.Limit = duration.Of(*d.LimitSeconds)
		}
		p.Nodes = append(p.Nodes, c)
	}
	return p.write(out)
}

// chartOf returns the chart of a planned node, with a bar for each pod. Buckets without pods are left out.
func chartOf(n nodeplan.Node) *chart {
	c := &chart{
		Name: n.Name, Text: append([]string{CountText(n.PodCount, "pod") + ", " + lossText(n.CutShort, n.LostSeconds) + "."}, n.Warnings...),
		Release: duration.Of(n.ReleaseSeconds),
	}
	for _, bucket := range n.Buckets {
		if len(bucket.Pods) == 0 {
			continue
		}
		b := &bucketRows{priority: bucket.Priority, Title: bucketLine(bucket)}
		for i := range bucket.Pods {
			b.Pods = append(b.Pods, plannedRow(&bucket.Pods[i]))
		}
		c.Buckets = append(c.Buckets, b)
	}
	return c
}

// plannedRow returns the row of a planned pod.
func plannedRow(pod *nodeplan.Pod) *row {
	planned := bar{Kind: "planned", Start: duration.Of(pod.LatestStartSeconds), End: duration.Of(pod.LatestEndSeconds)}
	if pod.GrantedSeconds < pod.OwnSeconds {
		planned.Wanted = duration.Of(pod.LatestStartSeconds + float64(pod.OwnSeconds))
	}
	text := hookTexts(pod)
	if pod.PriorityIsGuessed() {
		text = append([]string{"Source of the priority: " + pod.PrioritySource + "."}, text...)
	}
	return &row{
		Name: pod.FullName(), Bad: pod.CutShort, Text: strings.Join(text, " "), Bars: []bar{planned},
		Facts: fmt.Sprintf("priority %s, asks for %s, gets %s", priorityText(pod), duration.Seconds(pod.OwnSeconds), duration.Seconds(pod.GrantedSeconds)),
	}
}

// scale says which time the full width of the bars stands for. All charts of a page share it.
type scale struct{ Length time.Duration }

// commonScale returns one scale for all nodes, so that their bars can be compared. It reaches to the last end of a
// pod, and further if pods ask for more time than they get. It never reaches further than four times the last
// end, because a pod that asks for a day would make all other bars invisible. The host's limit is on it if it fits.
func (p page) commonScale() scale {
	const shortest = time.Second // so that the scale is never 0
	lastEnd := shortest          // of a pod, or the release of the lock
	var lastWanted, limit time.Duration
	for _, n := range p.Nodes {
		lastEnd, limit = max(lastEnd, n.Release), max(limit, n.Limit)
		for _, b := range n.Buckets {
			for _, pod := range b.Pods {
				for _, bar := range pod.Bars {
					lastEnd, lastWanted = max(lastEnd, bar.End), max(lastWanted, bar.Wanted)
				}
			}
		}
	}
	longest := 4 * min(lastEnd, math.MaxInt64/4) // the product does not overflow
	if lastEnd == shortest {
		longest = 30 * time.Second // all pods are killed at once; by default a pod asks for 30 s
	}
	length := max(lastEnd, min(lastWanted, longest))
	if limit < longest {
		length = max(length, limit)
	}
	return scale{length}
}

// Ticks returns round times for the axis, at most five, so that their labels fit onto a narrow page.
func (s scale) Ticks() (ticks []time.Duration) {
	const maxSteps = 4          // between five ticks
	step := s.Length / maxSteps // if that is longer than a day; otherwise the next round time
	for _, seconds := range []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 6 * 3600, 24 * 3600} {
		if round := time.Duration(seconds) * time.Second; round >= step {
			step = round
			break
		}
	}
	for at := time.Duration(0); at <= s.Length && len(ticks) <= maxSteps; at += step {
		ticks = append(ticks, at)
	}
	return ticks
}

// Percent returns a time in percent of the width of the bars, for CSS.
func (s scale) Percent(d time.Duration) string {
	return fmt.Sprintf("%.3f", 100*float64(d)/float64(s.Length))
}

// IsRightOf reports whether a time lies to the right of this part of the width: 0.9 is near the right end. The label of such
// a time is put to the left of its line, because to the right it might not fit onto the page.
func (s scale) IsRightOf(part float64, at time.Duration) bool {
	return float64(at) > part*float64(s.Length)
}

// drawnBar is a bar as the template draws it. Left, Width and Lost are percentages of the full width, and Text
// describes the bar in words.
type drawnBar struct {
	bar
	Left, Width, Lost, Text string // Lost is "" if nothing is lost
	Beyond                  string // the time that the pod asks for if it ends beyond the axis; otherwise ""
}

// Draw returns how to draw a bar. The drawn bar never leaves the axis: a time beyond the axis is drawn at its end, and a bar
// whose end is before its start has no width.
func (s scale) Draw(b bar) drawnBar {
	start := min(max(b.Start, 0), s.Length)
	end := min(max(b.End, start), s.Length)
	drawn := drawnBar{bar: b, Left: s.Percent(start), Width: s.Percent(end - start)}
	drawn.Text = fmt.Sprintf("%s %s to %s", b.Kind, duration.Text(b.Start), duration.Text(b.End))
	if b.Open {
		drawn.Text += " at least, its end is not known"
	}
	if b.Killed {
		drawn.Text += ", killed"
	}
	if b.Wanted > b.End {
		drawn.Lost = s.Percent(min(b.Wanted, s.Length) - end)
		if b.Wanted > s.Length {
			drawn.Beyond = duration.Text(b.Wanted - b.Start)
		}
		drawn.Text += ", asked for until " + duration.Text(b.Wanted)
	}
	return drawn
}
