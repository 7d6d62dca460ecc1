package main

import (
	"context"
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"slices"

	"golang.org/x/tools/go/packages"
)

// checker type-checks mutants, which is much faster than compiling them.
type checker struct {
	loaded *packages.Package
	root   string
}

// newChecker reads a package and the types of its imports.
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

// compiles reports whether a mutant is valid Go. For a mutation in a function it checks only the
// body of that function, because the mutation cannot make other code invalid.
func (c *checker) compiles(m mutation, text []byte) bool {
	file := filepath.Join(c.root, filepath.FromSlash(m.file))
	mutant, err := parser.ParseFile(c.loaded.Fset, file, m.apply(text), parser.SkipObjectResolution)
	if err != nil {
		return false
	}
	files := []*ast.File{mutant}
	for i, name := range c.loaded.CompiledGoFiles {
		if name != file {
			files = append(files, c.loaded.Syntax[i])
		}
	}
	from, to := mutant.Pos(), mutant.End()
	if m.function != "-" {
		at := c.loaded.Fset.File(mutant.FileStart).Pos(m.start)
		for i, f := range files {
			files[i] = withoutBodies(f, at)
		}
		for _, d := range mutant.Decls {
			if d.Pos() <= at && at < d.End() {
				from, to = d.Pos(), d.End()
			}
		}
	}
	valid := true
	config := types.Config{Importer: c, Sizes: c.loaded.TypesSizes, Error: func(err error) {
		var at types.Error
		if !errors.As(err, &at) || from <= at.Pos && at.Pos <= to {
			valid = false
		}
	}}
	_, err = config.Check(c.loaded.PkgPath, c.loaded.Fset, files, nil)
	return valid && (err == nil || m.function != "-")
}

// withoutBodies returns a copy of a file in which only the function at a position has a body.
func withoutBodies(f *ast.File, at token.Pos) *ast.File {
	stub := *f
	stub.Decls = slices.Clone(f.Decls)
	for i, d := range stub.Decls {
		if function, ok := d.(*ast.FuncDecl); ok && (at < d.Pos() || d.End() <= at) {
			bodyless := *function
			bodyless.Body = nil
			stub.Decls[i] = &bodyless
		}
	}
	return &stub
}
