package show

import (
	"encoding/json"
	"io"
	"time"

	"github.com/kubegrace/kubegrace/examples/zerodowntime/internal/rollout"
)

// Version is the version of a [Document]. It grows when a field changes its meaning or is
// removed, and not when a field is added.
const Version = 1

// Document is the JSON document with all results.
type Document struct {
	Version int `json:"version"`
	// Interrupted says that some of the chosen scenarios were not measured.
	Interrupted bool `json:"interrupted"`
	// DelaySeconds is the delay of the proxy.
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
