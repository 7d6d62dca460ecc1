package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/perf/benchfmt"
)

func TestRowAndWayOfAName(t *testing.T) {
	for name, want := range map[string][2]string{
		"Drain-2":                             {"p.Drain", ""},
		"Drain/way=plain-16":                  {"p.Drain", "plain"},
		"Drain/way=plain":                     {"p.Drain", "plain"},
		"Drain/pods=10/way=kubegrace/stop=x":  {"p.Drain/pods=10/stop=x", "kubegrace"},
		"Drain/pods=10/way=kubegrace/s=x-2":   {"p.Drain/pods=10/s=x", "kubegrace"},
		"Drain/a sub-benchmark/way=floor-128": {"p.Drain/a sub-benchmark", "floor"},
	} {
		row, way := rowAndWay("p", benchfmt.Name(name))
		require.Equal(t, want, [2]string{row, way}, name)
	}
}

// resultsOf returns the results in these lines of a test program.
func resultsOf(t *testing.T, lines ...string) *results {
	t.Helper()
	r := newResults()
	require.NoError(t, r.read("p", strings.Join(lines, "\n")+"\n"))
	return r
}

func TestAUnitOfItsOwnComesFirst(t *testing.T) {
	r := resultsOf(t,
		"BenchmarkA/way=plain-2 1 5 ns/op 7 B/op",
		"BenchmarkB/way=plain-2 1 0 ns/op 30 ns/status",
		"BenchmarkC/way=plain-2 1 0 ns/op 300 B/pod 8 B/op")
	for _, c := range []struct{ row, prefix, want string }{
		{"p.A", timeUnit, "5.000ns"},
		{"p.A", memoryUnit, "7B"},
		{"p.B", timeUnit, "30.00ns/status"},
		{"p.B", memoryUnit, ""},
		{"p.C", timeUnit, ""},
		{"p.C", memoryUnit, "300B/pod"},
	} {
		require.Equal(t, c.want, single(r, c.row, plainWay, c.prefix), c.row+" "+c.prefix)
	}
}

func TestABenchmarkWithoutPlainWayNeedsAReason(t *testing.T) {
	r := resultsOf(t,
		"BenchmarkA-2 1 5 ns/op",
		"BenchmarkB/way=kubegrace-2 1 5 ns/op",
		"BenchmarkC/way=kubegrace-2 1 5 ns/op",
		"BenchmarkC/way=plain-2 1 5 ns/op",
		"BenchmarkC/way=third-2 1 5 ns/op")
	var out strings.Builder
	err := report(&out, r, "")
	require.EqualError(t, err, "neither a plain way nor a reason in alone.go: p.A, p.B kubegrace, p.C third")
	require.Contains(t, out.String(), "Not compared:")
	require.NotEmpty(t, reasonFor("lifecycle.CancelSleepingHooks/context=own", "floor"))
	require.NotEmpty(t, reasonFor("lifecycle.SleepingHookMemory", "floor"))
	require.Empty(t, reasonFor("lifecycle.SleepingHookMemory", "roof"))
}

func TestOutputWithoutResultsIsAnError(t *testing.T) {
	require.ErrorContains(t, newResults().read("p", "PASS\n"), "no results in the output of p")
	r := newResults()
	require.NoError(t, r.read("p", "BenchmarkA\n    a_test.go:7: needs dbus-daemon (Debian package dbus)\n--- SKIP: BenchmarkA\nPASS\n"))
	require.Equal(t, map[string]string{"p.A": "needs dbus-daemon (Debian package dbus)"}, r.skipped)
}

func TestRatios(t *testing.T) {
	four := func(v float64) []float64 { return []float64{v, v + 1, v + 2, v + 3} }
	for want, c := range map[string][2][]float64{
		"1.41":   {four(1000), four(1410)},
		"~ 1.00": {four(1000), four(1002)},
		"250":    {four(1000), four(250_500)},
		"∞":      {{0}, {1}},
		"":       {{0}, {0}},
		"1.00":   {{3, 3}, {3, 3}},
		"~ 2.00": {{1}, {2}},
	} {
		require.Equal(t, want, ratio(c[0], c[1]))
	}
}

func TestTurnsAlternateBetweenTrees(t *testing.T) {
	here := tree{programs: []program{{pkg: "a", benchmarks: []string{"X", "Y"}}, {pkg: "b", benchmarks: []string{"X"}}}}
	base := tree{programs: []program{{pkg: "a", benchmarks: []string{"Y"}}, {pkg: "b", benchmarks: []string{"X"}}}}
	var order []string
	for _, turn := range turnsOf([]tree{here, base}) {
		order = append(order, []string{"here ", "base "}[turn.tree]+turn.program.pkg+"."+turn.benchmark)
	}
	require.Equal(t, []string{"here a.X", "here a.Y", "base a.Y", "here b.X", "base b.X"}, order)
}

func TestGrowthIsThatOfTheMedians(t *testing.T) {
	r := resultsOf(t,
		"BenchmarkA/pods=10000/way=kubegrace-2 1 100 ns/op",
		"BenchmarkA/pods=50000/way=kubegrace-2 1 500 ns/op",
		"BenchmarkA/pods=10000/way=kubegrace-2 1 100 ns/op",
		"BenchmarkA/pods=50000/way=kubegrace-2 1 9000 ns/op",
		"BenchmarkA/pods=10000/way=kubegrace-2 1 10 ns/op",
		"BenchmarkA/pods=50000/way=kubegrace-2 1 490 ns/op",
		"BenchmarkB/pods=50000/way=kubegrace-2 1 9000 ns/op")
	var out strings.Builder
	require.Empty(t, printGrowth(&out, r))
	require.Equal(t, "\n50,000 pods take 5.0 times as long as 10,000 in p.A; at most 6 are allowed.\n", out.String())
}
