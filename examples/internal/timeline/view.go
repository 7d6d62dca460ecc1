package timeline

import (
	"fmt"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
)

// pageView is a Page in the form that the template page.html takes. All positions and
// widths in it are percentages of the width of the bars, formatted for CSS.
type pageView struct {
	Page
	Nodes []nodeView
	// Planned, Lost, Beyond, Actual and Killed say which entries the legend has.
	Planned, Lost, Beyond, Actual, Killed bool
}

type nodeView struct {
	Name    string
	Text    []string
	Ticks   []mark
	Marks   []mark
	Buckets []bucketView
}

// mark is a vertical line with a label: a tick of the axis, the host's limit, or its release.
type mark struct {
	Left string
	Text string
	// Kind is tick, limit or release.
	Kind string
	// LabelLeft puts the label on the left of the line. On the right it might not fit onto
	// the page.
	LabelLeft bool
}

type bucketView struct {
	Name string
	Pods []podView
}

type podView struct {
	Name, Facts, Text string
	Bad               bool
	Bars              []barView
}

type barView struct {
	Kind              string // planned or actual
	Left, Width, Lost string // Lost is "" where nothing is lost
	Text              string
	Open, Killed      bool
	Beyond            string // what is asked for, if it does not fit onto the axis; else ""
}

func (p Page) view() pageView {
	v := pageView{Page: p}
	s := p.scale()
	for _, node := range p.Nodes {
		n := node.view(s)
		for _, b := range n.Buckets {
			for _, pod := range b.Pods {
				for _, bar := range pod.Bars {
					v.Planned = v.Planned || bar.Kind == "planned"
					v.Actual = v.Actual || bar.Kind == "actual" && !bar.Killed
					v.Killed = v.Killed || bar.Killed
					v.Lost = v.Lost || bar.Lost != ""
					v.Beyond = v.Beyond || bar.Beyond != ""
				}
			}
		}
		v.Nodes = append(v.Nodes, n)
	}
	return v
}

func (n Node) view(s scale) nodeView {
	v := nodeView{Name: n.Name, Text: n.Text, Ticks: s.ticks()}
	if n.Release > 0 {
		v.Marks = append(v.Marks, s.mark("release", n.Release, "host let go at "+duration.Text(n.Release)))
	}
	if n.Limit > 0 && n.Limit <= s.length {
		v.Marks = append(v.Marks, s.mark("limit", n.Limit, "host's limit "+duration.Text(n.Limit)))
	}
	for _, b := range n.Buckets {
		bucket := bucketView{Name: b.Name}
		for _, pod := range b.Pods {
			bucket.Pods = append(bucket.Pods, pod.view(s))
		}
		v.Buckets = append(v.Buckets, bucket)
	}
	return v
}

func (p Pod) view(s scale) podView {
	v := podView{Name: p.Name, Facts: p.Facts, Text: p.Text, Bad: p.Bad}
	if p.Planned != nil {
		v.Bars = append(v.Bars, s.bar("planned", *p.Planned))
	}
	if p.Actual != nil {
		v.Bars = append(v.Bars, s.bar("actual", *p.Actual))
	}
	return v
}

// scale is the time that the width of the bars stands for, and the time between two ticks.
type scale struct{ length, step time.Duration }

// scale returns the scale of all nodes, so that their bars can be compared. It reaches to the last end, and
// beyond it to the time that pods ask for, but at most four times as far as the last end, because a pod that
// asks for a day would make all other bars invisible.
func (p Page) scale() scale {
	last, wanted, limit := time.Second, time.Duration(0), time.Duration(0)
	for _, n := range p.Nodes {
		last, limit = max(last, n.Release), max(limit, n.Limit)
		for _, b := range n.Buckets {
			for _, p := range b.Pods {
				for _, bar := range []*Bar{p.Planned, p.Actual} {
					if bar != nil {
						last, wanted = max(last, bar.End), max(wanted, bar.Wanted)
					}
				}
			}
		}
	}
	longest := last
	if last < math.MaxInt64/4 {
		longest = 4 * last
	}
	if last == time.Second {
		longest = 30 * time.Second // all are killed at once, and 30 s is what pods ask for by default
	}
	if limit < longest {
		last = max(last, limit)
	}
	s := scale{length: max(last, min(wanted, longest))}
	s.step = s.tickStep()
	return s
}

// maxSteps limits the steps of an axis, so that the labels of its ticks fit onto a narrow
// page.
const maxSteps = 4

// tickStep returns the shortest round time with which the axis has at most maxSteps steps.
func (s scale) tickStep() time.Duration {
	for _, seconds := range []int64{1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 6 * 3600, 24 * 3600} {
		if step := time.Duration(seconds) * time.Second; step >= s.length/maxSteps {
			return step
		}
	}
	return s.length / maxSteps
}

func (s scale) ticks() []mark {
	ticks := make([]mark, 0, maxSteps+1)
	for at := time.Duration(0); at <= s.length && len(ticks) <= maxSteps; at += s.step {
		tick := s.mark("tick", at, duration.Text(at))
		tick.LabelLeft = at > s.length/10*9
		ticks = append(ticks, tick)
	}
	return ticks
}

func (s scale) mark(kind string, at time.Duration, text string) mark {
	return mark{Left: s.percent(at), Text: text, Kind: kind, LabelLeft: at > s.length/2}
}

func (s scale) bar(kind string, b Bar) barView {
	start := min(max(b.Start, 0), s.length)
	end := min(max(b.End, start), s.length)
	v := barView{Kind: kind, Left: s.percent(start), Width: s.percent(end - start), Open: b.Open, Killed: b.Killed}
	v.Text = fmt.Sprintf("%s %s to %s", kind, duration.Text(b.Start), duration.Text(b.End))
	if b.Open {
		v.Text = fmt.Sprintf("%s %s to %s at least, its end is not known", kind, duration.Text(b.Start), duration.Text(b.End))
	}
	if b.Killed {
		v.Text += ", killed"
	}
	if b.Wanted > b.End {
		v.Lost = s.percent(min(b.Wanted, s.length) - end)
		if b.Wanted > s.length {
			v.Beyond = duration.Text(b.Wanted - b.Start)
		}
		v.Text += ", asked for until " + duration.Text(b.Wanted)
	}
	return v
}

func (s scale) percent(d time.Duration) string {
	return fmt.Sprintf("%.3f", 100*float64(d)/float64(s.length))
}
