package main

import (
	"go/parser"
	"go/token"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

func TestChooseMinors(t *testing.T) {
	for only, want := range map[string][]int{
		"":                      {37, 36, 35, 34, 33, 32},
		"newest":                {37},
		"floor, newest":         {37, 34},
		"oldest,newest,v0.32":   {37, 32},
		"v0.33,v0.35,v0.36":     {36, 35, 33},
		"floor,v0.34,floor":     {34},
		"v0.37,newest,v0.35":    {37, 35},
		"oldest":                {32},
		" oldest , v0.36,v0.33": {36, 33, 32},
	} {
		got, err := chooseMinors(only)
		require.NoError(t, err, only)
		require.Equal(t, want, got, only)
	}
}

const repository = "../../.."

// The floors in matrix.go are those of the go.mod files, and its packages exist.
func TestTheMatrixIsThatOfTheRepository(t *testing.T) {
	for _, name := range testedModules() {
		goMod, err := os.ReadFile(filepath.Join(repository, name, "go.mod"))
		require.NoError(t, err)
		file, err := modfile.Parse("go.mod", goMod, nil)
		require.NoError(t, err)
		version, err := kubernetesVersion(file)
		require.NoError(t, err)
		require.Equal(t, minorName(floorOf()[name]), semver.MajorMinor(version), "the floor of module %s", name)
	}
	for _, path := range forkPackages(t) {
		require.FileExists(t, filepath.Join(repository, path, "doc.go"))
	}
}

// The README has the rows that make compat prints, and the floor and the packages of forks that
// matrix.go has.
func TestTheReadmeSaysWhatIsTested(t *testing.T) {
	readme, err := os.ReadFile(filepath.Join(repository, "README.md"))
	require.NoError(t, err)
	var got, want []string
	for _, cells := range regexp.MustCompile(`(?m)^\| (v0\.\d+)\.\d+ +\| go\S+ +\| (.*?) +\| ok +\|`).FindAllStringSubmatch(string(readme), -1) {
		got = append(got, cells[1]+" "+cells[2])
	}
	for minor := newest; minor >= oldest; minor-- {
		want = append(want, minorName(minor)+" "+whatIsTested(minor))
	}
	require.Equal(t, want, got, "the table of make compat in README.md")
	require.Contains(t, string(readme), "the Kubernetes libraries from "+minorName(floor)+" on")
	require.Contains(t, string(readme), "packages, with Kubernetes "+minorName(floor))
	_, forks, found := strings.Cut(string(readme), "can go back to "+minorName(oldest)+" with ")
	require.True(t, found, "README.md says how far back forks can go")
	forks, _, _ = strings.Cut(forks, ".")
	var packages []string
	for _, name := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(forks, -1) {
		packages = append(packages, name[1])
	}
	slices.Sort(packages)
	require.Equal(t, forkPackages(t), packages, "what forks vendor, in README.md")
}

// forkPackages returns the packages of kubegrace that the files of forkModule import.
func forkPackages(t *testing.T) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(repository, forkModule, "*.go"))
	require.NoError(t, err)
	found := map[string]bool{}
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.ImportsOnly)
		require.NoError(t, err)
		for _, spec := range file.Imports {
			if path, ours := strings.CutPrefix(strings.Trim(spec.Path.Value, `"`), kubegrace+"/"); ours {
				found[path] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(found))
}
