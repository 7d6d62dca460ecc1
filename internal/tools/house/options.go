package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// checkOptions looks at the fields of exported types whose name ends in Options or Config, in
// the packages that others import: each has a comment, or follows at once on one that has, so
// that a comment can be for a few fields. No linter looks at fields. The comment is where a
// user learns what the zero value means.
func checkOptions(repo repository) ([]string, error) {
	var problems []string
	files := token.NewFileSet()
	for _, name := range repo.match("", "*.go") {
		if strings.HasSuffix(name, "_test.go") || !public(name) {
			continue
		}
		content, err := repo.read(name)
		if err != nil {
			return nil, err
		}
		file, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			general, isGeneral := declaration.(*ast.GenDecl)
			if !isGeneral {
				continue
			}
			for _, spec := range general.Specs {
				if named, isType := spec.(*ast.TypeSpec); isType {
					problems = append(problems, uncommented(files, named)...)
				}
			}
		}
	}
	return problems, nil
}

// public tells whether a file is one of a package that others import.
func public(name string) bool {
	return !strings.HasPrefix(name, "examples/") && !strings.Contains("/"+name, "/internal/") && !strings.Contains(name, "/testdata/")
}

// uncommented gives the fields of an options type that lack a comment.
func uncommented(files *token.FileSet, named *ast.TypeSpec) []string {
	structure, isStruct := named.Type.(*ast.StructType)
	if !isStruct || !named.Name.IsExported() || !strings.HasSuffix(named.Name.Name, "Options") && !strings.HasSuffix(named.Name.Name, "Config") {
		return nil
	}
	var problems []string
	commented := -1 // the last line of a field that has a comment
	for _, field := range structure.Fields.List {
		from, to := files.Position(field.Pos()), files.Position(field.End()).Line
		if field.Doc != nil || field.Comment != nil || from.Line == commented+1 {
			commented = to
			continue
		}
		for _, name := range field.Names {
			if name.IsExported() {
				problems = append(problems, fmt.Sprintf("%s:%d: %s.%s has no comment", from.Filename, from.Line, named.Name, name))
			}
		}
	}
	return problems
}
