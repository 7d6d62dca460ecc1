package readme_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Each row of the list is a figure, such as a version, that sentences of the pages and a file of the code have. Wherever a
// page has such a sentence, its figure must be that of the file. If no page has a figure any more, remove its row.
func TestFiguresMatchTheCode(t *testing.T) {
	const (
		provider = "lifecycle/virtualkubelet/go.mod"
		compat   = "internal/tools/compat.sh"
	)
	all := pages(t)
	for _, figure := range []struct {
		sentence string // a regular expression for the page; a space matches any white space
		file     string // the file that declares the figure
		declared string // a regular expression with the same groups
	}{
		{`Go (1\.\d+)(?: or later, and|, and the Kubernetes libraries)`, "go.mod", `\ngo (1\.\d+)`},
		{`v0\.\d+\.\d+ \| (go1\.25\.\d+) \|`, "Makefile", `TEST_GO   := (go\S+)`},
		{`built with (go1\.\d+\.\d+)`, "Makefile", `OLDEST_GO := (go\S+)`},
		{`the Kubernetes libraries from v0\.(\d+) on`, compat, `\nfloor=(\d+)`},
		{`packages, with Kubernetes (v0\.\d+) \|`, "go.mod", `k8s\.io/api (v0\.\d+)`},
		{`(?:go back to|down to|with Kubernetes) v0\.(\d+)(?:,|\.| and each)`, compat, `\noldest=(\d+)`},
		{`virtual-kubelet (v1\.\d+) or later`, provider, `virtual-kubelet/virtual-kubelet (v1\.\d+)`},
		{`killed (\d+) s past its timeout`, "lifecycle/terminator_options.go", `DefaultStopTimeoutSlack = (\d+) \* time\.Second`},
		{`given up after (\d+) minutes`, "lifecycle/terminator_options.go", `DefaultGiveUpAfter = (\d+) \* time\.Minute`},
		{`sleep cut within (\d+) ms of its end`, "lifecycle/handler_runner.go", `sleepTolerance = (\d+) \* time\.Millisecond`},
	} {
		declared := regexp.MustCompile(figure.declared).FindStringSubmatch(page(t, figure.file))
		require.NotNil(t, declared, "%s does not match %s", figure.file, figure.declared)
		found := 0
		for name, text := range all {
			for _, match := range regexp.MustCompile(strings.ReplaceAll(figure.sentence, " ", `\s+`)).FindAllStringSubmatch(text, -1) {
				found++
				require.Equal(t, declared[1], match[1], "%s: %s", name, match[0])
			}
		}
		require.Positive(t, found, "no page has this figure any more: %s", figure.sentence)
	}
}

// The table of tested versions in PACKAGES.md has each minor that make compat tests, from the newest to the oldest. It may have
// several rows for a minor.
func TestVersionsMatchMakeCompat(t *testing.T) {
	minor := map[string]int{}
	for _, match := range regexp.MustCompile(`(?m)^(oldest|newest)=(\d+)`).FindAllStringSubmatch(page(t, "internal/tools/compat.sh"), -1) {
		number, err := strconv.Atoi(match[2])
		require.NoError(t, err)
		minor[match[1]] = number
	}
	var want, rows []string
	for i := minor["newest"]; i >= minor["oldest"]; i-- {
		want = append(want, strconv.Itoa(i))
	}
	require.Greater(t, len(want), 1)
	for _, row := range regexp.MustCompile(`(?m)^\| v0\.(\d+)\.\d+ +\| go`).FindAllStringSubmatch(page(t, ".github/PACKAGES.md"), -1) {
		rows = append(rows, row[1])
	}
	require.Equal(t, want, slices.Compact(rows), "a minor may have a row for each of several Go versions")
}

// pages returns the Markdown files of the repository.
func pages(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	require.NoError(t, filepath.WalkDir("../..", func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && slices.Contains([]string{".git", ".cache", "testdata"}, entry.Name()):
			return filepath.SkipDir
		case filepath.Ext(path) == ".md":
			text, err := os.ReadFile(path)
			all[path] = string(text)
			return err
		}
		return nil
	}))
	return all
}
