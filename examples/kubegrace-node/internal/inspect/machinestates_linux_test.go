package inspect_test

import (
	"os"
	"path/filepath"
	"time"

	"github.com/stretchr/testify/require"
)

const grace30 = "shutdownGracePeriod: 30s\nshutdownGracePeriodCriticalPods: 10s\n"

// machineState is a state of a machine that an operator meets, the exit status for it, and how it is
// made.
type machineState struct {
	name   string
	status int
	make   func(m *fakeMachine)
}

func machineStates() []machineState {
	return []machineState{
		{"lock-held", 0, func(m *fakeMachine) {
			m.stock()
			m.lock("kubelet", kubeletWhy, "delay")
		}},
		{"pods-cut", 2, func(m *fakeMachine) {
			m.dropIn(kubeletFile, 20*time.Second)
			m.login1.SetLimit(20 * time.Second)
			m.kubelet("shutdownGracePeriod: 20s\nshutdownGracePeriodCriticalPods: 10s\n")
			m.lock("kubelet", kubeletWhy, "delay")
		}},
		{"none", 3, func(m *fakeMachine) {
			m.stock()
			m.lock("unattended-upgrades", "Stop ongoing upgrades", "delay")
		}},
		{"limit-too-low", 3, func(m *fakeMachine) {
			m.dropIn("/usr/lib/systemd/logind.conf.d/unattended-upgrades-logind-maxdelay.conf", 20*time.Second)
			m.dropIn(kubeletFile, 30*time.Second)
			m.login1.SetLimit(20 * time.Second)
			m.kubelet(grace30)
		}},
		{"limit-lowered", 2, func(m *fakeMachine) {
			m.dropIn("/run/systemd/logind.conf.d/zz-site.conf", 15*time.Second)
			m.dropIn(kubeletFile, 30*time.Second)
			m.login1.SetLimit(15 * time.Second)
			m.kubelet(grace30)
			m.lock("kubelet", kubeletWhy, "delay")
		}},
		{"leftover-drop-in", 3, func(m *fakeMachine) {
			m.write("/etc/systemd/logind.conf.d/zz-kubegrace.conf", "# Written by kubegrace: how long a node shutdown may be delayed.\n[Login]\nInhibitDelayMaxSec=33\n")
			m.dropIn(kubeletFile, time.Minute)
			m.login1.SetLimit(33 * time.Second)
			m.kubelet("shutdownGracePeriod: 60s\nshutdownGracePeriodCriticalPods: 20s\n")
		}},
		{"no-kubelet", 3, func(m *fakeMachine) { m.dropIn(kubeletFile, 30*time.Second); m.login1.SetLimit(30 * time.Second) }},
		{"no-grace-period", 3, func(m *fakeMachine) { m.kubelet("maxPods: 110\n") }},
		{"config-from-a-folder", 0, func(m *fakeMachine) {
			m.login1.SetLimit(40 * time.Second)
			m.write("/etc/systemd/logind.conf", "[Login]\nInhibitDelayMaxSec=40\n")
			m.write("/etc/kubernetes/kubelet.conf.d/20-site.conf", configHeader+"shutdownGracePeriod: 35s\n")
			m.kubelet(grace30, "--config-dir", "/etc/kubernetes/kubelet.conf.d")
			m.lock("kubelet", kubeletWhy, "delay")
		}},
		{"two-agents", 2, func(m *fakeMachine) {
			m.stock()
			m.lock("kubelet", kubeletWhy, "delay")
			m.lock("kubegrace-node", kubegraceWhy, "delay")
		}},
		{"started-while-pending", 3, func(m *fakeMachine) {
			m.stock()
			m.login1.SetPreparing(true)
		}},
		{"masked", 3, func(m *fakeMachine) {
			m.login1.Close()
			require.NoError(m.t, os.MkdirAll(filepath.Join(m.root, "etc/systemd/system"), 0o755)) //nolint:gosec // it is to be read
			require.NoError(m.t, os.Symlink("/dev/null", filepath.Join(m.root, "etc/systemd/system/systemd-logind.service")))
			m.kubelet(grace30)
		}},
		{"agent-of-kubegrace", 4, func(m *fakeMachine) {
			m.login1.SetLimit(30 * time.Second)
			m.lock("kubegrace-node", kubegraceWhy, "delay")
		}},
	}
}

// nodePods are the pods of the fake machine.
const nodePods = `kind: List
items:
- kind: Pod
  metadata: {name: web-0, namespace: shop}
  spec: {nodeName: worker-1, priority: 0, terminationGracePeriodSeconds: 10}
  status: {phase: Running}
- kind: Pod
  metadata: {name: orders-0, namespace: shop}
  spec: {nodeName: worker-1, priority: 0, terminationGracePeriodSeconds: 15}
  status: {phase: Running}
- kind: Pod
  metadata: {name: dns, namespace: kube-system}
  spec: {nodeName: worker-1, priority: 2000000000, terminationGracePeriodSeconds: 5}
  status: {phase: Running}
`
