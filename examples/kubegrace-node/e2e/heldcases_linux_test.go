//go:build e2e

package e2e_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
)

const (
	noServer = "apiVersion: v1\nkind: Config\nclusters: [{name: c, cluster: {server: 'https://127.0.0.1:9'}}]\n" +
		"contexts: [{name: c, context: {cluster: c}}]\ncurrent-context: c\n"
	withKubeconfig = "KUBEGRACE_NODE_FLAGS=\"--node-name=n --kubeconfig=/etc/kubegrace-node/kubeconfig\"\n"
)

// Each thing that can be missing, alone: the machine is held within a second of the start of the unit. The best
// of three starts counts, because other machines boot at the same time.
func TestMachineIsHeldWithinASecond(t *testing.T) { eachPlatform(t, testMachineIsHeldWithinASecond) }

func testMachineIsHeldWithinASecond(t *testing.T, on platform) {
	m := machine.New(t, on.debian)
	installAgent(t, m, nil, nil)
	for path, text := range map[string]string{
		configFile: shortConfig, "/etc/systemd/system/hog.socket": hogSocket, "/etc/systemd/system/hog.service": hogService,
		"/etc/systemd/system/full.service": fullFolder, "/etc/kubegrace-node/unreachable": noServer, "/etc/kubegrace-node/unreadable": "{",
	} {
		m.WriteFile(t, path, 0o644, []byte(text))
	}
	m.Boot(t)
	m.AwaitActive(t, agentUnit)
	for _, test := range []struct{ name, unit, kubeconfig string }{
		{name: "no containerd"},
		{name: "its port taken", unit: "hog.socket"},
		{name: "a state folder that is full", unit: "full.service"},
		{name: "no API server", kubeconfig: "unreachable"},
		{name: "an unreadable kubeconfig", kubeconfig: "unreadable"},
	} {
		m.Run(t, "systemctl", "stop", agentUnit)
		if test.unit != "" {
			m.Run(t, "systemctl", "start", test.unit)
		}
		if test.kubeconfig != "" {
			m.Run(t, "bash", "-c", "cp /etc/kubegrace-node/$0 /etc/kubegrace-node/kubeconfig; printf \"$1\" > "+flagsFile, test.kubeconfig, withKubeconfig)
		}
		best := time.Hour
		for range 3 {
			m.Run(t, "systemctl", "restart", agentUnit)
			require.True(t, delaysShutdowns(t, m), test.name)
			took := property(t, m, "ActiveEnterTimestampMonotonic") - property(t, m, "ExecMainStartTimestampMonotonic")
			t.Logf("%s: held after %v", test.name, took)
			best = min(best, took)
		}
		require.Less(t, best, time.Second, test.name)
		if test.unit != "" {
			m.Run(t, "systemctl", "stop", test.unit)
		}
	}
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
}
