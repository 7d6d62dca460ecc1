package api

import (
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/kubegrace/kubegrace/examples/internal/document"
	"github.com/kubegrace/kubegrace/internal/atomicfile"
)

// PlanFile is the name of the file in the agent's state folder with the plan of the last
// shutdown.
const PlanFile = "nodeagent_plan.json"

// maxPlanDelay is the longest time from the announcement of a shutdown to its plan.
const maxPlanDelay = 10 * time.Second

// storedPlan is the content of PlanFile.
type storedPlan struct {
	Made time.Time `json:"made"` // when the shutdown was planned
	Plan Plan      `json:"plan"`
}

// StorePlan writes the plan of a shutdown that begins now to the state folder dir.
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

// StoredPlan reads the plan of the shutdown that was announced at a time. It returns
// false if there is no readable plan, or it belongs to another shutdown.
func StoredPlan(dir string, announced time.Time) (Plan, bool) {
	text, err := document.ReadFile(filepath.Join(dir, PlanFile))
	if err != nil {
		return Plan{}, false
	}
	var stored storedPlan
	if err := json.Unmarshal(text, &stored); err != nil {
		return Plan{}, false
	}
	delay := stored.Made.Sub(announced)
	return stored.Plan, stored.Plan.APIVersion == Version && delay > -time.Second && delay < maxPlanDelay
}
