//go:build e2e

package e2e_test

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// podCount is the number of pods in testdata.
const podCount = 6

// selectContainers returns the containers that are named.
func selectContainers(containers map[string]string, names ...string) map[string]string {
	selected := map[string]string{}
	for _, name := range names {
		selected[name] = containers[name]
	}
	return selected
}

// The agent is killed 20 times while it drains. No bucket is signalled before the one before has ended, and
// the machine goes down in its time. A hook that ends with its agent is begun again by the next.
func TestAgentThatIsKilledAgainAndAgainDrainsInOrder(t *testing.T) {
	eachPlatform(t, testAgentThatIsKilledAgainAndAgainDrainsInOrder)
}

func testAgentThatIsKilledAgainAndAgainDrainsInOrder(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, nil)
	between, said := row(t, "agent killed"), false
	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	for i := range 20 {
		pause := time.Duration(200+rand.IntN(1500)) * time.Millisecond
		if i%4 == 3 {
			pause += 2 * time.Second // an agent that never lives for a second ends no pod that ignores SIGTERM
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
	require.True(t, said, "status tells of an agent that is dead and holds the machine")
	m.AwaitPowerOff(t)
	exits := awaitExits(t, server, containers)
	checkOrder(t, asked, exits, false)
	checkPowerOff(t, exits, m.Journal(t))
	require.Less(t, exits.lastExit().Sub(asked), 42*time.Second, "the schedule of the first agent, and the floor of the containers")
}
