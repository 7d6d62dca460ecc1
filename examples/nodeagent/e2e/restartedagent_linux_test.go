//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testdata has 6 pods, with a sandbox each, and one plain init container.
const podCount, initContainerCount = 6, 1

// The agent is killed when the first bucket has ended. systemd keeps a copy of its delay
// lock, so logind goes on waiting. The restarted agent adopts the lock and drains the
// other buckets.
func TestRestartedAgentContinuesTheDrain(t *testing.T) {
	eachPlatform(t, testRestartedAgentContinuesTheDrain)
}

func testRestartedAgentContinuesTheDrain(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, nil)

	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	awaitExits(t, server, selectContainers(containers, nginx...))
	m.Run(t, "systemctl", "kill", "--kill-who=main", "--signal=KILL", agentUnit)
	m.AwaitPowerOff(t)

	exits := awaitExits(t, server, containers)
	checkBuckets(t, asked, exits)
	checkExitCodes(t, exits)
	checkPowerOff(t, exits, m.Journal(t))
	require.Less(t, exits.lastExit().Sub(asked), 38*time.Second, "the schedule of the first agent still holds")
	require.Empty(t, runningContainers(t, server), "the restarted agent has started no pod")
	require.Len(t, server.Exits(), len(containers)+podCount+initContainerCount, "nor one that has exited again")
}

// selectContainers returns the containers that are named.
func selectContainers(containers map[string]string, names ...string) map[string]string {
	selected := map[string]string{}
	for _, name := range names {
		selected[name] = containers[name]
	}
	return selected
}
