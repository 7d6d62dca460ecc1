package deptest

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"maps"
	"os"
	"os/exec"
	"slices"
	"strings"
)

// Package is one package of the import graph, as go list gives it. Test files do
// not count: no importer inherits what only they import.
type Package struct {
	ImportPath string
	Imports    []string // direct, sorted
	Deps       []string // transitive, sorted
	Standard   bool     // of the standard library
}

// Graph holds packages by import path.
type Graph map[string]Package

// Load asks go list for the packages that match patterns and for all that they
// reach, as built for the operating system goos ("" is this one).
func Load(ctx context.Context, goos string, patterns ...string) (Graph, error) {
	args := append([]string{"list", "-deps", "-json=ImportPath,Imports,Deps,Standard"}, patterns...)
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Env = os.Environ()
	if goos != "" {
		cmd.Env = append(cmd.Env, "GOOS="+goos, "CGO_ENABLED=0")
	}
	out, err := cmd.Output()
	if err != nil {
		var exit *exec.ExitError
		if errors.As(err, &exit) {
			return nil, fmt.Errorf("go list failed: %w: %s", err, exit.Stderr)
		}
		return nil, fmt.Errorf("failed to run go list: %w", err)
	}
	return parse(strings.NewReader(string(out)))
}

// parse reads go list's JSON, one object after the other.
func parse(r io.Reader) (Graph, error) {
	graph := Graph{}
	for dec := json.NewDecoder(r); ; {
		var p Package
		if err := dec.Decode(&p); errors.Is(err, io.EOF) {
			return graph, nil
		} else if err != nil {
			return nil, fmt.Errorf("failed to read go list's output: %w", err)
		}
		graph[p.ImportPath] = p
	}
}

// Stray gives the direct imports of path that are neither of the standard
// library nor below one of the allowed import paths.
func (g Graph) Stray(path string, allowed ...string) []string {
	return slices.DeleteFunc(slices.Clone(g[path].Imports), func(imp string) bool {
		return g[imp].Standard || within(imp, allowed)
	})
}

// Reaches gives the packages that path reaches, however far, and that are one of
// the denied import paths or below it.
func (g Graph) Reaches(path string, denied ...string) []string {
	return slices.DeleteFunc(slices.Clone(g[path].Deps), func(dep string) bool {
		return !within(dep, denied)
	})
}

// Inherited gives what an importer of paths inherits from others: all packages that they
// reach, but those of the standard library and those of the module own.
func (g Graph) Inherited(own string, paths ...string) []string {
	seen := map[string]bool{}
	for _, path := range paths {
		for _, dep := range g[path].Deps {
			if !g[dep].Standard && !within(dep, []string{own}) {
				seen[dep] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// within tells whether path is one of roots or below one.
func within(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}
