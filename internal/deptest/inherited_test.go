package deptest_test

import (
	"os"
	"os/exec"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// inheritance says how many packages from outside the standard library and kubegrace an
// importer may inherit. The README has the same rows, with the numbers as they are.
func inheritance() []inherits {
	return []inherits{
		{atMost: 70, by: []string{"graceperiod"}},
		{atMost: 70, by: []string{"shutdown/plan"}},
		{atMost: 75, by: []string{"validation"}},
		{atMost: 140, by: []string{"lifecycle", "shutdown", "shutdown/logind"}}, // the kubelet's own: 1,312
	}
}

// inherits is a row of such a table: who imports the packages by, inherits so many.
type inherits struct {
	atMost int
	by     []string
}

func TestInherited(t *testing.T) {
	graph := load(t, "linux")
	readme, minor := readmeInheritance(t)
	counted := map[string]int{}
	for _, row := range inheritance() {
		paths := make([]string, 0, len(row.by))
		for _, path := range row.by {
			require.Contains(t, graph, module+"/"+path)
			paths = append(paths, module+"/"+path)
		}
		inherited := graph.Inherited(module, paths...)
		counted[strings.Join(row.by, " ")] = len(inherited)
		require.LessOrEqual(t, len(inherited), row.atMost, "%v bring:\n%s", row.by, strings.Join(inherited, "\n"))
	}
	// Another minor of Kubernetes may bring some more, or fewer.
	if strings.HasPrefix(kubernetesVersion(t), minor+".") {
		require.Equal(t, counted, readme, "the table of packages in README.md: it must say %v", counted)
	}
}

// readmeInheritance reads the README's table: the number of each row by its packages, and
// the minor of Kubernetes with which they were counted.
func readmeInheritance(t *testing.T) (numbers map[string]int, minor string) {
	t.Helper()
	readme, err := os.ReadFile("../../README.md")
	require.NoError(t, err)
	table := regexp.MustCompile(`(?m)^\| import \| packages, with Kubernetes (v0\.\d+) \|\n\|---\|---\|\n((?:\|.*\n)+)`).FindSubmatch(readme)
	require.NotNil(t, table, "README.md has no table of packages that come with an import")
	numbers = map[string]int{}
	for row := range strings.Lines(string(table[2])) {
		cells := regexp.MustCompile(`^\| (.+) \| (\d+) \|\n$`).FindStringSubmatch(row)
		require.NotNil(t, cells, "README.md, table of packages: a row is not as expected: %q", row)
		var by []string
		for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(cells[1], -1) {
			by = append(by, name[1])
		}
		numbers[strings.Join(by, " ")], err = strconv.Atoi(cells[2])
		require.NoError(t, err)
	}
	return numbers, string(table[1])
}

// kubernetesVersion is the version of the Kubernetes libraries that this is built with.
func kubernetesVersion(t *testing.T) string {
	t.Helper()
	out, err := exec.CommandContext(t.Context(), "go", "list", "-m", "-f", "{{.Version}}", api).Output()
	require.NoError(t, err)
	return string(out)
}
