package view

import (
	"bytes"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/jedib0t/go-pretty/v6/table"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
)

// Plan returns a plan as a table and sentences. The lines are narrower than width; 0 means
// that they may have any width.
func Plan(p api.Plan, width int) string {
	told := map[string]int{}
	rows := []table.Row{{"pod", "priority", "bucket", "starts by", "wants", "granted"}}
	cutShort := 0
	for _, b := range p.Buckets {
		for _, pod := range b.Pods {
			priority, granted := strconv.Itoa(int(pod.Priority)), duration.Seconds(pod.GrantedSeconds)
			if pod.PrioritySource != "" {
				told[pod.PrioritySource]++
			}
			if pod.PrioritySource == podinfo.Guessed {
				priority += "?"
			}
			if pod.CutShort {
				granted += ", cut short"
				cutShort++
			}
			rows = append(rows, table.Row{
				pod.Namespace + "/" + pod.Name, priority, bucketName(b.Priority),
				duration.Seconds(b.StartSeconds), duration.Seconds(pod.WantedSeconds), granted,
			})
		}
	}
	var out bytes.Buffer
	fmt.Fprintf(&out, "%s\n\n", renderTable(rows, width))
	sentences := []string{fmt.Sprintf("The host is asked to wait for %s, and is let go after %s at the latest.",
		duration.Seconds(p.AskedSeconds), duration.Seconds(p.ReleaseSeconds))}
	if cutShort > 0 {
		verb := "get"
		if cutShort == 1 {
			verb = "gets"
		}
		sentences = append(sentences, fmt.Sprintf("%s %s less time than asked for.", plural(cutShort, "pod"), verb))
	}
	for _, source := range slices.Sorted(maps.Keys(told)) {
		mark := map[bool]string{true: " (?)"}[source == podinfo.Guessed]
		sentences = append(sentences, fmt.Sprintf("Priority by %s%s: %s.", source, mark, plural(told[source], "pod")))
	}
	for _, warning := range p.Warnings {
		sentences = append(sentences, "Warning: "+warning)
	}
	writeSentences(&out, sentences, width)
	return out.String()
}
