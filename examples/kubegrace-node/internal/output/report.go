package output

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// noPodStopped is shown for a shutdown without pods.
const noPodStopped = "No pod was stopped."

// showReport shows what a shutdown has done: a row for each pod, a sentence about the shutdown, and what went
// wrong.
func (t *terminal) showReport(r api.Report) {
	rows := make([][]string, 1, 1+len(r.Shutdown.Pods))
	rows[0] = []string{"POD", "PRIORITY", "GRANTED", "TOOK", "OUTCOME"}
	problems := slices.Clone(r.Shutdown.Errors)
	for _, p := range r.Shutdown.Pods {
		name := p.Namespace + "/" + p.Name
		rows = append(rows, []string{name, strconv.Itoa(int(p.Priority)), duration.Seconds(p.GrantedSeconds), cmp.Or(tookText(p), "-"), reportOutcome(p)})
		for _, problem := range reportProblems(p) {
			problems = append(problems, name+": "+problem)
		}
	}
	if len(rows) == 1 {
		t.showParagraph(noPodStopped)
	} else {
		t.text.WriteString(renderTable(rows))
	}
	t.text.WriteByte('\n')
	t.showParagraph(shutdownSentence(r))
	t.showList("What went wrong:", problems)
}

// tookText says how long the stop of a pod took. It returns "" if the pod is not known to have ended.
func tookText(p shutdown.PodReport) string {
	if p.Ended.IsZero() {
		return ""
	}
	return duration.Text(p.Ended.Sub(p.Started))
}

// reportProblems says what went wrong with a pod, beyond its outcome.
func reportProblems(p shutdown.PodReport) (problems []string) {
	if p.Error != "" {
		problems = append(problems, p.Error)
	}
	if p.Unflushed {
		problems = append(problems, "the API server has not acknowledged its final status")
	}
	return problems
}

// reportOutcome says in words how the stop of a pod ended.
func reportOutcome(p shutdown.PodReport) string {
	switch {
	case p.Error != "":
		return "not stopped"
	case p.Ended.IsZero():
		return "not known to have ended"
	}
	return OutcomeText(lifecycle.Outcome(p.Outcome))
}

// OutcomeText says in words how the stop of a container or of a pod ended, for readers who do not know the
// names of outcomes.
func OutcomeText(o lifecycle.Outcome) string {
	switch o {
	case lifecycle.OutcomeGraceful:
		return "stopped in time"
	case lifecycle.OutcomeGraceExceeded:
		return "killed, its time was up"
	case lifecycle.OutcomeForced:
		return "killed, its stop had failed"
	case lifecycle.OutcomeRuntimeStuck:
		return "may still run"
	case lifecycle.OutcomeNotFound:
		return "had ended before"
	case lifecycle.OutcomeLeftRunning:
		return "left running"
	}
	return "not known"
}

// shutdownSentence says which shutdown a report is about, when it began, and how long it took.
func shutdownSentence(r api.Report) string {
	sentence := "A shutdown"
	if r.Shutdown.Kind != "" {
		sentence += " (" + string(r.Shutdown.Kind) + ")"
	}
	if r.Shutdown.Origin != "" {
		sentence += ", announced by " + r.Shutdown.Origin
	}
	sentence += ", began at " + r.Shutdown.Started.Format(time.RFC3339)
	took := duration.Text(r.Shutdown.Ended.Sub(r.Shutdown.Started))
	switch {
	case r.UnderWay:
		return sentence + " and is under way."
	case r.Shutdown.Ended.IsZero():
		return sentence + "; its end is not known."
	case r.Shutdown.Cancelled:
		return fmt.Sprintf("%s and was called off after %s.", sentence, took)
	}
	return fmt.Sprintf("%s and took %s.", sentence, took)
}

// WriteReportPage writes what a shutdown has done as an HTML page, together with the plan that the node had
// for it. With a zero planned the page has no plan.
func WriteReportPage(out io.Writer, r api.Report, planned nodeplan.Node) error {
	c := &chart{}
	if len(planned.Buckets) > 0 {
		planned.Name = "" // the page is about one node only
		c = chartOf(planned)
	}
	c.addReport(r)
	return page{Title: "Shutdown of this node", Text: []string{outcomeCounts(r.Shutdown)}, Nodes: []*chart{c}}.write(out)
}

// outcomeCounts returns a sentence that counts the pods of a shutdown by outcome, the most frequent outcome
// first.
func outcomeCounts(r shutdown.Report) string {
	counts := map[string]int{}
	for _, pod := range r.Pods {
		counts[reportOutcome(pod)]++
	}
	if len(counts) == 0 {
		return noPodStopped
	}
	outcomes := slices.SortedFunc(maps.Keys(counts), func(a, b string) int { return cmp.Or(cmp.Compare(counts[b], counts[a]), cmp.Compare(a, b)) })
	for i, outcome := range outcomes {
		outcomes[i] = fmt.Sprintf("%s (%d)", outcome, counts[outcome])
	}
	return CountText(len(r.Pods), "pod") + ": " + strings.Join(outcomes, "; ") + "."
}

// addReport adds the bars of a report to the rows of the planned pods. A pod that was not planned gets a new
// row at the end of its bucket. If a pod is not known to have ended, its bar reaches to the latest time in the
// report.
func (c *chart) addReport(r api.Report) {
	plannedRows := map[string]*row{} // by the name of the pod
	for _, b := range c.Buckets {
		for _, pod := range b.Pods {
			plannedRows[pod.Name] = pod
		}
	}
	latest := r.Shutdown.Ended
	for _, pod := range r.Shutdown.Pods {
		latest = slices.MaxFunc([]time.Time{latest, pod.Started, pod.Ended}, time.Time.Compare)
	}
	for _, pod := range r.Shutdown.Pods {
		podRow := plannedRows[pod.Namespace+"/"+pod.Name]
		if podRow == nil {
			podRow = &row{Name: pod.Namespace + "/" + pod.Name}
			b := c.bucket(pod.Bucket)
			b.Pods = append(b.Pods, podRow)
		}
		podRow.addPodReport(pod, r.Shutdown.Started, latest)
	}
	c.Release = max(r.Shutdown.Ended.Sub(r.Shutdown.Started), 0)
	c.Text = append(append(c.Text, shutdownSentence(r)), r.Shutdown.Errors...)
}

// bucket returns the rows of the bucket with this priority. If it was not planned, it is added.
func (c *chart) bucket(priority int32) *bucketRows {
	i := slices.IndexFunc(c.Buckets, func(b *bucketRows) bool { return b.priority == priority })
	if i >= 0 {
		return c.Buckets[i]
	}
	added := &bucketRows{priority: priority, Title: fmt.Sprintf("Bucket %d", priority)}
	c.Buckets = append(c.Buckets, added)
	return added
}

// addPodReport adds to a row what has happened to its pod. started is when the shutdown began, and latest the latest
// time in its report.
func (p *row) addPodReport(r shutdown.PodReport, started, latest time.Time) {
	actual := bar{Kind: "actual", Start: r.Started.Sub(started), End: r.Ended.Sub(started)}
	actual.Killed = r.Outcome == string(lifecycle.OutcomeGraceExceeded) || r.Outcome == string(lifecycle.OutcomeForced)
	if r.Ended.IsZero() {
		actual.End, actual.Open = latest.Sub(started), true
	}
	p.Bars = append(p.Bars, actual)
	facts := "got " + duration.Seconds(r.GrantedSeconds)
	if took := tookText(r); took != "" {
		facts += ", took " + took
	}
	if p.Facts != "" { // those of the plan
		facts = p.Facts + "; " + facts
	}
	p.Facts = facts
	problems := reportProblems(r)
	// What has happened replaces what was planned: a pod that was to be cut short may have stopped in time.
	p.Text, p.Bad = "", actual.Killed || actual.Open || len(problems) > 0
	if p.Bad {
		p.Text = strings.Join(append([]string{reportOutcome(r)}, problems...), "; ") + "."
	}
}
