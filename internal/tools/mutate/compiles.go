package main

import (
	"context"
	"fmt"
	"go/ast"
	"go/parser"
	"go/types"
	"os"
	"path/filepath"

	"golang.org/x/tools/go/packages"
)

// checker tells which mutants are valid Go, without compiling them.
type checker struct {
	loaded *packages.Package
	root   string
}

// newChecker reads a package, and the types of what it imports.
func (r *run) newChecker(ctx context.Context, pkg mutated) (*checker, error) {
	mode := packages.NeedName | packages.NeedFiles | packages.NeedCompiledGoFiles | packages.NeedSyntax |
		packages.NeedTypes | packages.NeedTypesSizes | packages.NeedImports | packages.NeedExportFile
	loaded, err := packages.Load(&packages.Config{Context: ctx, Mode: mode, Dir: r.o.root, Env: append(os.Environ(), "GOWORK=off")}, "./"+pkg.folder)
	if err != nil {
		return nil, err
	}
	if len(loaded) != 1 || len(loaded[0].Errors) > 0 {
		return nil, fmt.Errorf("failed to read the package: %v", loaded)
	}
	return &checker{loaded: loaded[0], root: r.o.root}, nil
}

// Import implements types.Importer.
func (c *checker) Import(path string) (*types.Package, error) {
	for _, p := range c.loaded.Types.Imports() {
		if p.Path() == path {
			return p, nil
		}
	}
	return nil, fmt.Errorf("%s is not imported", path)
}

// compiles is whether a mutant is valid Go.
func (c *checker) compiles(m mutation, text []byte) bool {
	file := filepath.Join(c.root, filepath.FromSlash(m.file))
	mutant, err := parser.ParseFile(c.loaded.Fset, file, m.apply(text), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	var files []*ast.File
	for i, name := range c.loaded.CompiledGoFiles {
		if name == file {
			files = append(files, mutant)
		} else {
			files = append(files, c.loaded.Syntax[i])
		}
	}
	config := types.Config{Importer: c, Sizes: c.loaded.TypesSizes}
	_, err = config.Check(c.loaded.PkgPath, c.loaded.Fset, files, nil)
	return err == nil
}
