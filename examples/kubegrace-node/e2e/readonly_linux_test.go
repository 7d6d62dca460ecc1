//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

// The disk is read-only, /etc and /usr included, as on a host such as Bottlerocket. Only the folders of logind
// and journald can be written. The agent has no state folder. It must raise logind's limit by a file under
// /run instead of /etc, and drain the pods before the power off.
func TestAHostWhoseDiskIsReadOnly(t *testing.T) {
	eachPlatform(t, func(t *testing.T, on platform) {
		m, server, containers := bootAgent(t, on, map[string]string{
			flagsFile: "KUBEGRACE_NODE_FLAGS=--state-dir=\n",
			"/etc/systemd/system/" + agentUnit + ".d/state.conf": "[Service]\nStateDirectory=\n",
		}, func(m *machine.Machine) { m.ReadOnly("/var/lib/systemd", "/var/log/journal") })
		m.Run(t, "sh", "-c", "! touch /etc/x && ! touch /usr/x && ! touch /var/lib/x && test -e /run/systemd/logind.conf.d/zz-kubegrace.conf")
		require.True(t, delaysShutdowns(t, m))
		require.Greater(t, limitOf(t, m), 30*time.Second)
		powerOff(t, m, server, containers)
	})
}
