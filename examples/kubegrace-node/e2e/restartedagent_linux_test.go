//go:build e2e

package e2e_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// The agent is killed at random intervals during a drain, until the machine is off, at most 20 times, and systemd
// starts it again each time. No bucket may begin before the previous one has ended, and the machine must go down in
// time. The least times of the buckets are not checked, because a hook that dies with its agent starts again.
func TestAgentThatIsKilledAgainAndAgainDrainsInOrder(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		m, server, containers := bootAgent(t, on, nil)
		between, said := row(t, "agent killed"), false
		asked, exits := powerOff(t, m, server, containers, func() {
			for i := range 20 {
				pause := time.Duration(200+rand.IntN(1500)) * time.Millisecond
				if i%4 == 3 {
					pause += 2 * time.Second // long enough to kill the pod that ignores SIGTERM; a shorter run may never do it
				}
				select {
				case <-m.Ended():
				case <-time.After(pause):
					_, _ = m.TryRun(t.Context(), "systemctl", "kill", "--kill-who=main", "--signal=KILL", agentUnit) // fails while it is started again
					if !said {
						said = between.MatchString(status(t, m, nil, ""))
					}
				}
			}
		})
		require.True(t, said, "at least once status said that the agent is dead and still delays the shutdown, as COMPARED.md says")
		checkOrder(t, asked, exits, false)
		require.Less(t, exits.lastExit().Sub(asked), 42*time.Second, "the schedule of 38 s, and at least 2 s for each container")
	})
}
