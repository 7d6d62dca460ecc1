package main

import (
	"context"
	"go/ast"
	"go/parser"
	"go/token"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubegrace/kubegrace/internal/tools/gitfiles"
)

// checkPackages checks that each package that others import has a doc.go with its documentation, and
// an Example, which pkg.go.dev shows with it.
func (r repository) checkPackages(ctx context.Context, _ string) ([]string, error) {
	names, err := gitfiles.List(ctx, r.root, "*.go")
	if err != nil {
		return nil, err
	}
	files := map[string][]string{} // by folder
	for _, name := range names {
		top, _, _ := strings.Cut(name, "/")
		if top == "examples" || strings.Contains("/"+name, "/internal/") || strings.Contains(name, "testdata/") {
			continue
		}
		files[path.Dir(name)] = append(files[path.Dir(name)], name)
	}
	var problems []string
	for folder, names := range files {
		documented, hasExample := false, false
		for _, name := range names {
			isDoc, isTest := path.Base(name) == "doc.go", strings.HasSuffix(name, "_test.go")
			if !isDoc && !isTest {
				continue
			}
			source, err := parser.ParseFile(token.NewFileSet(), filepath.Join(r.root, filepath.FromSlash(name)), nil, parser.ParseComments|parser.SkipObjectResolution)
			if err != nil {
				return nil, err
			}
			documented = documented || isDoc && source.Doc != nil
			hasExample = hasExample || isTest && slices.ContainsFunc(source.Decls, isExample)
		}
		if !documented {
			problems = append(problems, folder+": has no doc.go with the package's documentation")
		}
		if !hasExample {
			problems = append(problems, folder+": has no Example")
		}
	}
	slices.Sort(problems)
	return problems, nil
}

func isExample(declaration ast.Decl) bool {
	function, isFunction := declaration.(*ast.FuncDecl)
	return isFunction && function.Recv == nil && strings.HasPrefix(function.Name.Name, "Example")
}
