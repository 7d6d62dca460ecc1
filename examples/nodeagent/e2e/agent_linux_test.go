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
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/containerdtest"
	"github.com/kubegrace/kubegrace/shutdown"
)

const (
	agentUnit  = "nodeagent.service"
	configFile = "/etc/nodeagent/kubelet.yaml"
	// reportFile is where the agent keeps the report of its last shutdown.
	reportFile = "/var/lib/nodeagent/graceful_node_shutdown_progress"
)

// platform is what the agent runs on.
type platform struct {
	debian     machine.Debian
	containerd containerdtest.Build
	tellsKind  bool // logind says what kind of shutdown it is
}

// eachPlatform runs a test with systemd 252 and the containerd of Debian 12 (1.6), and with
// systemd 257 and containerd 2.2, at the same time.
func eachPlatform(t *testing.T, test func(t *testing.T, on platform)) {
	t.Parallel()
	t.Run("systemd 252", func(t *testing.T) {
		t.Parallel()
		test(t, platform{debian: machine.Bookworm})
	})
	t.Run("systemd 257", func(t *testing.T) {
		t.Parallel()
		test(t, newest(t))
	})
}

// newest is the platform with systemd 257 and containerd 2.2.
func newest(t *testing.T) platform {
	t.Helper()
	return platform{debian: machine.Trixie, containerd: containerdtest.V22(t), tellsKind: true}
}

// images are what the manifests call for. nginx exits with 0 on the signal that the
// real image asks for, which is QUIT, and with 15 on TERM.
func images() []containerdtest.Image {
	const nginx = "trap 'exit 0' QUIT; trap 'exit 15' TERM; while :; do sleep 1000 & wait; done"
	return []containerdtest.Image{
		{Name: "busybox:1.36", Command: []string{"/bin/sh"}},
		{Name: "nginx:1.14.2", Command: []string{"/bin/sh", "-c", nginx}, StopSignal: "SIGQUIT"},
	}
}

// bootAgent boots a machine that runs the agent, with further files of a text each,
// and gives the containers of its pods, which run in a containerd of the host.
func bootAgent(t *testing.T, on platform, files map[string]string, set ...func(*machine.Machine)) (*machine.Machine, *containerdtest.Server, map[string]string) {
	t.Helper()
	server := on.containerd.Start(t, images()...)
	m := machine.New(t, on.debian)
	for _, set := range set {
		set(m)
	}
	installAgent(t, m, server, testdataPods(t))
	for path, text := range files {
		m.WriteFile(t, path, 0o644, []byte(text))
	}
	m.Boot(t)
	m.AwaitActive(t, agentUnit)
	return m, server, runningContainers(t, server)
}

// installAgent puts the agent into a machine that is not yet booted, with its unit, its
// configuration and manifests by name, and shows it the host's containerd.
func installAgent(t *testing.T, m *machine.Machine, server *containerdtest.Server, manifests map[string][]byte) {
	t.Helper()
	m.WriteFile(t, "/usr/local/bin/nodeagent", 0o755, buildAgent(t))
	m.WriteFile(t, configFile, 0o644, read(t, "testdata/kubelet.yaml"))
	for name, manifest := range manifests {
		m.WriteFile(t, filepath.Join("/etc/nodeagent/pods", name), 0o644, manifest)
	}
	m.Enable(t, agentUnit, read(t, "testdata/nodeagent.service"))
	m.Bind(server.Socket(), "/run/containerd/containerd.sock")
}

// testdataPods gives the manifests of testdata/pods, by name.
func testdataPods(t *testing.T) map[string][]byte {
	t.Helper()
	paths, err := filepath.Glob("testdata/pods/*.yaml")
	require.NoError(t, err)
	manifests := map[string][]byte{}
	for _, path := range paths {
		manifests[filepath.Base(path)] = read(t, path)
	}
	return manifests
}

// buildAgent builds the agent without the host's C library, which is another than
// the machine's.
func buildAgent(t *testing.T) []byte {
	t.Helper()
	program := filepath.Join(t.TempDir(), "nodeagent")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "github.com/kubegrace/kubegrace/examples/nodeagent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	out, err := build.CombinedOutput()
	require.NoErrorf(t, err, "failed to build the agent: %s", out)
	return read(t, program)
}

func read(t *testing.T, path string) []byte {
	t.Helper()
	content, err := os.ReadFile(path)
	require.NoError(t, err)
	return content
}

// lastReport is the report that the agent keeps of its last shutdown.
func lastReport(t *testing.T, m *machine.Machine) shutdown.Report {
	t.Helper()
	var kept struct {
		Report shutdown.Report `json:"report"`
	}
	require.NoError(t, json.Unmarshal(m.ReadFile(t, reportFile), &kept))
	return kept.Report
}

// get asks the agent in a machine for a page, with what the machine has for that: its
// shell.
func get(t *testing.T, m *machine.Machine, path string) string {
	t.Helper()
	const script = `exec 3<>/dev/tcp/127.0.0.1/10290 && printf 'GET %s HTTP/1.0\r\n\r\n' "$0" >&3 && cat <&3`
	_, page, found := strings.Cut(m.Run(t, "bash", "-c", script, path), "\r\n\r\n")
	require.True(t, found, "headers are followed by an empty line")
	return page
}
