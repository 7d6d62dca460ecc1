// Package golden compares what a command prints with a file that is kept beside its tests:
//
//	golden.Require(t, "plan.txt", out)
//
// compares out with testdata/plan.txt. After a change that is wanted, KUBEGRACE_GOLDEN=1 go
// test writes the files anew; then read the diff.
//
// # Concurrency properties
//
// Tests that run at the same time need files of different names.
//
// # Failure modes
//
// The test fails if the file is missing or has another text.
//
// # Testing
//
// This package is for tests.
package golden

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// Require compares a text with a file of the folder testdata. If KUBEGRACE_GOLDEN is set, it
// writes the file first.
func Require(t testing.TB, name, text string) {
	t.Helper()
	file := filepath.Join("testdata", name)
	if os.Getenv("KUBEGRACE_GOLDEN") != "" {
		require.NoError(t, os.MkdirAll("testdata", 0o750))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	want, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, string(want), text)
}
