package main

import (
	"os"
	"path/filepath"
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

// TestTheMatrixIsThatOfTheRepository: matrix.go speaks of other files.
func TestTheMatrixIsThatOfTheRepository(t *testing.T) {
	const root = "../../.."
	for _, name := range testedModules() {
		goMod, err := os.ReadFile(filepath.Join(root, name, "go.mod"))
		require.NoError(t, err)
		file, err := modfile.Parse("go.mod", goMod, nil)
		require.NoError(t, err)
		version, err := kubernetesVersion(file)
		require.NoError(t, err)
		require.Equal(t, minorName(floor), semver.MajorMinor(version), "the floor of module %s", name)
	}
	for _, path := range forkPackages() {
		require.FileExists(t, filepath.Join(root, path, "doc.go"))
	}
}
