package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	// source is a package with statements that can be in a shared binary and others that cannot.
	source = `package graceperiod

import "errors"

const floor = 2

var errNegative = errors.New("negative")

// Sum adds what is above the floor.
func Sum(numbers []int) (sum int, err error) {
	least := floor + 0
outer:
	for {
		for _, n := range numbers {
			if n < 0 {
				return 0, errNegative
			}
			switch {
			case n > least:
				sum += n
			}
		}
		break outer
	}
	return sum, nil
}

// Forever counts down.
func Forever(n int) {
	for n > 0 {
		n--
	}
}

func unused() int { return 1 }
`
	// tests overlook some of what the package does.
	tests = `package graceperiod

import "testing"

func TestSum(t *testing.T) {
	if sum, err := Sum([]int{1, 2, 3, 4}); sum != 7 || err != nil {
		t.Fatal(sum, err)
	}
	if _, err := Sum([]int{-1}); err == nil {
		t.Fatal("no error")
	}
}

func TestForever(*testing.T) { Forever(3) }
`
)

// repository makes a repository with that package and the given survivors.yaml.
func repository(t *testing.T, survivors string) string {
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module example.com/m\n\ngo 1.25.0\n", "graceperiod/sum.go": source, "graceperiod/sum_test.go": tests, "survivors.yaml": survivors,
	} {
		file := filepath.Join(root, name)
		require.NoError(t, os.MkdirAll(filepath.Dir(file), 0o700))
		require.NoError(t, os.WriteFile(file, []byte(text), 0o600))
	}
	return root
}

// runIn runs the program in a repository and returns what it prints.
func runIn(t *testing.T, root string, args ...string) (stdout string, err error) {
	var out, progress bytes.Buffer
	args = append([]string{"--root", root, "--only", "graceperiod", "--survivors", "survivors.yaml", "--timeout", "1s"}, args...)
	err = mutate(t.Context(), args, &out, &progress)
	return out.String(), err
}

func TestMutate(t *testing.T) {
	root := repository(t, `
- {file: graceperiod/sum.go, function: Sum, was: 'least := floor + 0', is: 'least := floor - 0', reason: equal}
- {file: graceperiod/sum.go, function: Sum, was: 'sum += n', is: '(nothing)', reason: wrong}
- {file: graceperiod/sum.go, function: Sum, was: 'sum += m', is: '(nothing)', reason: not in the source}
- {file: elsewhere/sum.go, function: Sum, was: 'sum += m', is: '(nothing)', reason: not asked about}
`)
	json := filepath.Join(t.TempDir(), "mutants.json")
	out, err := runIn(t, root, "--json", json)
	require.ErrorContains(t, err, "6 mutants have survived")
	for _, want := range []string{
		"no longer survives, killed by TestSum: graceperiod/sum.go Sum: sum += n -> (nothing)\n",
		"accepted, but no mutation of the source: graceperiod/sum.go Sum: sum += m -> (nothing)\n",
		"# graceperiod/sum.go:15 has survived\n- file: graceperiod/sum.go\n  function: Sum\n  was: if n < 0 {\n  is: if n <= 0 {\n",
		"  is: for n >= 0 {\n",
	} {
		require.Contains(t, out, want)
	}
	require.NotContains(t, out, "elsewhere")
	require.NotContains(t, out, "floor - 0", "accepted")
	require.Regexp(t, `\| graceperiod \| 24 +\| 10 +\| 3 +\| 1 +\| 6 +\| 2 +\| 2 +\|`, out)
	lines, err := os.ReadFile(json)
	require.NoError(t, err)
	require.Equal(t, 24, bytes.Count(lines, []byte("\n")))
	text, err := os.ReadFile(filepath.Join(root, "graceperiod/sum.go"))
	require.NoError(t, err)
	require.Equal(t, source, string(text), "the repository is not changed")
}

func TestMutateWhatMatches(t *testing.T) {
	out, err := runIn(t, repository(t, "[]"), "--match", `sum \+= n -> `)
	require.NoError(t, err)
	require.Contains(t, out, "| graceperiod | 2 ")
	out, err = runIn(t, repository(t, "[]"), "--list", "--sample", "3", "--seed", "4")
	require.NoError(t, err)
	again, err := runIn(t, repository(t, "[]"), "--list", "--sample", "3", "--seed", "4")
	require.NoError(t, err)
	require.Equal(t, out, again, "a seed gives one sample")
	require.Equal(t, 3, strings.Count(out, "\n"))
}

func TestMutateRefuses(t *testing.T) {
	_, err := runIn(t, repository(t, "- {file: a.go, function: f, was: a, is: b}"))
	require.ErrorContains(t, err, "no reason")
	_, err = runIn(t, repository(t, "[]"), "--only", "nowhere")
	require.ErrorContains(t, err, "no package that is mutated")
	_, err = runIn(t, repository(t, "[]"), "more")
	require.ErrorContains(t, err, "unexpected argument")
	failing := repository(t, "[]")
	require.NoError(t, os.WriteFile(filepath.Join(failing, "graceperiod/sum.go"), []byte(strings.ReplaceAll(source, "floor = 2", "floor = 1")), 0o600))
	_, err = runIn(t, failing)
	require.ErrorContains(t, err, "TestSum of graceperiod fails without a mutation")
}

func TestChoosePackages(t *testing.T) {
	chosen, err := choosePackages("./shutdown/internal/..., shutdown/plan/,shutdown/internal/call")
	require.NoError(t, err)
	var folders []string
	for _, p := range chosen {
		folders = append(folders, p.folder)
	}
	require.Equal(t, []string{"shutdown/internal/call", "shutdown/internal/drain", "shutdown/internal/host", "shutdown/internal/kills", "shutdown/internal/outbox", "shutdown/internal/store", "shutdown/internal/timetable", "shutdown/internal/windows", "shutdown/plan"}, folders)
}
