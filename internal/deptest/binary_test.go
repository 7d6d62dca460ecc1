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

// largestBinary is the maximum size in bytes of the agent in testdata/agent, without symbols and debug
// information (another 6.5 MB). With Go 1.26 its size is 20.2 MB with Kubernetes v0.33 and 15.7 MB with v0.34,
// because the linker can remove more of v0.34's types. For comparison, with v0.34 a program without kubegrace
// that decodes a Pod and has an HTTP client, a Prometheus registry and a feature gate is 14.0 MB: because of
// Prometheus' protobuf library, the linker cannot remove the protobuf methods of the Kubernetes types.
const largestBinary = 20 << 20

// The binary of an agent with lifecycle, shutdown, logind and metrics does not exceed its maximum size. The
// platform is fixed, and the Kubernetes version is that of .github/PACKAGES.md.
func TestTheBinaryOfAnAgentIsSmall(t *testing.T) {
	need.Long(t, "the size of an agent's program")
	if _, documentedMinor := pageFigures(t); !strings.HasPrefix(kubernetesVersion(t), documentedMinor+".") {
		t.Skip("the maximum is for Kubernetes " + documentedMinor)
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
