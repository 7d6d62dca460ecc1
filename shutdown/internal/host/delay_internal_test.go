package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each pause is between half of its step and the whole step.
func TestPausesBeforeTheHostIsAskedAgain(t *testing.T) {
	for range 100 {
		var d delay
		for step := firstStep; ; step = min(2*step, lastStep) {
			pause := d.nextPause()
			require.GreaterOrEqual(t, pause, step/2)
			require.LessOrEqual(t, pause, step)
			if step == lastStep {
				break
			}
		}
	}
}
