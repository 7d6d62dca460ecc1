package deptest

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// smallGraph returns a graph of five packages.
func smallGraph(t *testing.T) Graph {
	t.Helper()
	g, err := parse(strings.NewReader(`
		{"ImportPath":"io","Standard":true}
		{"ImportPath":"a.org/x/y","Imports":["io"],"Deps":["io"]}
		{"ImportPath":"a.org/xtra"}
		{"ImportPath":"us","Imports":["a.org/x/y","a.org/xtra","io"],"Deps":["a.org/x/y","a.org/xtra","io"]}
		{"ImportPath":"us/sub","Imports":["us"],"Deps":["a.org/x/y","a.org/xtra","io","us"]}`))
	require.NoError(t, err)
	return g
}

// In smallGraph, us imports a.org/x/y and a.org/xtra, and us/sub imports us. Only direct imports count. An allowed path
// also allows what is below it, but not another path with the same beginning.
func TestDisallowed(t *testing.T) {
	require.Equal(t, []string{"a.org/xtra"}, smallGraph(t).Disallowed("us", "a.org/x"), "a.org/xtra is not below a.org/x")
	require.Empty(t, smallGraph(t).Disallowed("us", "a.org"))
	require.Equal(t, []string{"us"}, smallGraph(t).Disallowed("us/sub"), "only direct imports count")
}

// DepsWithin also finds indirect imports: in smallGraph, us/sub imports us, which imports a.org/x/y.
func TestDepsWithin(t *testing.T) {
	require.Equal(t, []string{"a.org/x/y"}, smallGraph(t).DepsWithin("us/sub", "a.org/x"))
	require.Empty(t, smallGraph(t).DepsWithin("us/sub", "b.org"))
}

// An error of the go command, and output that is cut off, are returned and not taken for an empty graph.
func TestLoadReturnsErrors(t *testing.T) {
	_, err := Load(t.Context(), "", "./no-such-folder")
	require.ErrorContains(t, err, "go list failed")
	_, err = parse(strings.NewReader(`{"ImportPath":`))
	require.ErrorContains(t, err, "failed to read go list's output")
}
