package lifecycle

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// A record gives back each label, and has the outcomes in the order of Outcomes, as the worst of
// a pod is the last of them. One that it does not know becomes "".
func TestARecordKeepsEachLabel(t *testing.T) {
	last := labelIndex("")
	for _, o := range Outcomes() {
		place := labelIndex(string(o))
		require.Greater(t, place, last, o)
		require.Equal(t, string(o), labelAt(place))
		last = place
	}
	for _, hook := range []HookOutcome{"", HookCompleted, HookFailed, HookCut, HookAbandoned, HookSkipped} {
		for _, cause := range []Cause{"", GraceSpent, Shortened, ContainerExited, AgentStopping} {
			want := ContainerResult{Name: "app", ID: "1", Phase: PhaseEnded, Outcome: Forced, Hook: HookResult{Outcome: hook, Cause: cause}}
			packed := recordOf(&want, false, time.Time{})
			require.Equal(t, want, packed.unpack())
		}
	}
	packed := recordOf(&ContainerResult{Outcome: "Gone"}, false, time.Time{})
	require.Empty(t, packed.unpack().Outcome)
}

// When a container was started is not known in a record if it was not known before.
func TestARecordWithoutAStart(t *testing.T) {
	r := recordOf(&ContainerResult{}, false, time.Time{})
	require.Zero(t, r.startTime())
}
