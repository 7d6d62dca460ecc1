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
	// hog takes the agent's port before the agent is started.
	hogSocket  = "[Unit]\nDefaultDependencies=no\nBefore=kubegrace-node.service\n[Socket]\nListenStream=127.0.0.1:10290\n"
	hogService = "[Service]\nUser=65534\nExecStart=/bin/sleep infinity\n"
	// fullFolder puts a full file system where the agent has its state.
	fullFolder = `[Unit]
DefaultDependencies=no
Before=kubegrace-node.service
[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/bin/sh -c 'mkdir -p /var/lib/kubegrace-node && mount -t tmpfs -o size=16k tmpfs /var/lib/kubegrace-node && cat /dev/zero > /var/lib/kubegrace-node/fill || true'
`
	waitsForBoth = "[Unit]\nWants=hog.socket full.service\nAfter=hog.socket full.service\n"
	shortConfig  = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\nshutdownGracePeriod: 3s\n"
)

// There is no containerd, the port is taken by another user, the state folder is full, the kubeconfig
// cannot be read, all at once: the machine is held from its boot on, what is missing is said, and the
// machine goes down in its time.
func TestMachineIsHeldWhateverIsMissing(t *testing.T) {
	eachPlatform(t, testMachineIsHeldWhateverIsMissing)
}

func testMachineIsHeldWhateverIsMissing(t *testing.T, on platform) {
	m := machine.New(t, on.debian)
	installAgent(t, m, nil, nil)
	for path, text := range map[string]string{
		configFile:                         shortConfig,
		flagsFile:                          "KUBEGRACE_NODE_FLAGS=\"--kubeconfig=/etc/kubegrace-node/missing.conf --node-name=n\"\n",
		"/etc/systemd/system/hog.socket":   hogSocket,
		"/etc/systemd/system/hog.service":  hogService,
		"/etc/systemd/system/full.service": fullFolder,
		"/etc/systemd/system/" + agentUnit + ".d/after.conf": waitsForBoth,
	} {
		m.WriteFile(t, path, 0o644, []byte(text))
	}
	m.Boot(t)
	m.AwaitActive(t, agentUnit)
	require.True(t, delaysShutdowns(t, m))
	// systemd says when it has started the program, and when that has said that the machine is held. On a quiet
	// machine that is less than a second; here others boot beside it.
	began := property(t, m, "ExecMainStartTimestampMonotonic")
	held := property(t, m, "ActiveEnterTimestampMonotonic")
	t.Logf("held after %v", held-began)
	require.Less(t, held-began, 5*time.Second)
	require.Eventually(t, func() bool {
		status := m.Run(t, "systemctl", "show", "--property=StatusText", "--value", agentUnit)
		return strings.Contains(status, "missing: API server") && strings.Contains(status, "missing: container runtime") &&
			strings.Contains(status, "missing: port of /healthz")
	}, 20*time.Second, 200*time.Millisecond)
	asked := time.Now()
	m.Run(t, "systemctl", "poweroff")
	m.AwaitPowerOff(t)
	require.Less(t, shutdownTime(t, m.Journal(t)).Sub(asked), 10*time.Second)
}

// property returns a time of the agent's unit.
func property(t *testing.T, m *machine.Machine, name string) time.Duration {
	t.Helper()
	d, err := time.ParseDuration(m.Run(t, "systemctl", "show", "--property="+name, "--value", agentUnit) + "us")
	require.NoError(t, err)
	return d
}
