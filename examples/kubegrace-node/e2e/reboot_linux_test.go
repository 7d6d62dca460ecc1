//go:build e2e

package e2e_test

import (
	"regexp"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

// A reboot drains the pods like a power off. After the next boot the machine is held again, and the
// metrics show the shutdown before.
func TestRebootDrainsThePods(t *testing.T) {
	eachPlatform(t, testRebootDrainsThePods)
}

func testRebootDrainsThePods(t *testing.T, on platform) {
	m, server, before := bootAgent(t, on, nil)

	asked := time.Now()
	m.Run(t, "systemctl", "reboot")
	m.AwaitReboot(t)
	exits := awaitExits(t, server, before)
	checkBuckets(t, asked, exits)
	checkExitCodes(t, exits)
	checkPowerOff(t, exits, m.Journal(t))

	m.Boot(t)
	m.AwaitActive(t, agentUnit)
	require.True(t, delaysShutdowns(t, m))
	require.Empty(t, runningContainers(t, server), "the agent starts none")
	start, end := gauge(t, m, "start"), gauge(t, m, "end")
	require.GreaterOrEqual(t, start, asked.Unix())
	require.LessOrEqual(t, start, exits.lastExit(nginx...).Unix())
	require.GreaterOrEqual(t, end, exits.lastExit().Unix())
}

// gauge reads kubelet_graceful_shutdown_WHICH_time_seconds, where which is start or end.
func gauge(t *testing.T, m *machine.Machine, which string) int64 {
	t.Helper()
	page := getPage(t, m, "/metrics")
	match := regexp.MustCompile(`(?m)^kubelet_graceful_shutdown_` + which + `_time_seconds (\S+)$`).FindStringSubmatch(page)
	require.Len(t, match, 2, page)
	seconds, err := strconv.ParseFloat(match[1], 64)
	require.NoError(t, err)
	return int64(seconds)
}
