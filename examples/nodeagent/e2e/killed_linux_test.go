//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// testdata has 6 pods, each with a sandbox that ends too, and one init container.
const sandboxes, inits = 6, 1

// TestAKilledAgentIsFollowedByOneThatGoesOn kills the agent when the first bucket is
// done. logind would go on at once; but systemd keeps a copy of the lock, and the
// agent that follows adopts it and drains what is left.
func TestAKilledAgentIsFollowedByOneThatGoesOn(t *testing.T) {
	eachPlatform(t, testAKilledAgentIsFollowedByOneThatGoesOn)
}

func testAKilledAgentIsFollowedByOneThatGoesOn(t *testing.T, on platform) {
	m, server, containers := bootAgent(t, on, nil)

	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	recordsOf(t, server, only(containers, nginx...))
	m.Run(t, "systemctl", "kill", "--kill-who=main", "--signal=KILL", agentUnit)
	m.AwaitPowerOff(t)

	exits := recordsOf(t, server, containers)
	checkBuckets(t, asked, exits)
	checkExitCodes(t, exits)
	checkPowerOff(t, exits, m.Journal(t))
	require.Less(t, exits.last().Sub(asked), 38*time.Second, "the end is that of the first agent's schedule")
	require.Empty(t, runningContainers(t, server), "the second agent has started no pod")
	require.Len(t, server.Exits(), len(containers)+sandboxes+inits, "nor one that has ended since")
}

// only gives those of some containers that are named.
func only(containers map[string]string, names ...string) map[string]string {
	named := map[string]string{}
	for _, name := range names {
		named[name] = containers[name]
	}
	return named
}
