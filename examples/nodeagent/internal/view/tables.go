package view

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"
	"github.com/jedib0t/go-pretty/v6/text"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/api"
	"github.com/kubegrace/kubegrace/lifecycle"
)

// Plan is a plan as a table, and what is to be said of it, in lines of a width; 0 means any.
func Plan(p api.Plan, width int) string {
	rows := []table.Row{{"pod", "priority", "bucket", "starts by", "wants", "granted"}}
	cut := 0
	for _, b := range p.Buckets {
		for _, pod := range b.Pods {
			granted := seconds(pod.GrantedSeconds)
			if pod.CutShort {
				granted += ", cut short"
				cut++
			}
			rows = append(rows, table.Row{
				pod.Namespace + "/" + pod.Name, strconv.Itoa(int(pod.Priority)), bucketName(b.Priority),
				span(inSeconds(b.StartSeconds)), seconds(pod.WantedSeconds), granted,
			})
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", render(rows, width, text.WrapSoft, text.WrapHard, []int{2, 3, 4, 5}, 2, 3, 4, 5))
	sentences := []string{fmt.Sprintf("The host is asked to wait for %s, and is let go after %s at the latest.",
		span(inSeconds(p.AskedSeconds)), span(inSeconds(p.ReleaseSeconds)))}
	if cut > 0 {
		sentences = append(sentences, verb(many(cut, "pod"), cut, "gets", "get")+" less time than asked for.")
	}
	for _, warning := range p.Warnings {
		sentences = append(sentences, "Warning: "+warning)
	}
	paragraphs(&out, sentences, width)
	return out.String()
}

// Report is a report as a table, and what is to be said of it, in lines of a width; 0
// means any.
func Report(r api.Report, width int) string {
	rows := make([]table.Row, 0, len(r.Pods)+1)
	rows = append(rows, table.Row{"pod", "priority", "bucket", "granted", "took", "outcome"})
	for _, p := range r.Pods {
		took := "-"
		if !p.Ended.IsZero() {
			took = span(p.Ended.Sub(p.Started))
		}
		rows = append(rows, table.Row{
			p.Namespace + "/" + p.Name, strconv.Itoa(int(p.Priority)), bucketName(p.Bucket), seconds(p.GrantedSeconds), took, ended(p),
		})
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", render(rows, width, text.WrapSoft, text.WrapHard, []int{2, 3, 4, 5}, 2, 3, 4, 5))
	paragraphs(&out, append([]string{when(r)}, r.Errors...), width)
	return out.String()
}

// ended says how a pod of a report has ended.
func ended(p api.PodReport) string {
	switch {
	case p.Error != "":
		return "not stopped: " + p.Error
	case p.Ended.IsZero():
		return "is not known to have ended"
	case p.Unacknowledged:
		return outcomeWords(lifecycle.Outcome(p.Outcome)) + ", which the API server has not acknowledged"
	}
	return outcomeWords(lifecycle.Outcome(p.Outcome))
}

// when says what shutdown it was.
func when(r api.Report) string {
	what := "A shutdown"
	if r.Shutdown != "" {
		what += " (" + r.Shutdown + ")"
	}
	if r.Origin != "" {
		what += ", announced by " + r.Origin
	}
	what += ", began at " + r.Started.Format(time.RFC3339)
	switch {
	case r.UnderWay:
		return what + " and is under way."
	case r.Ended.IsZero():
		return what + "; its end is not on record."
	case r.Cancelled:
		return what + " and was called off after " + span(r.Ended.Sub(r.Started)) + "."
	}
	return what + " and took " + span(r.Ended.Sub(r.Started)) + "."
}

// paragraphs writes sentences, each from the beginning of a line.
func paragraphs(out *bytes.Buffer, sentences []string, width int) {
	for _, sentence := range sentences {
		fmt.Fprintln(out, wrapped(sentence, width-1))
	}
}

func seconds(n int64) string { return strconv.FormatInt(n, 10) + " s" }

// verb agrees with its number.
func verb(subject string, n int, one, several string) string {
	if n == 1 {
		return subject + " " + one
	}
	return subject + " " + several
}
