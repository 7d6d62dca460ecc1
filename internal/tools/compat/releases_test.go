package main

import (
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestNewestPatch(t *testing.T) {
	r := releases{
		"k8s.io/api":       {"v0.34.2", "v0.34.10", "v0.34.9", "v0.34.11", "v0.35.0", "v0.36.0-rc.1", "v0.37.0", "nonsense"},
		"k8s.io/client-go": {"v0.34.10", "v0.34.9", "v0.34.2", "v0.35.0", "v0.35.1", "v0.36.0-rc.1", "nonsense"},
	}
	for minor, want := range map[int]string{34: "v0.34.10", 35: "v0.35.0"} {
		got, err := r.newestPatch(minor)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	for _, minor := range []int{3, 33, 36, 37} {
		_, err := r.newestPatch(minor)
		require.EqualError(t, err, "there is no release of "+minorName(minor)+" that all of these modules have: k8s.io/api, k8s.io/client-go")
		require.False(t, r.has(minor))
	}
	require.True(t, r.has(34))
}

func TestParseReleases(t *testing.T) {
	got, err := parseReleases(strings.NewReader(`{"Path": "a", "Versions": ["v0.1.0", "v0.2.0"]}
{"Path": "b"}`))
	require.NoError(t, err)
	require.Equal(t, releases{"a": {"v0.1.0", "v0.2.0"}, "b": nil}, got)
	_, err = parseReleases(strings.NewReader("go: no"))
	require.ErrorContains(t, err, "failed to read go list's output: ")
}
