//go:build e2e

package e2e_test

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
	v1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"

	"github.com/kubegrace/kubegrace/examples/internal/machine"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/podinfo"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	agentUnit = "kubegrace-node.service"

	// kubegrace-node.service reads these files: the agent's --config and its other flags.
	configFile = "/etc/kubegrace-node/config.yaml"
	flagsFile  = "/etc/default/kubegrace-node"

	// consoleFile is a drop-in of the unit that copies the agent's log to the console, which a failed test
	// prints.
	consoleFile = "/etc/systemd/system/kubegrace-node.service.d/console.conf"
	consoleText = "[Service]\nStandardOutput=journal+console\n"

	// stateLog is the file in which the agent stores the report of its last shutdown.
	stateLog = "/var/lib/kubegrace-node/graceful_node_shutdown_log"
)

// platform is the operating system and the containerd with which the agent runs.
type platform struct {
	debian        machine.Debian
	containerd    containerdtest.Build // the zero value is the host's own containerd
	announcesKind bool                 // logind announces whether a shutdown is a poweroff, a reboot or another kind
}

// eachPlatform runs a test on systemd 252 with the containerd of Debian 12 (1.6), and on
// systemd 257 with containerd 2.3, both at the same time.
func eachPlatform(t *testing.T, test func(t *testing.T, on platform)) {
	t.Parallel()
	t.Run("systemd 252", func(t *testing.T) {
		t.Parallel()
		test(t, platform{debian: machine.Bookworm})
	})
	t.Run("systemd 257", func(t *testing.T) {
		t.Parallel()
		test(t, newestPlatform(t))
	})
}

// newestPlatform returns systemd 257 with containerd 2.3.
func newestPlatform(t *testing.T) platform {
	t.Helper()
	return platform{debian: machine.Trixie, containerd: containerdtest.V23(t), announcesKind: true}
}

// images returns stand-ins for the images that the manifests name. nginx has the stop signal of the real
// image, QUIT. It exits with 0 on QUIT and with 15 on TERM, so that its exit code shows which signal it got.
func images() []containerdtest.Image {
	const nginx = "trap 'exit 0' QUIT; trap 'exit 15' TERM; while :; do sleep 1000 & wait; done"
	return []containerdtest.Image{
		{Name: "busybox:1.36", Command: []string{"/bin/sh"}},
		{Name: "nginx:1.14.2", Command: []string{"/bin/sh", "-c", nginx}, StopSignal: "SIGQUIT"},
	}
}

// bootAgent starts the pods of testdata in a new containerd, as a kubelet does. It then boots a machine that runs the
// agent, and returns when the agent is active. Before the boot it calls configure, and writes files: texts by their
// path in the machine. containers has the IDs of the pods' containers, by pod/container.
func bootAgent(t *testing.T, on platform, files map[string]string, configure ...func(*machine.Machine)) (m *machine.Machine, server *containerdtest.Server, containers map[string]string) {
	t.Helper()
	server, pods := on.containerd.Start(t, images()...), testdataPods(t)
	m = machine.New(t, on.debian)
	for _, f := range configure {
		f(m)
	}
	installAgent(t, m, server, pods)
	for path, text := range files {
		m.WriteFile(t, path, 0o644, []byte(text))
	}
	containers = runPods(t, server, pods)
	m.Boot(t)
	m.AwaitActive(t, agentUnit)
	return m, server, containers
}

// installAgent writes the agent, its unit and its configuration to a machine that is not yet booted. It mounts
// the folder with the socket of server into the machine, because each start of containerd makes a new socket. It
// also fills the state folder as a previous agent would have: the agent then knows the priorities and sidecars of
// pods, without an API server or a kubelet.
func installAgent(t *testing.T, m *machine.Machine, server *containerdtest.Server, pods []v1.Pod) {
	t.Helper()
	m.WriteFile(t, "/usr/local/bin/kubegrace-node", 0o755, buildAgent(t))
	m.WriteFile(t, configFile, 0o644, readFile(t, "testdata/kubelet.yaml"))
	m.WriteFile(t, flagsFile, 0o644, []byte("KUBEGRACE_NODE_FLAGS=-v=2\n"))
	m.WriteFile(t, consoleFile, 0o644, []byte(consoleText))
	m.Enable(t, agentUnit, readFile(t, "../kubegrace-node.service"))
	known, err := json.Marshal(v1.PodList{Items: pods})
	require.NoError(t, err)
	m.WriteFile(t, "/var/lib/kubegrace-node/"+podinfo.File, 0o600, known)
	m.Bind(filepath.Dir(server.Socket()), "/run/containerd")
}

// testdataPods returns the pods of testdata/pods.
func testdataPods(t *testing.T) []v1.Pod {
	t.Helper()
	paths, err := filepath.Glob("testdata/pods/*.yaml")
	require.NoError(t, err)
	var pods []v1.Pod
	for _, path := range paths {
		for text := range strings.SplitSeq(string(readFile(t, path)), "\n---\n") {
			var pod v1.Pod
			require.NoError(t, yaml.UnmarshalStrict([]byte(text), &pod))
			pod.UID, pod.Namespace = types.UID(pod.Name), cmp.Or(pod.Namespace, v1.NamespaceDefault)
			pods = append(pods, pod)
		}
	}
	return pods
}

// runPods starts pods, and returns the IDs of their running containers, by pod/container.
func runPods(t *testing.T, server *containerdtest.Server, pods []v1.Pod) map[string]string {
	t.Helper()
	for i := range pods {
		runPod(t, server.Runtime(), &pods[i])
	}
	return runningContainers(t, server)
}

// buildAgent returns the program kubegrace-node.
func buildAgent(t *testing.T) []byte {
	t.Helper()
	program, err := builtAgent()
	require.NoError(t, err, "failed to build the agent")
	return program
}

// builtAgent builds the program once for all machines. It does not use cgo, because the machines have another C library
// than the host. The flags are those of make dist, so that both builds share the build cache.
var builtAgent = sync.OnceValues(func() ([]byte, error) {
	folder, err := os.MkdirTemp("", "kubegrace-node")
	if err != nil {
		return nil, err
	}
	program := filepath.Join(folder, "program")
	build := exec.Command("go", "build", "-trimpath", "-o", program, "github.com/kubegrace/kubegrace/examples/kubegrace-node")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := build.CombinedOutput(); err != nil {
		return nil, fmt.Errorf("%w: %s", err, out)
	}
	content, err := os.ReadFile(program)
	return content, errors.Join(err, os.RemoveAll(folder))
})

// readFile returns the content of a file on the host.
func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

// lastReport reads the report of the agent's last shutdown.
func lastReport(t *testing.T, m *machine.Machine) shutdown.Report {
	t.Helper()
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(dir, filepath.Base(stateLog)), m.ReadFile(t, stateLog), 0o600))
	report, found, err := shutdown.StoredReport(dir)
	require.NoError(t, err)
	require.True(t, found)
	return report
}

// planOf returns the plan that kubegrace-node plan prints in a machine. The command's exit status is 2 if the plan cuts
// a pod short, which is no failure here.
func planOf(t *testing.T, m *machine.Machine) nodeplan.Node {
	t.Helper()
	var planned nodeplan.Document
	require.NoError(t, json.Unmarshal([]byte(m.Run(t, "sh", "-c", "/usr/local/bin/kubegrace-node plan -o json || test $? = 2")), &planned))
	return planned.Nodes[0]
}

// getPage requests a page from the agent's port in a machine, and returns it with its status line and headers. A shell
// script sends the HTTP request, because the machine has bash but no HTTP client.
func getPage(t *testing.T, m *machine.Machine, path string) string {
	t.Helper()
	const script = `exec 3<>/dev/tcp/127.0.0.1/10290 && printf 'GET %s HTTP/1.0\r\n\r\n' "$0" >&3 && cat <&3`
	return m.Run(t, "bash", "-c", script, path)
}
