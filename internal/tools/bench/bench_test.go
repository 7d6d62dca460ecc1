package main

import (
	"bytes"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// toy is the source of a package whose benchmarks report fixed values. FACTOR*n is replaced by
// the value that way=kubegrace reports.
const toy = `package toy

import (
	"strconv"
	"testing"
)

func report(b *testing.B, name string, ns float64) {
	b.Run(name, func(b *testing.B) {
		for b.Loop() {
		}
		b.ReportMetric(ns, "ns/op")
		b.ReportMetric(2*ns, "B/pod")
	})
}

func BenchmarkDrain(b *testing.B) {
	for _, n := range []int{10_000, 50_000} {
		report(b, "pods="+strconv.Itoa(n)+"/way=plain", float64(n))
		report(b, "pods="+strconv.Itoa(n)+"/way=kubegrace", float64(FACTOR*n))
	}
}

func BenchmarkPart(b *testing.B) {
	b.Skip("needs a part that is missing")
}
`

// writeToy writes the module into a folder. ours is the Go expression of the time that
// way=kubegrace reports.
func writeToy(t *testing.T, dir, ours string) {
	t.Helper()
	require.NoError(t, os.WriteFile(filepath.Join(dir, "go.mod"), []byte("module example.com/toy\n\ngo 1.25.0\n"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "toy_test.go"), []byte(strings.Replace(toy, "float64(FACTOR*n)", ours, 1)), 0o600))
}

// benchToy runs the program on the module in a folder and returns what it prints.
func benchToy(t *testing.T, dir string, args ...string) (string, error) {
	t.Helper()
	t.Setenv("GOFLAGS", "-mod=mod")
	t.Setenv("GOWORK", "off")
	var stdout, stderr bytes.Buffer
	err := bench(t.Context(), append([]string{"--root", dir, "--benchtime", "1x"}, append(args, ".")...), &stdout, &stderr)
	return stdout.String(), err
}

func TestOneTableOfRatios(t *testing.T) {
	dir, raw := t.TempDir(), t.TempDir()
	writeToy(t, dir, "float64(n)/2")
	out, err := benchToy(t, dir, "--count", "4", "--raw", raw)
	require.NoError(t, err)
	_, table, _ := strings.Cut(out, "\n\n")
	require.Equal(t, `| benchmark            | plain   | kubegrace | ratio | plain, memory | kubegrace, memory | ratio |
|---                   |---      |---        |---    |---            |---                |---    |
| toy.Drain/pods=10000 | 10.00µs | 5.000µs   | 0.50  | 19.53KiB/pod  | 9.766KiB/pod      | 0.50  |
| toy.Drain/pods=50000 | 50.00µs | 25.00µs   | 0.50  | 97.66KiB/pod  | 48.83KiB/pod      | 0.50  |

Skipped: toy.Part needs a part that is missing

50,000 pods take 5.0 times as long as 10,000 in toy.Drain; at most 6 are allowed (plain: 5.0).
`, table)
	kept, err := os.ReadFile(filepath.Join(raw, "here.txt"))
	require.NoError(t, err)
	require.Equal(t, 4, strings.Count(string(kept), "BenchmarkDrain/pods=50000/way=kubegrace-"), "the results of all rounds")
}

func TestCostThatGrowsFasterThanThePodsIsAnError(t *testing.T) {
	dir := t.TempDir()
	writeToy(t, dir, "float64(n)*float64(n)")
	out, err := benchToy(t, dir, "--count", "1")
	require.ErrorContains(t, err, "cost grows faster than the pods: toy.Drain")
	require.Contains(t, out, "take 25.0 times as long")
}

func TestOnlySomeBenchmarks(t *testing.T) {
	dir := t.TempDir()
	writeToy(t, dir, "1")
	out, err := benchToy(t, dir, "--count", "1", "--only", "toy.Part")
	require.NoError(t, err)
	require.NotContains(t, out, "toy.Drain")
	_, err = benchToy(t, dir, "--only", "nothing")
	require.ErrorContains(t, err, `no benchmark in . matches "nothing"`)
}

func TestBesideAnotherCommit(t *testing.T) {
	dir := t.TempDir()
	git := func(args ...string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), "git", append([]string{"-c", "user.name=t", "-c", "user.email=t@example.com"}, args...)...)
		cmd.Dir = dir
		out, err := cmd.CombinedOutput()
		require.NoError(t, err, string(out))
	}
	writeToy(t, dir, "float64(n)/2")
	git("init", "-q", "-b", "main")
	git("add", ".")
	git("commit", "-q", "-m", "before")
	writeToy(t, dir, "float64(n)/4")
	out, err := benchToy(t, dir, "--count", "4", "--base", "main", "--only", "Drain")
	require.NoError(t, err)
	require.Contains(t, out, "| main    | here    | ratio |")
	require.Contains(t, out, "| toy.Drain/pods=10000 | 5.000µs | 2.500µs | 0.50  |")
	worktrees, err := output(t.Context(), dir, "git", "worktree", "list")
	require.NoError(t, err)
	require.Equal(t, 1, strings.Count(worktrees, "\n"), "the worktree of main is removed")
}

func TestABenchmarkThatFailsIsAnError(t *testing.T) {
	dir := t.TempDir()
	writeToy(t, dir, "func() float64 { b.Fatal(42); return 0 }()")
	_, err := benchToy(t, dir, "--count", "1")
	require.ErrorContains(t, err, "toy_test.go")
	require.ErrorContains(t, err, "42")
}

func TestWrongArguments(t *testing.T) {
	for want, args := range map[string][]string{
		"--only":               {"--only", "("},
		"--count":              {"--count", "0"},
		"no modules are given": {},
	} {
		var stdout, stderr bytes.Buffer
		require.ErrorContains(t, bench(t.Context(), args, &stdout, &stderr), want)
		require.Empty(t, stdout.String())
	}
}
