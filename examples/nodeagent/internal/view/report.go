package view

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Report returns a report as a table and sentences. The lines are narrower than width; 0
// means that they may have any width.
func Report(r api.Report, width int) string {
	rows := make([]table.Row, 0, len(r.Pods)+1)
	rows = append(rows, table.Row{"pod", "priority", "bucket", "granted", "took", "outcome"})
	for _, p := range r.Pods {
		took := "-"
		if !p.Ended.IsZero() {
			took = durationText(p.Ended.Sub(p.Started))
		}
		rows = append(rows, table.Row{
			p.Namespace + "/" + p.Name, strconv.Itoa(int(p.Priority)), bucketName(p.Bucket), secondsText(p.GrantedSeconds), took, reportOutcome(p),
		})
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", renderTable(rows, podLayout(width)))
	writeSentences(&out, append([]string{shutdownSentence(r)}, r.Errors...), width)
	return out.String()
}

// reportOutcome says how the stop of a pod has ended according to a report.
func reportOutcome(p api.PodReport) string {
	switch {
	case p.Error != "":
		return "not stopped: " + p.Error
	case p.Ended.IsZero():
		return "is not known to have ended"
	case p.Unacknowledged:
		return outcomeText(lifecycle.Outcome(p.Outcome)) + ", which the API server has not acknowledged"
	}
	return outcomeText(lifecycle.Outcome(p.Outcome))
}

// shutdownSentence says which shutdown a report is about, when it began and how long it
// took.
func shutdownSentence(r api.Report) string {
	text := "A shutdown"
	if r.Shutdown != "" {
		text += " (" + r.Shutdown + ")"
	}
	if r.Origin != "" {
		text += ", announced by " + r.Origin
	}
	text += ", began at " + r.Started.Format(time.RFC3339)
	switch {
	case r.UnderWay:
		return text + " and is under way."
	case r.Ended.IsZero():
		return text + "; its end is not on record."
	case r.Cancelled:
		return text + " and was called off after " + durationText(r.Ended.Sub(r.Started)) + "."
	}
	return text + " and took " + durationText(r.Ended.Sub(r.Started)) + "."
}
