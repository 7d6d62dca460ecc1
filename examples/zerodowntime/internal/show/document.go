package show

import (
	"encoding/json"
	"io"
	"time"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
)

// Version is that of the JSON document. It changes when a field changes its meaning or
// goes away.
const Version = 1

// Document is all that was measured, for programs.
type Document struct {
	Version int `json:"version"`
	// Interrupted says that scenarios are missing which were asked for.
	Interrupted  bool             `json:"interrupted"`
	DelaySeconds float64          `json:"delaySeconds"`
	BinSeconds   float64          `json:"binSeconds"`
	Scenarios    []rollout.Result `json:"scenarios"`
	Advice       []Advice         `json:"advice"`
}

// JSON writes a [Document].
func JSON(w io.Writer, results []rollout.Result, delay time.Duration, interrupted bool) error {
	if results == nil {
		results = []rollout.Result{}
	}
	encoder := json.NewEncoder(w)
	encoder.SetIndent("", "  ")
	return encoder.Encode(Document{
		Version: Version, Interrupted: interrupted, DelaySeconds: delay.Seconds(), BinSeconds: rollout.BinSeconds,
		Scenarios: results, Advice: Advise(results, delay),
	})
}
