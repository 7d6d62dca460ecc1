package virtualkubelet_test

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// A module outside of the repository builds with the modules kubegrace and virtualkubelet. Its program, testdata/outside,
// drains a pod and prints the outcome, and the exit code of each container: the length of its name.
func TestImportFromAnotherModule(t *testing.T) {
	need.Long(t, "modules outside of the repository that import it")
	here, err := os.Getwd()
	require.NoError(t, err)
	dir := t.TempDir()
	program, err := os.ReadFile("testdata/outside/main.go")
	require.NoError(t, err)
	sums, err := os.ReadFile("go.sum") // avoids requests for checksums
	require.NoError(t, err)
	write(t, dir, "main.go", program)
	write(t, dir, "go.sum", sums)
	write(t, dir, "go.mod", fmt.Appendf(nil, `module example.com/outside

go 1.24.0

replace (
	github.com/kubegrace/kubegrace => %s
	github.com/kubegrace/kubegrace/lifecycle/virtualkubelet => %s
)
`, filepath.Join(here, "..", ".."), here))

	goCommand(t, dir, "get", "github.com/kubegrace/kubegrace/lifecycle/virtualkubelet@v0.1.0")
	goCommand(t, dir, "vet", "./...")
	require.Equal(t, "shop web Graceful\nnginx 5\nlog 3\n", goCommand(t, dir, "run", "."))
	list := goCommand(t, dir, "list", "-m", "-f", "{{.Version}}", "github.com/kubegrace/kubegrace")
	require.Equal(t, "v0.1.0\n", list, "the version that will be released")
}

func write(t *testing.T, dir, name string, content []byte) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, name), content, 0o600))
}

// goCommand runs the go command in a module, which may complete its go.mod.
func goCommand(t *testing.T, dir string, args ...string) (stdout string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), "go", args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod", "PWD="+dir)
	out, err := cmd.Output()
	var exit *exec.ExitError
	if err != nil {
		require.ErrorAs(t, err, &exit)
		require.NoError(t, err, "go %v: %s", args, exit.Stderr)
	}
	return string(out)
}
