package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"unicode"
)

// ambiguousWords returns names that can mean many things. A parameter or a local variable may have
// such a name, because its declaration is near.
func ambiguousWords() []string {
	return []string{"enter", "guest", "note", "own", "rest", "room", "said", "settle", "share"}
}

// checkIdentifiers checks the names of functions, methods, types, fields, and of constants and
// variables of packages. None may be an ambiguous word, and none may end in an empty word, as fooImpl
// does. It leaves out tests, and internal/fork, whose names are those of the kubelet.
func checkIdentifiers(repo repository) ([]string, error) {
	var problems []string
	for _, name := range repo.match("", "*.go") {
		if strings.HasSuffix(name, "_test.go") || strings.Contains(name, "testdata/") || strings.HasPrefix(name, "internal/fork/") {
			continue
		}
		files, file, err := parse(repo, name)
		if err != nil {
			return nil, err
		}
		for _, identifier := range declared(file) {
			word := lastWord(identifier.Name)
			if slices.Contains(emptyWords(), word) || word == strings.ToLower(identifier.Name) && slices.Contains(ambiguousWords(), word) {
				problems = append(problems, fmt.Sprintf("%s:%d: %q says nothing of what %s is", name, files.Position(identifier.Pos()).Line, word, identifier))
			}
		}
	}
	return problems, nil
}

// declared returns the names that a file declares, without those of parameters and local variables.
func declared(file *ast.File) []*ast.Ident {
	var names []*ast.Ident
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			names = append(names, node.Name)
			return false
		case *ast.TypeSpec:
			names = append(names, node.Name)
		case *ast.StructType:
			for _, field := range node.Fields.List {
				names = append(names, field.Names...)
			}
		case *ast.InterfaceType:
			for _, method := range node.Methods.List {
				names = append(names, method.Names...)
			}
		case *ast.ValueSpec:
			names = append(names, node.Names...)
		}
		return true
	})
	return names
}

// lastWord returns the last word of a name in mixed caps, in lower case.
func lastWord(identifier string) string {
	start := strings.LastIndexFunc(identifier, unicode.IsUpper)
	return strings.ToLower(identifier[max(start, 0):])
}
