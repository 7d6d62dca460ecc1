package api

import (
	"fmt"
	"time"

	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/statefile"
)

// planFile has the plan of the last shutdown.
const planFile = statefile.Prefix + "plan.json"

// maxPlanDelay is the longest time from the announcement of a shutdown to its plan.
const maxPlanDelay = 10 * time.Second

// storedPlan is the content of planFile.
type storedPlan struct {
	Made time.Time `json:"made"` // when the shutdown was planned
	Plan Plan      `json:"plan"`
}

// StorePlan writes the plan of a shutdown that begins now to the state folder dir.
func StorePlan(dir string, p Plan) error {
	if err := statefile.Store(dir, planFile, storedPlan{Made: time.Now(), Plan: p}); err != nil {
		return fmt.Errorf("failed to store the plan of the shutdown: %w", err)
	}
	return nil
}

// StoredPlan reads the plan of the shutdown that was announced at a time. It returns
// false if there is no readable plan, or it belongs to another shutdown.
func StoredPlan(dir string, announced time.Time) (Plan, bool) {
	stored, err := statefile.Load[storedPlan](dir, planFile)
	delay := stored.Made.Sub(announced)
	return stored.Plan, err == nil && stored.Plan.APIVersion == Version && delay > -time.Second && delay < maxPlanDelay
}
