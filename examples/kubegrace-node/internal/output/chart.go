package output

import (
	"fmt"
	"math"
	"strings"

	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// chart draws a row for each pod of a node: a bar from the latest start of the pod to its latest
// end, and behind it the time that the pod asks for and does not get.
func (t *terminalWriter) chart(b *strings.Builder, n nodeplan.Node) {
	granted, lost, end := "█", "░", "│"
	if t.screen.ASCII {
		granted, lost, end = "#", ".", "|"
	}
	length := chartSeconds(n)
	nameWidth := min(32, t.screen.Width*2/5)
	barWidth := t.screen.Width - nameWidth - 2
	column := func(seconds float64) int { return int(math.Round(min(seconds, length) / length * float64(barWidth))) }
	for _, bucket := range n.Buckets {
		b.WriteByte('\n')
		t.paragraph(b, bucketLine(bucket))
		for i := range bucket.Pods {
			pod := &bucket.Pods[i]
			from, to := column(pod.LatestStartSeconds), column(pod.LatestEndSeconds)
			to = max(to, min(from+1, barWidth)) // a bar has at least one column
			from = min(from, to)
			wanted := max(column(pod.LatestStartSeconds+float64(pod.OwnSeconds)), to)
			if pod.GrantedSeconds >= pod.OwnSeconds {
				wanted = to
			}
			bar := strings.Repeat(" ", from) + t.colored(text.FgBlue, strings.Repeat(granted, to-from)) + t.colored(text.FgRed, strings.Repeat(lost, wanted-to))
			fmt.Fprintln(b, strings.TrimRight(fmt.Sprintf("%s  %s", padded(t.screen.shortened(clean(pod.FullName()), nameWidth), nameWidth), bar), " "))
		}
	}
	release := column(n.ReleaseSeconds)
	fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", nameWidth+2+min(release, barWidth-1)), end)
	label := "host let go, " + secondsText(n.ReleaseSeconds)
	labelColumn := min(nameWidth+2+release, t.screen.Width-len(label))
	fmt.Fprintf(b, "%s%s\n", strings.Repeat(" ", max(labelColumn, 0)), label)
	t.paragraph(b, fmt.Sprintf("%s what it gets, at the latest; %s what it asks for beyond it.", granted, lost))
}

// padded adds spaces to a text up to a width.
func padded(s string, width int) string {
	return s + strings.Repeat(" ", max(width-text.StringWidth(s), 0))
}

// chartSeconds returns the time that the width of the bars stands for. It reaches to the last
// end, and beyond it to the time that pods ask for, at most twice as far as the last end.
func chartSeconds(n nodeplan.Node) float64 {
	last, wanted := max(n.ReleaseSeconds, 1), 0.0
	for _, bucket := range n.Buckets {
		for i := range bucket.Pods {
			last = max(last, bucket.Pods[i].LatestEndSeconds)
			wanted = max(wanted, bucket.Pods[i].LatestStartSeconds+float64(bucket.Pods[i].OwnSeconds))
		}
	}
	return max(last, min(wanted, 2*last))
}
