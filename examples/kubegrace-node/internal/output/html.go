package output

import (
	"fmt"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/internal/timeline"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// pageOf returns the page of a plan.
func pageOf(d nodeplan.Document) timeline.Page {
	page := timeline.Page{Title: "What a shutdown would do", Text: append(hostLines(d.Header), sumLine(d.Summary)), ChangeTitle: changeTitle(d.Summary)}
	for _, proposal := range d.Summary.Proposals {
		title := proposalText(proposal)
		for _, change := range proposal.Changes {
			page.Changes = append(page.Changes, timeline.Change{Title: title, Text: placeText(change), Lines: change.Lines})
			title = ""
		}
	}
	for _, line := range outlierLines(d.Summary) {
		page.Changes = append(page.Changes, timeline.Change{Text: line})
	}
	if rows := lossRows(d.Summary, nodeplan.MaxWorst/2); d.Summary.NodeCount > 1 && len(rows) > 1 {
		page.Begin = rows
	}
	if len(d.Nodes) < d.Summary.NodeCount {
		page.NodeText = fmt.Sprintf("Here are %d of the %s.", len(d.Nodes), CountText(d.Summary.NodeCount, "node"))
	}
	limit := time.Duration(0)
	if d.LimitSeconds != nil {
		limit = duration.Of(*d.LimitSeconds)
	}
	for _, n := range d.Nodes {
		page.Nodes = append(page.Nodes, TimelineNode(n, limit))
	}
	return page
}

// TimelineNode returns the rows and bars of a planned node. A limit of 0 is not known.
func TimelineNode(n nodeplan.Node, limit time.Duration) timeline.Node {
	node := timeline.Node{
		Name: n.Name, Text: append([]string{CountText(n.PodCount, "pod") + ", " + lossText(n.CutShort, n.LostSeconds) + "."}, n.Warnings...),
		Release: duration.Of(n.ReleaseSeconds), Limit: limit,
	}
	for _, bucket := range n.Buckets {
		if len(bucket.Pods) == 0 {
			continue
		}
		b := timeline.Bucket{Priority: bucket.Priority, Name: bucketLine(bucket)}
		for i := range bucket.Pods {
			b.Pods = append(b.Pods, timelinePod(&bucket.Pods[i]))
		}
		node.Buckets = append(node.Buckets, b)
	}
	return node
}

func timelinePod(pod *nodeplan.Pod) timeline.Pod {
	row := timeline.Pod{
		Name: pod.FullName(), Bad: pod.CutShort, Text: strings.Join(hookTexts(pod), " "),
		Facts:   fmt.Sprintf("priority %s, asks for %s, gets %s", priorityText(pod), duration.Seconds(pod.OwnSeconds), duration.Seconds(pod.GrantedSeconds)),
		Planned: &timeline.Bar{Start: duration.Of(pod.LatestStartSeconds), End: duration.Of(pod.LatestEndSeconds)},
	}
	if pod.PriorityIsGuessed() {
		row.Text = strings.TrimSpace("The priority is " + pod.PrioritySource + ". " + row.Text)
	}
	if pod.GrantedSeconds < pod.OwnSeconds {
		row.Planned.Wanted = duration.Of(pod.LatestStartSeconds + float64(pod.OwnSeconds))
	}
	return row
}
