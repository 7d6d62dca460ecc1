package output

import (
	"fmt"
	"io"
	"math"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/timeline"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// htmlWriter collects the nodes, and writes the page at the end.
type htmlWriter struct {
	out    io.Writer
	header nodeplan.Header
	page   timeline.Page
}

// Begin begins the page with what is the same for all nodes.
func (w *htmlWriter) Begin(h nodeplan.Header) error {
	w.header = h
	w.page = timeline.Page{Title: "What a shutdown would do", Text: []string{hostText(h)}}
	return nil
}

// Node adds a node to the page.
func (w *htmlWriter) Node(n nodeplan.Node) error {
	node := timeline.Node{Name: n.Name, Text: n.Warnings, Release: duration(n.ReleaseSeconds)}
	if w.header.LimitSeconds != nil {
		node.Limit = duration(*w.header.LimitSeconds)
	}
	for _, bucket := range n.Buckets {
		if len(bucket.Pods) == 0 {
			continue
		}
		b := timeline.Bucket{Name: bucketLine(bucket)}
		for i := range bucket.Pods {
			b.Pods = append(b.Pods, timelinePod(&bucket.Pods[i]))
		}
		node.Buckets = append(node.Buckets, b)
	}
	w.page.Nodes = append(w.page.Nodes, node)
	return nil
}

func timelinePod(pod *nodeplan.Pod) timeline.Pod {
	row := timeline.Pod{
		Name:  pod.FullName(),
		Facts: fmt.Sprintf("priority %d, asks for %d s, gets %d s", pod.Priority, pod.OwnSeconds, pod.GrantedSeconds),
		Bad:   pod.CutShort, Text: pod.Why,
		Planned: &timeline.Bar{Start: duration(pod.LatestStartSeconds), End: duration(pod.LatestEndSeconds)},
	}
	if pod.GrantedSeconds < pod.OwnSeconds {
		row.Planned.Wanted = duration(pod.LatestStartSeconds + float64(pod.OwnSeconds))
	}
	for _, hook := range pod.Hooks {
		if hook.CutShort {
			row.Text += fmt.Sprintf(" Its preStop %s, does not fit.", hook.Text())
		}
	}
	return row
}

// End writes the page.
func (w *htmlWriter) End(s nodeplan.Summary) error {
	if s.NodeCount == 0 {
		w.page.Text = append(w.page.Text, "There are no pods.")
	} else {
		sum := fmt.Sprintf("%s with %s: %d cut short, %d s lost.", countText(s.NodeCount, "node"), countText(s.PodCount, "pod"), s.CutShort, s.LostSeconds)
		if len(w.page.Nodes) < s.NodeCount {
			sum += fmt.Sprintf(" Here are %d of them.", len(w.page.Nodes))
		}
		w.page.Text = append(w.page.Text, sum)
	}
	if s.NodeCount > 1 {
		w.page.Text = append(w.page.Text, lossTexts(s.Losses)...)
	}
	for _, proposal := range s.Proposals {
		text := proposal.Title + ". " + gainText(proposal, s) + " "
		for _, change := range proposal.Changes {
			w.page.Changes = append(w.page.Changes, timeline.Change{Text: text + placeText(change), Lines: change.Lines})
			text = "And: "
		}
	}
	return w.page.Write(w.out)
}

// lossTexts returns a line for each kind of group, with those that lose most.
func lossTexts(losses []nodeplan.Loss) (lines []string) {
	shown := map[string]int{}
	for _, loss := range losses {
		text := fmt.Sprintf("%s, %d of %s cut short, %d s", loss.Name, loss.CutShort, countText(loss.PodCount, "pod"), loss.LostSeconds)
		switch shown[loss.By]++; {
		case shown[loss.By] == 1:
			lines = append(lines, "Loses most by "+loss.By+": "+text)
		case shown[loss.By] <= shownLosses:
			lines[len(lines)-1] += "; " + text
		}
	}
	return lines
}

// duration converts a number of seconds. Too many seconds are the longest duration.
func duration(s float64) time.Duration {
	if s >= float64(math.MaxInt64)/float64(time.Second) {
		return math.MaxInt64
	}
	return time.Duration(s * float64(time.Second))
}
