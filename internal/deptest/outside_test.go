package deptest_test

import (
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/internal/need"
)

// mostPackages returns the maximum number of inherited packages, besides the standard library and kubegrace,
// for each import, with the Kubernetes minor of PACKAGES.md, which has the current numbers.
func mostPackages() map[string]int {
	return map[string]int{
		"graceperiod":         70,
		"shutdown/plan":       70,
		"validation":          75,
		"shutdown":            130,
		"shutdown/source":     0,
		"shutdown/inhibitor":  8,
		"shutdown/logind":     11, // 8 of them are klog
		"shutdown/unixsocket": 8,
		"shutdown/notice":     0,
		agent:                 130, // a kubelet: 1,312
	}
}

// agent has the imports of an agent that drains its pods on a host with systemd.
const agent = "lifecycle shutdown shutdown/logind"

// A module that imports one public package, or those of an agent, builds. It inherits as many packages as PACKAGES.md says, and
// at most mostPackages. The numbers depend on the version of Kubernetes, so they are compared only for the minor version that the
// page names.
func TestAnOutsideModuleBuilds(t *testing.T) {
	need.Long(t, "modules outside of the repository that import it")
	documented, documentedMinor := pageFigures(t)
	isDocumented := strings.HasPrefix(kubernetesVersion(t), documentedMinor+".")
	counted := map[string]string{} // "PACKAGES MODULES" by the imports
	for _, imports := range append(publicPackages(t), agent) {
		packages, modules := buildOutside(t, strings.Fields(imports))
		counted[imports] = fmt.Sprintf("%d %d", len(packages), len(modules))
		if most, bounded := mostPackages()[imports]; bounded && isDocumented {
			require.LessOrEqual(t, len(packages), most, "%s inherits:\n%s", imports, strings.Join(packages, "\n"))
		}
	}
	if isDocumented {
		require.Equal(t, counted, documented, "the table of packages in .github/PACKAGES.md, and the sentence after it")
	}
}

// publicPackages returns the packages of this module that other modules can import.
func publicPackages(t *testing.T) []string {
	t.Helper()
	var names []string
	for path := range loadGraph(t, "linux") {
		name, ours := strings.CutPrefix(path, module+"/")
		if ours && !strings.HasPrefix(name, "internal/") && !strings.Contains(name, "/internal/") {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// buildOutside builds a module that imports packages of kubegrace. It returns the inherited packages, except
// those in the standard library and kubegrace, and their modules.
func buildOutside(t *testing.T, imports []string) (packages, modules []string) {
	t.Helper()
	root, err := filepath.Abs("../..")
	require.NoError(t, err)
	sums, err := os.ReadFile(filepath.Join(root, "go.sum"))
	require.NoError(t, err)
	var source strings.Builder
	source.WriteString("package agent\n\nimport (\n")
	for _, name := range imports {
		fmt.Fprintf(&source, "\t_ %q\n", module+"/"+name)
	}
	source.WriteString(")\n")
	dir := t.TempDir()
	for name, content := range map[string]string{
		"go.mod":   fmt.Sprintf("module example.com/agent\n\ngo 1.24.0\n\nrequire %s v0.1.0\n\nreplace %s => %s\n", module, module, root),
		"go.sum":   string(sums), // avoids downloads
		"agent.go": source.String(),
	} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), []byte(content), 0o600))
	}
	goCommand := func(args ...string) (output string) {
		cmd := exec.CommandContext(t.Context(), "go", args...)
		cmd.Dir, cmd.Env = dir, append(os.Environ(), "GOFLAGS=-mod=mod", "GOWORK=off", "GOOS=linux")
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, "%v: %s", imports, out)
		return string(out)
	}
	goCommand("build", ".")
	moduleSet := map[string]bool{}
	for line := range strings.Lines(goCommand("list", "-deps", "-f", "{{if not .Standard}}{{.ImportPath}} {{.Module.Path}}{{end}}", ".")) {
		path, from, found := strings.Cut(strings.TrimSpace(line), " ")
		if found && from != module && from != "example.com/agent" {
			packages = append(packages, path)
			moduleSet[from] = true
		}
	}
	return packages, slices.Sorted(maps.Keys(moduleSet))
}

// pageFigures reads PACKAGES.md: the numbers "PACKAGES MODULES" for each import, and the Kubernetes minor that they
// apply to.
func pageFigures(t *testing.T) (figures map[string]string, minor string) {
	t.Helper()
	text, err := os.ReadFile("../../.github/PACKAGES.md")
	require.NoError(t, err)
	heading := regexp.MustCompile(`\| package \| what it does \| packages, with Kubernetes (v0\.\d+) \| modules \|`).FindSubmatch(text)
	require.NotNil(t, heading, "PACKAGES.md has no table of packages")
	figures = map[string]string{}
	for _, row := range regexp.MustCompile(`(?m)^\| \[.*\]\(\.\./(\S+)\) \| .* \| (\d+) \| (\d+) \| [^|]+ \|$`).FindAllSubmatch(text, -1) {
		figures[string(row[1])] = fmt.Sprintf("%s %s", row[2], row[3])
	}
	together := regexp.MustCompile(`An agent of (.*) gets (\d+) packages of (\d+) modules`).FindSubmatch(text)
	require.NotNil(t, together, "PACKAGES.md has no sentence about an agent")
	imports := strings.NewReplacer("`", "", ",", "", " and", "").Replace(string(together[1])) // "`a`, `b` and `c`" becomes "a b c"
	figures[imports] = fmt.Sprintf("%s %s", together[2], together[3])
	return figures, string(heading[1])
}

// kubernetesVersion returns the version of the Kubernetes libraries in go.mod.
func kubernetesVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", api).Output()
	require.NoError(t, err)
	return string(out)
}
