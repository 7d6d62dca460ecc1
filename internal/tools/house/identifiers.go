package main

import (
	"fmt"
	"go/ast"
	"slices"
	"strings"
	"unicode"
)

// ambiguousWords are names that have meant something else in each place where they stood. A
// parameter or a local variable may have them, as its reader has its declaration in view.
func ambiguousWords() []string {
	return []string{"enter", "guest", "note", "own", "rest", "room", "said", "settle", "share"}
}

// checkIdentifiers looks at the names of functions, methods, types, fields, and of constants
// and variables of packages. None is one of the ambiguous words, and none ends in an empty
// word, as fooImpl does. The names in internal/fork are the kubelet's, and tests are left out.
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

// declared gives the names that a file declares, other than those of parameters and of local
// variables.
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

// lastWord gives the last word of a name in mixed caps, in lower case.
func lastWord(identifier string) string {
	start := strings.LastIndexFunc(identifier, unicode.IsUpper)
	return strings.ToLower(identifier[max(start, 0):])
}
