package main

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// code is edited. Its own tests know neither the exact limit nor what Log does.
const code = `package a

import "errors"

// Limit is a limit.
const Limit = 7

// Check returns an error if n is too large.
func Check(n int) error {
	if n < Limit {
		Log()
		return nil
	}
	return errors.New("too large")
}

// Log does nothing.
func Log() {}
`

// codeTest is the source of code's own test.
const codeTest = `package a

import "testing"

func TestCheck(t *testing.T) {
	if Check(1) != nil || Check(100) == nil {
		t.Error("wrong")
	}
}
`

// otherTest is a test of another package, which knows the limit.
const otherTest = `package other

import (
	"testing"

	"example.com/kubegrace/a"
)

func TestLimit(t *testing.T) {
	if a.Limit != 7 {
		t.Error(a.Limit)
	}
}
`

// Five edits (mutations) of package a are possible. Its own test kills one. The test of package other, which knows the limit, kills
// another one. One does not compile. Two survive: no test checks a number equal to the limit, or notices that Log is called.
// Packages that are for tests alone are not edited, and the files stay as they are. The lines in the results are those of the
// constant code.
func TestTestsKillEdits(t *testing.T) {
	root := t.TempDir()
	for name, content := range map[string]string{
		"go.mod": "module example.com/kubegrace\n", "lifecycle/virtualkubelet/go.mod": "module x\n", "lifecycle/criruntime/go.mod": "module y\n",
		"a/a.go": code, "a/a_test.go": codeTest, "other/other_test.go": otherTest,
		"internal/fake/fake.go": "package fake\n\n// N is one.\nconst N = 1\n", "atest/a.go": "package atest\n\n// N is one.\nconst N = 1\n",
	} {
		path := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(path), 0o750))
		require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	}
	var out strings.Builder
	const seed, mostEdits = 1, 100 // more than there are
	require.ErrorContains(t, run(root, seed, mostEdits, &out, io.Discard), "2 edits survived")
	file := filepath.Join(root, "a/a.go")
	lines := strings.Split(strings.TrimSpace(strings.ReplaceAll(out.String(), file+":", "")), "\n")
	slices.Sort(lines)
	require.Equal(t, []string{
		"SURVIVED: 10: n < Limit -> n <= Limit",
		"SURVIVED: 11: Log() -> /* deleted */",
		`does not compile: 14: errors.New("too large") -> nil`,
		"killed by example.com/kubegrace/a: 10: n < Limit -> !(n < Limit)",
		"killed by example.com/kubegrace/other: 6: 7 -> (7 + 1)",
	}, lines)
	unchanged, err := os.ReadFile(file)
	require.NoError(t, err)
	require.Equal(t, code, string(unchanged))
}
