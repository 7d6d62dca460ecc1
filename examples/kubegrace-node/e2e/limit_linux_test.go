//go:build e2e

package e2e_test

import (
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

const (
	// siteFile stands for an administrator's file. agentsFile is the agent's drop-in. The name of siteFile sorts after
	// that of agentsFile, so its limit overrides the agent's.
	siteFile   = "/etc/systemd/logind.conf.d/zzz-site.conf"
	siteText   = "[Login]\nInhibitDelayMaxSec=15\n"
	agentsFile = "/etc/systemd/logind.conf.d/zz-kubegrace.conf"

	siteLimit = 15 * time.Second // less than the 38 s of testdata/kubelet.yaml
)

// requireLowLimit requires that /healthz, systemctl status, the metrics and the plan all say that the host waits for 15
// s only. /healthz and systemctl status must also name the file that sets the 15 s.
func requireLowLimit(t *testing.T, m *machine.Machine) {
	t.Helper()
	page := getPage(t, m, "/healthz")
	require.Contains(t, page, "503 Service Unavailable")
	require.Contains(t, page, "missing: time for the pods: ")
	require.Contains(t, page, "by 15s at most")
	require.Contains(t, page, siteFile)
	require.Eventually(t, func() bool { // the agent tells systemd a moment later
		text := m.Run(t, "systemctl", "show", "--property=StatusText", "--value", agentUnit)
		return strings.Contains(text, "for up to 15s") && strings.Contains(text, siteFile)
	}, 5*time.Second, 100*time.Millisecond)
	require.Contains(t, getPage(t, m, "/metrics"), `graceful_shutdown_delay_seconds{kind="granted"} 15`)
	require.LessOrEqual(t, planOf(t, m).ReleaseSeconds, siteLimit.Seconds())
}

// While the agent holds its lock, somebody removes its drop-in. The agent must write the drop-in again. Then an
// administrator's file, which the agent cannot override, lowers logind's limit to 15 s. The agent must notice and
// report the low limit. At the power off it must give each pod what its new plan says, in the order of buckets.
func TestLimitThatIsLoweredUnderTheAgent(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		const within = 10*time.Second + 5*time.Second // the manager looks every 10 s; 5 s for a busy machine
		m, server, containers := bootAgent(t, on, nil)
		require.Contains(t, getPage(t, m, "/healthz"), "200 OK")
		agentsLimit := limitOf(t, m)
		require.Greater(t, agentsLimit, 38*time.Second, "the schedule")

		// Somebody removes the agent's drop-in.
		m.Run(t, "rm", agentsFile)
		reloadLogind(t, m)
		require.Eventually(t, func() bool { return limitOf(t, m) == 5*time.Second }, within, 20*time.Millisecond, "logind's default, without the drop-in")
		require.Eventually(t, func() bool { return limitOf(t, m) == agentsLimit }, within, 20*time.Millisecond, "the agent has raised it again")
		require.True(t, delaysShutdowns(t, m))

		// An administrator lowers the limit.
		m.Run(t, "bash", "-c", "printf \"$0\" > "+siteFile, siteText)
		reloadLogind(t, m)
		require.Eventually(t, func() bool { return strings.Contains(getPage(t, m, "/healthz"), "503") }, within, 100*time.Millisecond)
		require.True(t, delaysShutdowns(t, m))
		requireLowLimit(t, m)
		awaitStatus(t, m, "limit lowered under kubegrace-node (d)")

		// The machine powers off.
		planned := planOf(t, m)
		asked, exits := powerOff(t, m, server, containers)
		checkOrder(t, asked, exits)
		checkPlan(t, planned, lastReport(t, m))
		require.Less(t, exits.lastExit().Sub(asked), siteLimit, "all containers end within the 15 s")
	})
}

// reloadLogind makes logind read its files again.
func reloadLogind(t *testing.T, m *machine.Machine) {
	t.Helper()
	m.Run(t, "systemctl", "kill", "--kill-who=main", "--signal=HUP", "systemd-logind.service")
}

// limitOf asks logind how long it delays a shutdown at most.
func limitOf(t *testing.T, m *machine.Machine) time.Duration {
	t.Helper()
	value := m.Run(t, "busctl", "get-property", "org.freedesktop.login1", "/org/freedesktop/login1", "org.freedesktop.login1.Manager", "InhibitDelayMaxUSec")
	limit, err := time.ParseDuration(strings.TrimPrefix(value, "t ") + "us")
	require.NoError(t, err)
	return limit
}
