package main

import (
	"fmt"
	"go/ast"
	"regexp"
	"strings"
)

// checkCommentNames finds comments of functions that begin with the name of something else, as
// they do after the function was renamed. Linters look at exported functions only.
func checkCommentNames(repo repository) ([]string, error) {
	// A word in small letters or with a capital letter inside is the name of something.
	name := regexp.MustCompile(`^([a-z]\w*|[A-Z]\w*[a-z]\w*[A-Z]\w*)\s`)
	var problems []string
	for _, path := range repo.match("", "*.go") {
		if strings.HasSuffix(path, "_test.go") || strings.Contains("/"+path, "/testdata/") {
			continue
		}
		files, file, err := parse(repo, path)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			function, isFunction := declaration.(*ast.FuncDecl)
			if !isFunction {
				continue
			}
			begins := name.FindStringSubmatch(function.Doc.Text())
			if begins != nil && begins[1] != function.Name.Name {
				problems = append(problems, fmt.Sprintf("%s:%d: the comment of %s begins with %s", path, files.Position(function.Pos()).Line, function.Name, begins[1]))
			}
		}
	}
	return problems, nil
}
