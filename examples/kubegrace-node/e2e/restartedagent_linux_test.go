//go:build e2e

package e2e_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// podCount is the number of pods in testdata/pods.
const podCount = 6

// selectContainers returns the part of containers that has these names.
func selectContainers(containers map[string]string, names ...string) map[string]string {
	selected := map[string]string{}
	for _, name := range names {
		selected[name] = containers[name]
	}
	return selected
}

// The agent is killed about 20 times during a drain, and systemd starts it again each time. No bucket may
// begin before the previous one has ended, and the machine must go down in time. The least times of the
// buckets are not checked, because a hook that dies with its agent starts again.
func TestAgentThatIsKilledAgainAndAgainDrainsInOrder(t *testing.T) {
	eachPlatform(t, testAgentThatIsKilledAgainAndAgainDrainsInOrder)
}

// testAgentThatIsKilledAgainAndAgainDrainsInOrder kills the agent at random intervals from the power off on,
// until the machine is off, at most 20 times. It then checks the order of the exits and the time of the last
// one.
func testAgentThatIsKilledAgainAndAgainDrainsInOrder(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, nil)
	between, said := row(t, "agent killed"), false
	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
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
	require.True(t, said, "at least once status said that the agent is dead and still delays the shutdown, as COMPARED.md says")
	m.AwaitPowerOff(t)
	exits := awaitExits(t, server, containers)
	checkOrder(t, asked, exits, false)
	checkPowerOff(t, exits, m.Journal(t))
	require.Less(t, exits.lastExit().Sub(asked), 42*time.Second, "the schedule of 38 s, and at least 2 s for each container")
}
