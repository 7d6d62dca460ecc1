package view

import (
	"io"
	"time"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/api"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/output"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/statefile"
	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	// planFile is the file in the state folder that has the plan of the last shutdown.
	planFile = statefile.Prefix + "plan.json"
	// maxPlanDelay is how much later than the announcement of a shutdown its plan may have been made. A later
	// plan is that of another shutdown.
	maxPlanDelay = 10 * time.Second
)

// keptPlan is the content of planFile.
type keptPlan struct {
	Made time.Time     `json:"made"` // when the shutdown was planned
	Node nodeplan.Node `json:"node"`
}

// KeepPlan writes the plan of a shutdown that begins now to the state folder dir, where [Page] finds it.
func KeepPlan(dir string, planned nodeplan.Node) error {
	return statefile.Store(dir, planFile, keptPlan{Made: time.Now(), Node: planned})
}

// Page writes a report as an HTML page with a timeline of what has happened. If the state folder dir has the
// plan of the same shutdown, the timeline also shows what was planned: a plan that was made at its
// announcement or up to 10 s later. A shutdown that is under way is drawn up to the last event of its report.
func Page(out io.Writer, r shutdown.Report, dir string) error {
	kept, err := statefile.Load[keptPlan](dir, planFile)
	if delay := kept.Made.Sub(r.Started); err != nil || delay < -time.Second || delay > maxPlanDelay {
		kept.Node = nodeplan.Node{} // there is no plan, or it is that of another shutdown
	}
	return output.WriteReportPage(out, api.ReportOf(r), kept.Node)
}
