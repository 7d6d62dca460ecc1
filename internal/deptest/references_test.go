package deptest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

func TestReferences(t *testing.T) {
	folder := t.TempDir()
	for name, content := range map[string]string{
		"house.go": `package house

import "example.com/bricks"

type house[T any] struct {
	door   *door
	bricks bricks.Red
}

func (h *house[T]) open() { h.door.open(limit) }
`,
		"door.go": `package house

import "fmt"

type door struct{ width int }

func (d door) open(n int) { fmt.Println(d.width, n) }

const limit = 3

var paint = func(d *door) { d.width = limit }

func build() any { var limit int; return &house[int]{door: &door{width: limit}} }
`,
		"door_test.go": "package house\n\nvar _ = build\n",
	} {
		require.NoError(t, os.WriteFile(filepath.Join(folder, name), []byte(content), 0o600))
	}
	got, err := References(folder)
	require.NoError(t, err)
	require.Equal(t, map[string][]string{
		"house": {"door", "limit"},
		"door":  nil,
		"limit": nil,
		"paint": {"door", "limit"},
		"build": {"door", "house"},
	}, got)

	_, err = References(filepath.Join(folder, "none"))
	require.ErrorContains(t, err, "has no Go files")
	require.NoError(t, os.WriteFile(filepath.Join(folder, "torn.go"), []byte("package house\n\nfunc"), 0o600))
	_, err = References(folder)
	require.ErrorContains(t, err, "torn.go:3")
}

func TestCycles(t *testing.T) {
	require.Equal(t, [][]string{{"a", "b", "c"}, {"x", "y"}}, Cycles(map[string][]string{
		"a": {"b", "alone"}, "b": {"c"}, "c": {"a", "x"},
		"x": {"y"}, "y": {"x"},
		"alone": {"y"}, "main": {"a"},
	}))
	require.Empty(t, Cycles(map[string][]string{"a": {"b"}, "b": nil}))
}
