package shutdown

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

func TestDelayCappedErrorNamesWhatIsKnown(t *testing.T) {
	const text = "the host delays its shutdown by 5s at most, 30s was asked for"
	for want, e := range map[string]DelayCappedError{
		text: {},
		text + "; InhibitDelayMaxSec is set by /etc/a.conf": {Setting: "InhibitDelayMaxSec", Winner: "/etc/a.conf"},
		text + "; raise InhibitDelayMaxSec":                 {Setting: "InhibitDelayMaxSec"},
		text + "; the limit is set by /etc/a.conf":          {Winner: "/etc/a.conf"},
	} {
		e.Requested, e.Granted = 30*time.Second, 5*time.Second
		require.EqualError(t, &e, want)
	}
}

// Each delay is between half of its step and all of it.
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
