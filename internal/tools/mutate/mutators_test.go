package main

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// mutatedLines returns the mutations of a function with one line in its body.
func mutatedLines(t *testing.T, results, line string) []string {
	t.Helper()
	found, err := mutationsOf(mutated{folder: "p"}, "p/p.go", []byte("package p\n\nfunc (t *T) f() "+results+" {\n\t"+line+"\n}\n"))
	require.NoError(t, err)
	var all []string
	for _, m := range found {
		require.Equal(t, "T.f", m.function)
		all = append(all, m.is)
	}
	return all
}

func TestMutations(t *testing.T) {
	for _, c := range []struct {
		name, results, line string
		want                []string
	}{
		{"a condition", "", "if a < 10 { g() } // why", []string{"if a >= 10 { g() }", "if a <= 10 { g() }", "if a < 11 { g() }", "if a < 9 { g() }", "if a < 10 { }"}},
		{"a condition that is no comparison", "", "if !ok && f.done() { }", []string{"if ok && f.done() { }", "if !ok || f.done() { }", "if !ok && !f.done() { }"}},
		{"zero has only one neighbour", "", "x := 0", []string{"x := 1"}},
		{"a mode", "", "x := 0o600", []string{"x := 385"}},
		{"arithmetic", "", "a += b - c", []string{"(nothing)", "a -= b - c", "a += b + c"}},
		{"truth", "", "go g(true)", []string{"(nothing)", "go g(false)"}},
		{"an error that is returned", "(int, error)", "return g(), err", []string{"(nothing)", "return g(), nil"}},
		{"an error that is the only result", "error", `return fmt.Errorf("a: %w", err)`, []string{"(nothing)", "return nil"}},
		{"no error", "error", "return nil", []string{"(nothing)"}},
		{"several results of one call", "(int, error)", "return g()", []string{"(nothing)"}},
		{"logs", "", `l.Error(err, "a", 1); l.V(1).Info("b", 2); logV1(ctx, func() { g() })`, nil},
		{"mutexes and what is deferred", "", "t.mu.Lock(); defer g(1); t.mu.Unlock()", nil},
		{"a case", "", "switch { case a == b: g() }", []string{"switch { case a != b: g() }", "switch { case a == b: }"}},
		{"what is received or sent in a select", "", "select { case <-c: case d <- true: default: }", []string{"select { case <-c: case d <- false: default: }"}},
	} {
		t.Run(c.name, func(t *testing.T) { require.Equal(t, c.want, mutatedLines(t, c.results, c.line)) })
	}
}

func TestMutationsOutsideOfFunctions(t *testing.T) {
	found, err := mutationsOf(mutated{folder: "p"}, "p/p.go", []byte("package p\n\nconst most = 3 * time.Second\n"))
	require.NoError(t, err)
	require.Len(t, found, 3)
	for _, m := range found {
		require.Equal(t, "-", m.function)
	}
}

func TestNamesDoNotDependOnLines(t *testing.T) {
	before, err := mutationsOf(mutated{}, "p.go", []byte("package p\nfunc f() { g() }\n"))
	require.NoError(t, err)
	after, err := mutationsOf(mutated{}, "p.go", []byte("package p\n\n// f has a comment now.\nfunc f() { g() }\n"))
	require.NoError(t, err)
	require.NotEqual(t, before[0].line, after[0].line)
	require.Equal(t, before[0].name(), after[0].name())
}
