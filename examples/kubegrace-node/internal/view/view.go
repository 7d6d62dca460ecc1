package view

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	v1 "k8s.io/api/core/v1"

	"github.com/kubegrace/kubegrace/examples/internal/duration"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
	"github.com/kubegrace/kubegrace/lifecycle"
	"github.com/kubegrace/kubegrace/shutdown"
	"github.com/kubegrace/kubegrace/shutdown/plan"
)

// View prints lines about a shutdown. Make one with [New].
type View struct{ out io.Writer }

// New makes a view. It writes whole lines to out, from several goroutines at the same time.
func New(out io.Writer) *View { return &View{out} }

// Say prints one line.
func (v *View) Say(line string) {
	_, _ = fmt.Fprintln(v.out, line) // a closed terminal must not stop a drain
}

// Begin says that a shutdown begins, and how long it may take.
func (v *View) Begin(p plan.Plan) {
	pods, buckets := 0, 0
	for _, bucket := range p.Buckets {
		pods += len(bucket.Pods)
		if len(bucket.Pods) > 0 {
			buckets++
		}
	}
	if pods == 0 { // the node is empty, or its list has not come in time
		v.Say(fmt.Sprintf("Shutting down; no pods are known so far. It may take up to %s.", duration.Text(p.Release)))
		return
	}
	v.Say(fmt.Sprintf("Shutting down %s in %s, the lowest priority first; it may take up to %s.", output.CountText(pods, "pod"), output.CountText(buckets, "bucket"), duration.Text(p.Release)))
}

// Stopping says that a pod is told to stop, with a grace period in seconds.
func (v *View) Stopping(pod *v1.Pod, granted int64) {
	var hooks []string
	for _, c := range slices.Concat(pod.Spec.Containers, pod.Spec.InitContainers) {
		if hook := hookText(pod, c.Name); hook != "" {
			hooks = append(hooks, hook)
		}
	}
	line := fmt.Sprintf("%-24s has %s to stop", pod.Namespace+"/"+pod.Name, duration.Seconds(granted))
	if len(hooks) > 0 {
		line += ", its preStop hook first (" + strings.Join(hooks, "; ") + ")"
	}
	v.Say(line)
}

// Stopped says how the stop of a pod has ended, and what went wrong with single containers. A stop with an error
// has failed.
func (v *View) Stopped(pod *v1.Pod, took time.Duration, result lifecycle.Result, err error) {
	name := pod.Namespace + "/" + pod.Name
	if err != nil {
		v.Say(fmt.Sprintf("%-24s not stopped after %s: %s", name, duration.Text(took), strings.ReplaceAll(err.Error(), "\n", "; ")))
	} else {
		v.Say(fmt.Sprintf("%-24s gone after %s: %s", name, duration.Text(took), output.OutcomeText(result.Outcome())))
	}
	for _, c := range result.Containers {
		if problem := problemText(pod, c, result.GracePeriodSeconds); problem != "" {
			v.Say(fmt.Sprintf("%s: container %s %s", name, c.Name, problem))
		}
	}
}

// Finish prints the report of a shutdown.
func (v *View) Finish(report api.Report) {
	var text strings.Builder
	_ = output.WriteReport(output.Table, &text, report) // writing to it cannot fail
	v.Say("\n" + strings.TrimSuffix(text.String(), "\n"))
}

const (
	// planFile is the file in the state folder that has the plan of the last shutdown.
	planFile = statefile.Prefix + "plan.json"
	// The plan of a shutdown is made at most maxPlanLead before, and at most maxPlanDelay after its announcement. Any other
	// plan is that of another shutdown.
	maxPlanLead, maxPlanDelay = time.Second, 10 * time.Second
)

// keptPlan is the content of planFile.
type keptPlan struct {
	Made time.Time     `json:"made"` // when the shutdown was planned
	Node nodeplan.Node `json:"node"`
}

// KeepPlan writes the plan of a shutdown that begins now to the state folder dir, where [Page] finds it.
func KeepPlan(dir string, planned nodeplan.Node) error {
	return statefile.Store(dir, planFile, 0o644, keptPlan{Made: time.Now(), Node: planned})
}

// Page writes a report as an HTML page with a timeline of what has happened. If the state folder dir has the plan of
// the same shutdown, the timeline also shows what was planned. A shutdown that is under way is drawn up to the last
// event of its report.
func Page(out io.Writer, r shutdown.Report, dir string) error {
	kept, err := statefile.Load[keptPlan](dir, planFile)
	delay := kept.Made.Sub(r.Started)
	isOfThisShutdown := -maxPlanLead <= delay && delay <= maxPlanDelay
	if err != nil || !isOfThisShutdown {
		kept.Node = nodeplan.Node{}
	}
	return output.WriteReportPage(out, api.ReportOf(r), kept.Node)
}
