package output

import (
	"fmt"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/shutdownplan/internal/nodeplan"
)

// chart draws a node: a row for each pod, with a bar from its start to its end at the
// latest, and behind it what the pod asks for and does not get.
func (p *people) chart(b *strings.Builder, n nodeplan.Node) {
	granted, lost, end := "█", "░", "│"
	if p.screen.ASCII {
		granted, lost, end = "#", ".", "|"
	}
	length := chartLength(n)
	names := min(32, p.screen.Width*2/5)
	room := p.screen.Width - names - 2
	at := func(s float64) int { return int(math.Round(min(s, length) / length * float64(room))) }
	for _, bucket := range n.Buckets {
		b.WriteByte('\n')
		p.paragraph(b, bucketLine(bucket))
		for i := range bucket.Pods {
			pod := &bucket.Pods[i]
			from, to := at(pod.LatestStartSeconds), at(pod.LatestEndSeconds)
			to = max(to, min(from+1, room)) // something is always seen
			from = min(from, to)
			wanted := max(at(pod.LatestStartSeconds+float64(pod.OwnSeconds)), to)
			if pod.GrantedSeconds >= pod.OwnSeconds {
				wanted = to
			}
			bar := strings.Repeat(" ", from) + p.colored(text.FgBlue, strings.Repeat(granted, to-from)) + p.colored(text.FgRed, strings.Repeat(lost, wanted-to))
			fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("%s  %s", pad(p.screen.snip(clean(pod.FullName()), names), names), bar), " "))
		}
	}
	release := at(n.ReleaseSeconds)
	fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", names+2+min(release, room-1)), end)
	label := "host let go, " + seconds(n.ReleaseSeconds)
	column := min(names+2+release, p.screen.Width-len(label))
	fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", max(column, 0)), label)
	p.paragraph(b, fmt.Sprintf("%s what it gets, at the latest; %s what it asks for beyond it.", granted, lost))
}

// pad fills a text up to a width.
func pad(words string, width int) string {
	return words + strings.Repeat(" ", max(width-text.StringWidth(words), 0))
}

// chartLength is the time that the width of the bars stands for: up to the last end, and
// as much again for what pods ask for beyond it.
func chartLength(n nodeplan.Node) float64 {
	last, wanted := max(n.ReleaseSeconds, 1), 0.0
	for _, bucket := range n.Buckets {
		for i := range bucket.Pods {
			last = max(last, bucket.Pods[i].LatestEndSeconds)
			wanted = max(wanted, bucket.Pods[i].LatestStartSeconds+float64(bucket.Pods[i].OwnSeconds))
		}
	}
	return max(last, min(wanted, 2*last))
}
