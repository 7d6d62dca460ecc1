//go:build e2e

package e2e_test

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/e2e/machine"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	agentUnit = "nodeagent.service"

	// The unit names these files.
	configFile      = "/var/lib/kubelet/config.yaml"
	manifestsFolder = "/etc/kubegrace/pods"
	flagsFile       = "/etc/default/nodeagent"

	// consoleFile is a drop-in of the unit. A test that fails shows the console.
	consoleFile = "/etc/systemd/system/nodeagent.service.d/console.conf"
	consoleText = "[Service]\nStandardOutput=journal+console\n"

	// reportFile is the file in which the agent keeps the report of its last shutdown.
	reportFile = "/var/lib/nodeagent/graceful_node_shutdown_progress"
)

// platform is a machine and a containerd for the agent.
type platform struct {
	debian        machine.Debian
	containerd    containerdtest.Build
	announcesKind bool // logind announces the kind of a shutdown
}

// eachPlatform runs a test on systemd 252 with the containerd of Debian 12 (1.6), and on
// systemd 257 with containerd 2.2, both at the same time.
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

// newestPlatform returns systemd 257 with containerd 2.2.
func newestPlatform(t *testing.T) platform {
	t.Helper()
	return platform{debian: machine.Trixie, containerd: containerdtest.V22(t), announcesKind: true}
}

// images returns the images of the manifests. nginx has the stop signal of the real
// image: it exits with 0 on QUIT and with 15 on TERM.
func images() []containerdtest.Image {
	const nginx = "trap 'exit 0' QUIT; trap 'exit 15' TERM; while :; do sleep 1000 & wait; done"
	return []containerdtest.Image{
		{Name: "busybox:1.36", Command: []string{"/bin/sh"}},
		{Name: "nginx:1.14.2", Command: []string{"/bin/sh", "-c", nginx}, StopSignal: "SIGQUIT"},
	}
}

// bootAgent boots a machine that runs the agent with the pods of testdata. files are
// written to the machine first, by path; configure is called before the boot. The result
// has the IDs of the pods' containers by name.
func bootAgent(t *testing.T, on platform, files map[string]string, configure ...func(*machine.Machine)) (*machine.Machine, *containerdtest.Server, map[string]string) {
	t.Helper()
	server := on.containerd.Start(t, images()...)
	m := machine.New(t, on.debian)
	for _, f := range configure {
		f(m)
	}
	installAgent(t, m, server, testdataPods(t))
	for path, text := range files {
		m.WriteFile(t, path, 0o644, []byte(text))
	}
	m.Boot(t)
	m.AwaitActive(t, agentUnit)
	return m, server, runningContainers(t, server)
}

// installAgent writes the agent, the unit that README.md installs, its configuration and the
// manifests, which are by file name, to a machine that is not yet booted, and mounts the
// socket of the host's containerd.
func installAgent(t *testing.T, m *machine.Machine, server *containerdtest.Server, manifests map[string][]byte) {
	t.Helper()
	m.WriteFile(t, "/usr/local/bin/nodeagent", 0o755, buildAgent(t))
	m.WriteFile(t, configFile, 0o644, readFile(t, "testdata/kubelet.yaml"))
	for name, manifest := range manifests {
		m.WriteFile(t, filepath.Join(manifestsFolder, name), 0o644, manifest)
	}
	m.WriteFile(t, flagsFile, 0o644, []byte("NODEAGENT_FLAGS=-v=2\n"))
	m.WriteFile(t, consoleFile, 0o644, []byte(consoleText))
	m.Enable(t, agentUnit, readFile(t, "../nodeagent.service"))
	m.Bind(server.Socket(), "/run/containerd/containerd.sock")
}

// testdataPods returns the manifests of testdata/pods by file name.
func testdataPods(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/pods/*.yaml")
	require.NoError(t, err)
	manifests := map[string][]byte{}
	for _, path := range paths {
		manifests[filepath.Base(path)] = readFile(t, path)
	}
	return manifests
}

// buildAgent builds the agent without cgo, because the machine has another C library than
// the host.
func buildAgent(t *testing.T) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), "nodeagent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/kubegrace/kubegrace/examples/nodeagent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoErrorf(t, err, "failed to build the agent: %s", out)
	return readFile(t, program)
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

// lastReport reads the report of the agent's last shutdown.
func lastReport(t *testing.T, m *machine.Machine) shutdown.Report {
	t.Helper()
	var stored struct {
		Report shutdown.Report `json:"report"`
	}
	require.NoError(t, json.Unmarshal(m.ReadFile(t, reportFile), &stored))
	return stored.Report
}

// getPage requests a page of the agent in a machine. The machine has no HTTP client, only
// bash.
func getPage(t *testing.T, m *machine.Machine, path string) string {
	t.Helper()
	const script = `exec 3<>/dev/tcp/127.0.0.1/10290 && printf 'GET %s HTTP/1.0\r\n\r\n' "$0" >&3 && cat <&3`
	_, page, found := strings.Cut(m.Run(t, "bash", "-c", script, path), "\r\n\r\n")
	require.True(t, found, "the answer has headers and a body")
	return page
}
