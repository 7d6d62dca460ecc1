package view

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
)

// Plan returns a plan as a table and sentences. The lines are narrower than width; 0 means
// that they may have any width.
func Plan(p api.Plan, width int) string {
	rows := []table.Row{{"pod", "priority", "bucket", "starts by", "wants", "granted"}}
	cutShort := 0
	for _, b := range p.Buckets {
		for _, pod := range b.Pods {
			granted := secondsText(pod.GrantedSeconds)
			if pod.CutShort {
				granted += ", cut short"
				cutShort++
			}
			rows = append(rows, table.Row{
				pod.Namespace + "/" + pod.Name, strconv.Itoa(int(pod.Priority)), bucketName(b.Priority),
				durationText(fromSeconds(b.StartSeconds)), secondsText(pod.WantedSeconds), granted,
			})
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", renderTable(rows, width))
	sentences := []string{fmt.Sprintf("The host is asked to wait for %s, and is let go after %s at the latest.",
		durationText(fromSeconds(p.AskedSeconds)), durationText(fromSeconds(p.ReleaseSeconds)))}
	if cutShort > 0 {
		verb := "get"
		if cutShort == 1 {
			verb = "gets"
		}
		sentences = append(sentences, fmt.Sprintf("%s %s less time than asked for.", plural(cutShort, "pod"), verb))
	}
	for _, warning := range p.Warnings {
		sentences = append(sentences, "Warning: "+warning)
	}
	writeSentences(&out, sentences, width)
	return out.String()
}

func fromSeconds(n float64) time.Duration { return time.Duration(n * float64(time.Second)) }
