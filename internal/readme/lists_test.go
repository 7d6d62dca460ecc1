package readme_test

import (
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// The table of packages in PACKAGES.md has a row for each public package, and no others.
func TestTheTableOfPackagesIsComplete(t *testing.T) {
	var want []string
	for _, s := range library(t) {
		if len(s.files) > 0 && !strings.Contains(s.path, "/internal") {
			want = append(want, s.path)
		}
	}
	require.ElementsMatch(t, want, firstCells(t, page(t, ".github/PACKAGES.md"), "| package | what it does |", `^\[.*\]\(\.\./(.*)\)$`))
}

// The table of packages in PACKAGES.md has a level of stability for each package, such as v0. It must be the text before the
// first colon of the section "Stability" in the package's documentation.
func TestStability(t *testing.T) {
	var want []string
	for _, s := range library(t) {
		if len(s.files) == 0 || strings.Contains(s.path, "/internal") {
			continue
		}
		_, section, found := strings.Cut(page(t, s.path+"/doc.go"), "// # Stability\n//\n// ")
		require.True(t, found, "the documentation of %s names no level of stability", s.path)
		level, _, _ := strings.Cut(section, ":")
		want = append(want, s.path+" "+strings.ToLower(level))
	}
	var rows []string
	for _, row := range regexp.MustCompile(`(?m)^\| \[.*\]\(\.\./(\S+)\) \| .* \| ([^|]+) \|$`).FindAllStringSubmatch(page(t, ".github/PACKAGES.md"), -1) {
		rows = append(rows, row[1]+" "+row[2])
	}
	require.ElementsMatch(t, want, rows)
}

// firstCells returns the first group of a pattern in the first cell of each row of a table. heading is
// the beginning of the heading of the table.
func firstCells(t *testing.T, page, heading, pattern string) []string {
	t.Helper()
	lines := strings.Split(page, "\n")
	start := slices.IndexFunc(lines, func(line string) bool { return strings.HasPrefix(line, heading) })
	require.GreaterOrEqual(t, start, 0, "there is no table %s", heading)
	var cells []string
	for _, line := range lines[start+2:] { // after the heading and the line of dashes
		cell, _, isRow := strings.Cut(strings.TrimPrefix(line, "| "), " |")
		if !isRow {
			break
		}
		found := regexp.MustCompile(pattern).FindStringSubmatch(cell)
		require.NotNil(t, found, "unexpected row: %s", line)
		cells = append(cells, found[1])
	}
	return cells
}
