package deptest_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// largestBinary is the largest size in bytes that the agent of testdata/agent may have,
// without symbols and debug information, which take 6.5 MB more. With Go 1.26 it has 20.2 MB with
// Kubernetes v0.33 and 15.7 MB with v0.34, whose types the linker can remove more of. With v0.34 a
// program without kubegrace that reads a Pod as JSON and has an HTTP client, a Prometheus
// registry and a feature gate has 14.0 MB, because the protobuf library of Prometheus keeps
// the linker from removing the protobuf methods of the Kubernetes types.
const largestBinary = 20 << 20

// TestBinaryOfAnAgent builds an agent of lifecycle, shutdown, logind and metrics, always for
// the same platform, with the Kubernetes of the README.
func TestBinaryOfAnAgent(t *testing.T) {
	need.Long(t, "the size of an agent's program")
	if _, minor := readmeFigures(t); !strings.HasPrefix(kubernetesVersion(t), minor+".") {
		t.Skip("the ceiling is for Kubernetes " + minor)
	}
	binary := filepath.Join(t.TempDir(), "agent")
	build := exec.CommandContext(t.Context(), "go", "build", "-trimpath", "-ldflags=-s -w", "-o", binary, "./testdata/agent")
	build.Env = append(os.Environ(), "CGO_ENABLED=0", "GOOS=linux", "GOARCH=amd64")
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	info, err := os.Stat(binary)
	require.NoError(t, err)
	t.Logf("%d bytes", info.Size())
	require.LessOrEqual(t, info.Size(), int64(largestBinary))
}
