package output

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
)

// noPodStopped is shown for a shutdown without pods.
const noPodStopped = "No pod was stopped."

// report shows what a shutdown has done: a row for each pod, a sentence about the shutdown, and what went
// wrong.
func (t *terminal) report(r api.Report) {
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
		t.paragraph(noPodStopped)
	} else {
		t.text.WriteString(renderTable(rows))
	}
	t.text.WriteByte('\n')
	t.paragraph(shutdownSentence(r))
	t.list("What went wrong:", problems)
}

// tookText says how long the stop of a pod took. It returns "" if the pod is not known to have ended.
func tookText(p shutdown.PodReport) string {
	if p.Ended.IsZero() {
		return ""
	}
	return duration.Text(p.Ended.Sub(p.Started))
}

// reportProblems says what went wrong with a pod that its outcome does not say.
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
