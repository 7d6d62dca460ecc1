package view

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// Report returns a report as a table and sentences. The lines are narrower than width; 0
// means that they may have any width.
func Report(r api.Report, width int) string {
	rows := make([]table.Row, 0, len(r.Shutdown.Pods)+1)
	rows = append(rows, table.Row{"pod", "priority", "bucket", "granted", "took", "outcome"})
	for _, p := range r.Shutdown.Pods {
		took := "-"
		if !p.Ended.IsZero() {
			took = durationText(p.Ended.Sub(p.Started))
		}
		rows = append(rows, table.Row{
			p.Namespace + "/" + p.Name, strconv.Itoa(int(p.Priority)), bucketName(p.Bucket), secondsText(p.GrantedSeconds), took, reportOutcome(p),
		})
	}
	var out bytes.Buffer
	if len(r.Shutdown.Pods) > 0 {
		fmt.Fprintf(&out, "%s\n\n", renderTable(rows, width))
	} else {
		out.WriteString("No pod was stopped.\n\n")
	}
	writeSentences(&out, append([]string{shutdownSentence(r)}, r.Shutdown.Errors...), width)
	return out.String()
}

// reportOutcome says how the stop of a pod has ended according to a report.
func reportOutcome(p shutdown.PodReport) string {
	switch {
	case p.Error != "":
		return "not stopped: " + p.Error
	case p.Ended.IsZero():
		return "is not known to have ended"
	case p.Unflushed:
		return outcomeText(lifecycle.Outcome(p.Outcome)) + ", which the API server has not acknowledged"
	}
	return outcomeText(lifecycle.Outcome(p.Outcome))
}

// shutdownSentence says which shutdown a report is about, when it began and how long it
// took.
func shutdownSentence(r api.Report) string {
	sentence := "A shutdown"
	if r.Shutdown.Kind != "" {
		sentence += " (" + string(r.Shutdown.Kind) + ")"
	}
	if r.Shutdown.Origin != "" {
		sentence += ", announced by " + r.Shutdown.Origin
	}
	sentence += ", began at " + r.Shutdown.Started.Format(time.RFC3339)
	switch {
	case r.UnderWay:
		return sentence + " and is under way."
	case r.Shutdown.Ended.IsZero():
		return sentence + "; its end is not on record."
	case r.Shutdown.Cancelled:
		return sentence + " and was called off after " + durationText(r.Shutdown.Ended.Sub(r.Shutdown.Started)) + "."
	}
	return sentence + " and took " + durationText(r.Shutdown.Ended.Sub(r.Shutdown.Started)) + "."
}
