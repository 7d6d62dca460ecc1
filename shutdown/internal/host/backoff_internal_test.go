package host

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// Each delay of the backoff is between half of its step and the whole step.
func TestDelaysOfTheBackoff(t *testing.T) {
	for range 100 {
		var b backoff
		for step := backoffFirst; ; step = min(2*step, backoffMost) {
			delay := b.delay()
			require.GreaterOrEqual(t, delay, step/2)
			require.LessOrEqual(t, delay, step)
			if step == backoffMost {
				break
			}
		}
		b.reset()
		require.LessOrEqual(t, b.delay(), backoffFirst)
	}
}
