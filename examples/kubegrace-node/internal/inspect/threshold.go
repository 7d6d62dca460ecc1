package inspect

import (
	"fmt"
	"strconv"
	"strings"

	"github.com/spf13/pflag"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// threshold is the value of --fail-on: any, never, no-lock, a number of pods, or a share of them.
type threshold struct{ text string }

var _ pflag.Value = (*threshold)(nil)

// String returns the value as it is written.
func (t *threshold) String() string { return t.text }

// Type names the value in the usage.
func (t *threshold) Type() string { return "when" }

// Set checks and sets the value.
func (t *threshold) Set(text string) error {
	if _, err := strconv.ParseUint(text, 10, 31); err != nil && text != "any" && text != "never" && text != "no-lock" {
		share, isShare := strings.CutSuffix(text, "%")
		if percent, err := strconv.ParseFloat(share, 64); err != nil || !isShare || percent < 0 || percent > 100 {
			return fmt.Errorf("%q is none of any, never, no-lock, a number as 10, or a share as 5%%", text)
		}
	}
	t.text = text
	return nil
}

// isMet reports whether a plan is to fail.
func (t *threshold) isMet(h nodeplan.Header, s nodeplan.Summary) bool {
	switch t.text {
	case "never":
		return false
	case "no-lock":
		return h.NoLock || h.Off
	case "any":
		return s.CutShort > 0
	}
	if share, isShare := strings.CutSuffix(t.text, "%"); isShare {
		percent, _ := strconv.ParseFloat(share, 64) // Set has checked it
		return float64(s.CutShort)*100 > percent*float64(s.PodCount)
	}
	number, _ := strconv.Atoi(t.text) // as above
	return s.CutShort > number
}
