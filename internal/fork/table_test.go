package fork

import (
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// testsUnder returns the names of the test functions in a folder and those below it.
func testsUnder(t *testing.T, folder string) map[string]bool {
	t.Helper()
	declared, tests := regexp.MustCompile(`(?m)^func (Test\w+)\(`), map[string]bool{}
	require.NoError(t, filepath.WalkDir(folder, func(path string, _ fs.DirEntry, err error) error {
		if err != nil || !strings.HasSuffix(path, "_test.go") {
			return err
		}
		data, err := os.ReadFile(path)
		for _, found := range declared.FindAllStringSubmatch(string(data), -1) {
			tests[found[1]] = true
		}
		return err
	}))
	return tests
}

// differences returns the table of differences in README.md: by the name of the difference, what "in the fork" says.
func differences(t *testing.T) map[string]string {
	t.Helper()
	page, err := os.ReadFile("README.md")
	require.NoError(t, err)
	_, table, found := strings.Cut(string(page), "| | kubelet | kubegrace | in the fork |\n|---|---|---|---|\n")
	require.True(t, found)
	table, _, _ = strings.Cut(table, "\n\n")
	inTheFork := map[string]string{}
	for row := range strings.SplitSeq(strings.TrimSpace(table), "\n") {
		cells := strings.Split(strings.Trim(row, "| "), " | ")
		require.Len(t, cells, 4, row)
		inTheFork[cells[0]] = cells[3]
	}
	require.Greater(t, len(inTheFork), 40)
	return inTheFork
}

// Each row of the table of differences names tests that exist, of the fork or of kubegrace.
func TestEachDifferenceNamesItsTests(t *testing.T) {
	tests, named := testsUnder(t, "v1.32"), regexp.MustCompile("`(Test\\w+)`")
	for _, folder := range []string{"v1.37", filepath.Join("..", "..", "lifecycle"), filepath.Join("..", "..", "shutdown")} {
		maps.Copy(tests, testsUnder(t, folder))
	}
	for difference, inTheFork := range differences(t) {
		names := named.FindAllStringSubmatch(inTheFork, -1)
		require.NotEmpty(t, names, difference)
		for _, name := range names {
			require.True(t, tests[name[1]], "%s: there is no %s", difference, name[1])
		}
	}
}

// The files kubelet_test.go of lifecycle and shutdown compare kubegrace with a model of the kubelet. Each class of differences
// that they allow is a row of the table of differences.
func TestTheTableHasTheDifferencesFromTheModel(t *testing.T) {
	documented := differences(t)
	class := regexp.MustCompile(`difference\s+= "(.*)"`)
	for _, folder := range []string{"lifecycle", "shutdown"} {
		text, err := os.ReadFile(filepath.Join("..", "..", folder, "kubelet_test.go"))
		require.NoError(t, err)
		classes := class.FindAllStringSubmatch(string(text), -1)
		require.NotEmpty(t, classes)
		for _, c := range classes {
			require.Contains(t, documented, c[1], "the model of the kubelet in %s has a class that is not in the table", folder)
		}
	}
}
