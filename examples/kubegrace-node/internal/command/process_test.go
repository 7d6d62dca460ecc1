package command_test

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// program is the path of kubegrace-node, which TestMain builds.
var program string

// TestMain builds the program once for all tests.
func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "kubegrace-node")
	if err != nil {
		panic(err)
	}
	program = filepath.Join(dir, "kubegrace-node")
	build := exec.Command("go", "build", "-o", program, "github.com/kubegrace/kubegrace/examples/kubegrace-node")
	build.Stdout, build.Stderr = os.Stdout, os.Stderr
	if err := build.Run(); err != nil {
		panic(fmt.Errorf("failed to build the agent: %w", err))
	}
	m.Run()
	if err := os.RemoveAll(dir); err != nil {
		panic(err)
	}
}

// process is a run of kubegrace-node. Its output may be read when it has ended.
type process struct {
	t           *testing.T
	command     *exec.Cmd
	out, stderr bytes.Buffer
}

// prepare returns a process that is not started yet. If it still runs at the end of the test, it is killed.
func prepare(t *testing.T, args ...string) *process {
	t.Helper()
	p := &process{t: t}
	p.command = exec.CommandContext(t.Context(), program, args...)
	p.command.Stdout, p.command.Stderr = &p.out, &p.stderr
	t.Cleanup(func() {
		if p.command.Process != nil && p.command.ProcessState == nil {
			_ = p.command.Wait() // killed with the test's context
		}
	})
	return p
}

// start starts a process.
func start(t *testing.T, args ...string) *process {
	t.Helper()
	p := prepare(t, args...)
	require.NoError(t, p.command.Start())
	return p
}

// runTool runs a command that ends by itself, and returns its output and exit status.
func runTool(t *testing.T, args ...string) (out, stderr string, status int) {
	t.Helper()
	p := start(t, args...)
	status = p.waitExit()
	return p.out.String(), p.stderr.String(), status
}

// terminate sends SIGTERM, waits for the end of the process, and returns its exit status.
func (p *process) terminate() int {
	p.t.Helper()
	require.NoError(p.t, p.command.Process.Signal(syscall.SIGTERM))
	return p.waitExit()
}

// waitExit waits for the end of the process, and returns its exit status.
func (p *process) waitExit() int {
	p.t.Helper()
	err := p.command.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		return exit.ExitCode()
	}
	require.NoError(p.t, err)
	return 0
}

// writeFolder writes files into a new folder and returns its path.
func writeFolder(t *testing.T, files map[string]string) string {
	t.Helper()
	dir := t.TempDir()
	for name, text := range files {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(text), 0o600))
	}
	return dir
}

// configHeader is the beginning of a kubelet configuration.
const configHeader = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n"

// The demo of the README runs with its nine pods. It must end, stop them bucket after bucket, and show a
// preStop hook, and a container that ignores SIGTERM and is killed after 3 s.
func TestDemo(t *testing.T) {
	t.Parallel()
	began := time.Now()
	p := start(t, "demo", "--config=../../demo/kubelet.yaml", "--manifests=../../demo/pods", "--shutdown-after=10ms")
	require.Zero(t, p.waitExit())
	require.Less(t, time.Since(began), 90*time.Second, "ten times what it takes on an idle machine")
	require.Empty(t, p.stderr.String())

	out := p.out.String()
	require.NotContains(t, out, "Warning")
	require.Contains(t, out, "Shutting down 9 pods in 4 buckets, the lowest priority first")
	var namespaces []string // of the pods, in the order in which they end
	for _, line := range regexp.MustCompile(`(?m)^([a-z-]+)/\S+ +gone after`).FindAllStringSubmatch(out, -1) {
		namespaces = append(namespaces, line[1])
	}
	require.Len(t, namespaces, 9)
	require.Equal(t, []string{"batch", "shop", "data", "kube-system"}, slices.Compact(namespaces), "bucket after bucket: each has the pods of one namespace")

	for _, want := range []string{
		"shop/web                 has 6s to stop, its preStop hook first (sleep of 2s)",
		"batch/stubborn: container main did not end on SIGTERM and was killed 3", // 3 seconds later, and some tenths on a busy machine
		"killed, its time was up",
	} {
		require.Contains(t, out, want)
	}
}
