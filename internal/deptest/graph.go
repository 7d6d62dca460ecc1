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

// Package is a package in the JSON output of go list. It does not include the imports of test files.
type Package struct {
	ImportPath string
	Imports    []string // direct, sorted
	Deps       []string // transitive, sorted
	Standard   bool     // whether it is in the standard library
}

// Graph maps import paths to packages.
type Graph map[string]Package

// Load runs go list and returns the packages that match patterns and all their dependencies, as built for
// the operating system goos; "" means this machine's.
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

// parse reads the output of go list, a sequence of JSON objects.
func parse(r io.Reader) (Graph, error) {
	graph, decoder := Graph{}, json.NewDecoder(r)
	for {
		var p Package
		switch err := decoder.Decode(&p); {
		case errors.Is(err, io.EOF):
			return graph, nil
		case err != nil:
			return nil, fmt.Errorf("failed to read go list's output: %w", err)
		}
		graph[p.ImportPath] = p
	}
}

// Disallowed returns the direct imports of a package that an allow list forbids: all but the standard library and
// what is in or below one of the allowed import paths.
func (g Graph) Disallowed(path string, allowed ...string) []string {
	return slices.DeleteFunc(slices.Clone(g[path].Imports), func(imp string) bool {
		return g[imp].Standard || within(imp, allowed)
	})
}

// DepsWithin returns the direct and indirect imports of a package that are in or below one of the import paths roots.
func (g Graph) DepsWithin(path string, roots ...string) []string {
	return slices.DeleteFunc(slices.Clone(g[path].Deps), func(dep string) bool {
		return !within(dep, roots)
	})
}

// Inherited returns what a program that imports paths gets from other modules: all direct and indirect imports
// outside the standard library and the given module.
func (g Graph) Inherited(module string, paths ...string) []string {
	seen := map[string]bool{}
	for _, path := range paths {
		for _, dep := range g[path].Deps {
			if !g[dep].Standard && !within(dep, []string{module}) {
				seen[dep] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(seen))
}

// within reports whether path is in or below one of roots.
func within(path string, roots []string) bool {
	return slices.ContainsFunc(roots, func(root string) bool {
		return path == root || strings.HasPrefix(path, root+"/")
	})
}
