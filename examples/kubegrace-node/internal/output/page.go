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

// page is what page.html shows: what is planned, what has happened, or both, with one bar above the other. It has no script
// and loads nothing. Its bars are scaled to the width of the window and its labels are not, so that both can be read on a
// phone.
type page struct {
	Title string
	Text  []string
	// Summary and Outliers say what to change, and Begin where to begin: a table whose first row is the header.
	Summary  nodeplan.Summary
	Outliers []string
	Begin    [][]string
	NodeText string
	Nodes    []*chart
}

// chart is the shutdown of a node. Its times count from the announcement of the shutdown.
type chart struct {
	Name string
	Text []string
	// Limit is when the host goes down even if it is not released, and Release when it is released; 0: not known.
	Limit, Release time.Duration
	Buckets        []*rows
}

// rows are the pods of a bucket.
type rows struct {
	priority int32
	Title    string
	Pods     []*row
}

// row is a pod. Facts stand beside its name, and Text under its bars. Bad highlights it: it is cut short, was killed, or is
// not known to have ended.
type row struct {
	Name, Facts, Text string
	Bad               bool
	Bars              []bar
}

// bar is the time from a pod's stop to its end.
type bar struct {
	Kind       string // planned or actual
	Start, End time.Duration
	// Wanted is when the pod would end with all the time that it asks for. It is drawn if it is after End.
	Wanted time.Duration
	// Open says that the end is not known: the pod ran at least until End. Killed says that it was killed at End.
	Open, Killed bool
}

func (p page) write(out io.Writer) error {
	funcs := template.FuncMap{"changeTitle": changeTitle, "proposalText": proposalText, "placeText": placeText, "text": duration.Text, "scale": p.scale}
	t, err := template.New("page.html").Funcs(funcs).Parse(pageTemplate)
	if err != nil {
		return err
	}
	return t.Execute(out, p)
}

// writePlanPage writes a plan as a page.
func writePlanPage(out io.Writer, d nodeplan.Document) error {
	p := page{Title: "What a shutdown would do", Text: append(hostLines(d.Header), sumLine(d.Summary)), Summary: d.Summary, Outliers: outlierLines(d.Summary)}
	if d.Summary.NodeCount > 1 && len(d.Summary.Losses) > 0 {
		p.Begin = lossRows(d.Summary, nodeplan.MaxWorst/2)
	}
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

// chartOf returns the rows and bars of a planned node.
func chartOf(n nodeplan.Node) *chart {
	c := &chart{
		Name: n.Name, Text: append([]string{CountText(n.PodCount, "pod") + ", " + lossText(n.CutShort, n.LostSeconds) + "."}, n.Warnings...),
		Release: duration.Of(n.ReleaseSeconds),
	}
	for _, bucket := range n.Buckets {
		if len(bucket.Pods) == 0 {
			continue
		}
		b := &rows{priority: bucket.Priority, Title: bucketLine(bucket)}
		for i := range bucket.Pods {
			b.Pods = append(b.Pods, plannedRow(&bucket.Pods[i]))
		}
		c.Buckets = append(c.Buckets, b)
	}
	return c
}

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

// scale is the time that the width of the bars stands for.
type scale struct{ Length time.Duration }

// scale returns the scale of all nodes, so that their bars can be compared. It reaches to the last end, and
// beyond it to the time that pods ask for, but at most four times as far as the last end, because a pod that
// asks for a day would make all other bars invisible.
func (p page) scale() scale {
	last, wanted, limit := time.Second, time.Duration(0), time.Duration(0)
	for _, n := range p.Nodes {
		last, limit = max(last, n.Release), max(limit, n.Limit)
		for _, b := range n.Buckets {
			for _, pod := range b.Pods {
				for _, bar := range pod.Bars {
					last, wanted = max(last, bar.End), max(wanted, bar.Wanted)
				}
			}
		}
	}
	longest := min(last, math.MaxInt64/4) * 4
	if last == time.Second {
		longest = 30 * time.Second // all are killed at once, and 30 s is what pods ask for by default
	}
	if limit < longest {
		last = max(last, limit)
	}
	return scale{max(last, min(wanted, longest))}
}

// Ticks returns round times for the axis, so few that their labels fit onto a narrow page.
func (s scale) Ticks() (ticks []time.Duration) {
	const most = 4
	step := s.Length / most
	for _, seconds := range []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 6 * 3600, 24 * 3600} {
		if round := time.Duration(seconds) * time.Second; round >= s.Length/most {
			step = round
			break
		}
	}
	for at := time.Duration(0); at <= s.Length && len(ticks) <= most; at += step {
		ticks = append(ticks, at)
	}
	return ticks
}

// Percent returns a time as a part of the width of the bars, for CSS.
func (s scale) Percent(d time.Duration) string {
	return fmt.Sprintf("%.3f", 100*float64(d)/float64(s.Length))
}

// IsBehind reports whether a time lies behind a part of the width, such as 0.9. Labels there stand on the left of their line,
// because on the right they might not fit onto the page.
func (s scale) IsBehind(part float64, at time.Duration) bool {
	return float64(at) > part*float64(s.Length)
}

// drawnBar is a bar with its percentages of the width, and the text that describes it.
type drawnBar struct {
	bar
	Left, Width, Lost, Text string // Lost is "" where nothing is lost
	Beyond                  string // what is asked for, if it does not fit onto the axis; else ""
}

// Draw draws a bar. Impossible times are drawn as far as possible: an end before its start as a bar without width, and a time
// that is too long as the longest time of the axis.
func (s scale) Draw(b bar) drawnBar {
	start := min(max(b.Start, 0), s.Length)
	end := min(max(b.End, start), s.Length)
	v := drawnBar{bar: b, Left: s.Percent(start), Width: s.Percent(end - start)}
	v.Text = fmt.Sprintf("%s %s to %s", b.Kind, duration.Text(b.Start), duration.Text(b.End))
	if b.Open {
		v.Text += " at least, its end is not known"
	}
	if b.Killed {
		v.Text += ", killed"
	}
	if b.Wanted > b.End {
		v.Lost = s.Percent(min(b.Wanted, s.Length) - end)
		if b.Wanted > s.Length {
			v.Beyond = duration.Text(b.Wanted - b.Start)
		}
		v.Text += ", asked for until " + duration.Text(b.Wanted)
	}
	return v
}
