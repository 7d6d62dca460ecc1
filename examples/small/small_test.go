package small_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"

	"github.com/kubegrace/kubegrace/internal/need"
	"github.com/kubegrace/kubegrace/lifecycle/criruntime/containerdtest"
	"github.com/kubegrace/kubegrace/shutdown/logind/logindtest"
)

// build builds a program without symbols and returns its file.
func build(t *testing.T, program string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), program)
	cmd := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", file, "./"+program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	return file
}

// documentedOutput returns the output that README.md shows for a command.
func documentedOutput(t *testing.T, command string) string {
	t.Helper()
	content, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, after, found := strings.Cut(string(content), "    $ "+command+"\n")
	require.True(t, found, "README.md has no command %s", command)
	output, _, _ := strings.Cut(after, "\n\n")
	return strings.ReplaceAll(strings.TrimPrefix(output, "    "), "\n    ", "\n") + "\n"
}

// The table of README.md has, for each program, the number of packages that it needs from other modules, and
// its size.
func TestREADMEShowsTheCostOfEachProgram(t *testing.T) {
	need.Long(t, "the size of small programs")
	content, err := os.ReadFile("README.md")
	require.NoError(t, err)
	rows := regexp.MustCompile(`(?m)^\| \[(\w+)\]\(\w+/main.go\) \| .* \| (\d+) \| (\d+\.\d MB) \|$`).FindAllStringSubmatch(string(content), -1)
	folders, err := filepath.Glob("*/main.go")
	require.NoError(t, err)
	require.Len(t, rows, len(folders), "rows of the table")
	for _, row := range rows {
		info, err := os.Stat(build(t, row[1]))
		require.NoError(t, err)
		out, err := exec.CommandContext(t.Context(), "go", "list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}}{{end}}", "./"+row[1]).Output()
		require.NoError(t, err)
		imported := 0
		for path := range strings.FieldsSeq(string(out)) {
			if !strings.HasPrefix(path, "github.com/kubegrace/kubegrace/") {
				imported++
			}
		}
		require.Equal(t, row[2:], []string{strconv.Itoa(imported), fmt.Sprintf("%.1f MB", float64(info.Size())/1e6)}, row[1])
	}
}

// The program "grace", given testdata/pods.yaml, prints what README.md shows.
func TestGracePrintsTheDocumentedOutput(t *testing.T) {
	pods, err := os.Open("testdata/pods.yaml")
	require.NoError(t, err)
	defer func() { require.NoError(t, pods.Close()) }()
	cmd := exec.CommandContext(t.Context(), build(t, "grace"))
	cmd.Stdin = pods
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, documentedOutput(t, "../bin/grace < small/testdata/pods.yaml"), string(out))
}

// The program "limit", given the kubelet's configuration of the demo, prints what README.md shows.
func TestLimitPrintsTheDocumentedOutput(t *testing.T) {
	out, err := exec.CommandContext(t.Context(), build(t, "limit"), "../kubegrace-node/demo/kubelet.yaml").CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, documentedOutput(t, "../bin/limit kubegrace-node/demo/kubelet.yaml"), string(out))
}

// A scripted logind announces a shutdown. The program must release its inhibitor lock only after its command
// has made the file.
func TestInhibitorHoldsTheLockUntilTheCommandHasRun(t *testing.T) {
	broker := logindtest.StartBroker(t)
	broker.SetLimit(time.Minute) // so that no drop-in is needed
	done := filepath.Join(t.TempDir(), "done")
	cmd := exec.CommandContext(t.Context(), build(t, "inhibitor"), "touch", done)
	cmd.Env = append(os.Environ(), "DBUS_SYSTEM_BUS_ADDRESS="+broker.Address)
	cmd.Stderr = t.Output()
	require.NoError(t, cmd.Start())
	require.Eventually(t, func() bool { return len(broker.Held()) == 1 }, time.Minute, time.Millisecond)
	broker.Prepare(true)
	require.Eventually(t, func() bool { return len(broker.Held()) == 0 }, time.Minute, time.Millisecond)
	require.FileExists(t, done)
	require.NoError(t, cmd.Process.Signal(syscall.SIGTERM))
	require.NoError(t, cmd.Wait())
}

// A real containerd runs a container with the annotations and labels that a kubelet sets. The program must
// print what README.md shows for it.
func TestContainersPrintsTheDocumentedOutput(t *testing.T) {
	server := containerdtest.Start(t, containerdtest.Image{Name: "web:1", Command: []string{"sleep", "1000"}})
	sandbox := &runtimeapi.PodSandboxConfig{Metadata: &runtimeapi.PodSandboxMetadata{Name: "web", Uid: "web-uid", Namespace: "default"}, Linux: &runtimeapi.LinuxPodSandboxConfig{
		SecurityContext: &runtimeapi.LinuxSandboxSecurityContext{NamespaceOptions: &runtimeapi.NamespaceOption{Network: runtimeapi.NamespaceMode_NODE}},
	}}
	pod, err := server.Runtime().RunPodSandbox(t.Context(), &runtimeapi.RunPodSandboxRequest{Config: sandbox})
	require.NoError(t, err)
	container, err := server.Runtime().CreateContainer(t.Context(), &runtimeapi.CreateContainerRequest{PodSandboxId: pod.GetPodSandboxId(), SandboxConfig: sandbox, Config: &runtimeapi.ContainerConfig{
		Metadata: &runtimeapi.ContainerMetadata{Name: "nginx"},
		Image:    &runtimeapi.ImageSpec{Image: "web:1"},
		Annotations: map[string]string{
			"io.kubernetes.pod.terminationGracePeriod": "60",
			"io.kubernetes.container.preStopHandler":   `{"exec":{"command":["true"]}}`,
		},
		Labels: map[string]string{
			"io.kubernetes.pod.name": "web", "io.kubernetes.pod.namespace": "default",
			"io.kubernetes.pod.uid": "web-uid", "io.kubernetes.container.name": "nginx",
		},
	}})
	require.NoError(t, err)
	_, err = server.Runtime().StartContainer(t.Context(), &runtimeapi.StartContainerRequest{ContainerId: container.GetContainerId()})
	require.NoError(t, err)
	out, err := exec.CommandContext(t.Context(), build(t, "containers"), server.Endpoint()).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, documentedOutput(t, "../bin/containers unix:///run/containerd/containerd.sock"), string(out))
}
