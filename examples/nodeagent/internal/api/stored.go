package api

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/internal/atomicfile"
)

// PlanFile is where in its state folder an agent keeps the plan of the last shutdown.
const PlanFile = "nodeagent_plan.json"

// planLag is how much later than its announcement a shutdown is planned at most.
const planLag = 10 * time.Second

// storedPlan is a plan and when it was made.
type storedPlan struct {
	Made time.Time `json:"made"`
	Plan Plan      `json:"plan"`
}

// StorePlan keeps the plan of a shutdown that begins now.
func StorePlan(dir string, p Plan) error {
	text, err := json.Marshal(storedPlan{Made: time.Now(), Plan: p})
	if err == nil {
		err = atomicfile.Write(filepath.Join(dir, PlanFile), text)
	}
	if err != nil {
		return fmt.Errorf("failed to store the plan of the shutdown: %w", err)
	}
	return nil
}

// StoredPlan gives the plan of the shutdown that was announced at a time; false: it is not
// to be had.
func StoredPlan(dir string, announced time.Time) (Plan, bool) {
	text, err := document.ReadFile(filepath.Join(dir, PlanFile))
	if err != nil {
		return Plan{}, false
	}
	var stored storedPlan
	if err := json.Unmarshal(text, &stored); err != nil {
		return Plan{}, false
	}
	late := stored.Made.Sub(announced)
	return stored.Plan, stored.Plan.APIVersion == Version && late > -time.Second && late < planLag
}
