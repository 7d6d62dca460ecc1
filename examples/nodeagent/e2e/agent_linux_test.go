//go:build e2e

package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/nodeagent/e2e/machine"
	"github.com/kubegrace/kubegrace/examples/nodeagent/internal/containerdtest"
)

const agentUnit = "nodeagent.service"

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
func bootAgent(t *testing.T, files map[string]string, set ...func(*machine.Machine)) (*machine.Machine, *containerdtest.Server, map[string]string) {
	t.Helper()
	server := containerdtest.Start(t, images()...)
	m := machine.New(t)
	for _, set := range set {
		set(m)
	}
	installAgent(t, m, server)
	for path, text := range files {
		m.WriteFile(t, path, 0o644, []byte(text))
	}
	m.Boot(t)
	m.AwaitActive(t, agentUnit)
	return m, server, runningContainers(t, server)
}

// installAgent puts the agent into a machine that is not yet booted, with its unit, its
// configuration and all manifests, and shows it the host's containerd.
func installAgent(t *testing.T, m *machine.Machine, server *containerdtest.Server) {
	t.Helper()
	m.WriteFile(t, "/usr/local/bin/nodeagent", 0o755, buildAgent(t))
	m.WriteFile(t, "/etc/nodeagent/kubelet.yaml", 0o644, read(t, "testdata/kubelet.yaml"))
	manifests, err := filepath.Glob("testdata/pods/*.yaml")
	require.NoError(t, err)
	for _, manifest := range manifests {
		m.WriteFile(t, filepath.Join("/etc/nodeagent/pods", filepath.Base(manifest)), 0o644, read(t, manifest))
	}
	m.Enable(t, agentUnit, read(t, "testdata/nodeagent.service"))
	m.Bind(server.Socket(), "/run/containerd/containerd.sock")
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
