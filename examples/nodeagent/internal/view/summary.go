package view

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/lifecycle"
)

// legend says how pods are stopped, for somebody who has never seen a shutdown.
const legend = "Pods stop in buckets, the lowest priority first: \"1000+\" is from 1000 up to the next bucket. " +
	"A pod first runs its preStop hook, if it has one, then gets a stop signal (SIGTERM); what still runs at the end of its time is killed."

// columnLegend explains columns of the summary.
const columnLegend = "Granted is the time that a pod had to stop, took the time that it needed."

// maxLegendWidth is the maximum width of the legend below the summary.
const maxLegendWidth = 100

// headline says that a shutdown begins.
func headline(s Snapshot) string {
	return fmt.Sprintf("Shutting down %s in %s, the lowest priority first; it may take up to %s.",
		plural(len(s.Pods), "pod"), plural(s.bucketCount(), "bucket"), durationText(s.Allowed))
}

// progress says how many pods run, or how far the shutdown is.
func progress(s Snapshot) string {
	if s.Began.IsZero() {
		return fmt.Sprintf("%d of %s running.", s.podsIn(Running), plural(len(s.Pods), "pod"))
	}
	return fmt.Sprintf("Shutting down: %d of %s gone, after %s of at most %s.",
		s.podsIn(Gone), plural(len(s.Pods), "pod"), durationText(s.Now.Sub(s.Began)), durationText(s.Allowed))
}

// writeSummary writes the table and the sentences that are shown at the end of a shutdown.
// The lines are narrower than width; 0 means that they may have any width.
func writeSummary(out *bytes.Buffer, s Snapshot, width int) {
	rows := make([]table.Row, 0, len(s.Pods)+1)
	rows = append(rows, table.Row{"pod", "priority", "bucket", "granted", "took", "outcome"})
	for _, p := range s.Pods {
		rows = append(rows, table.Row{p.Name, strconv.Itoa(int(p.Priority)), bucketName(p.Bucket), grantedCell(p), tookCell(p), outcomeCell(p, s.Cancelled)})
	}
	fmt.Fprintf(out, "\n%s\n\n", renderTable(rows, width, text.WrapSoft))
	writeSentences(out, summarySentences(s), width)
	legendWidth := maxLegendWidth
	if width > 0 {
		legendWidth = min(legendWidth, width-1)
	}
	fmt.Fprintf(out, "\n%s\n", wrap(legend+" "+columnLegend, legendWidth))
}

// endedBadly reports whether containers were killed, or may still run.
func endedBadly(o lifecycle.Outcome) bool {
	return o != lifecycle.Graceful && o != lifecycle.NotFound
}

func grantedCell(p Pod) string {
	if p.State != Gone && p.State != Ending {
		return "-"
	}
	return fmt.Sprintf("%d s", p.Granted)
}

func tookCell(p Pod) string {
	if p.State != Gone {
		return "-"
	}
	return durationText(p.Took)
}

// outcomeCell says how the stop of a pod has ended, or else what the pod is doing.
func outcomeCell(p Pod, cancelled bool) string {
	switch {
	case p.State == Gone:
		return p.stopText()
	case cancelled && p.State == Running:
		return "still runs, the shutdown was called off"
	}
	return p.Doing(false)
}
