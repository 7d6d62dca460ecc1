package main

import (
	"fmt"
	"go/ast"
	"go/doc"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"path"
	"regexp"
	"slices"
	"strings"
)

// documented is a package of this repository, as go/doc sees it.
type documented struct {
	*doc.Package
	files map[string]*ast.File
}

// checkDocLinks checks that each name in square brackets in the comment of a declaration is declared. Otherwise it
// is no link: pkg.go.dev shows it with its brackets, and a tool that renames does not find it. Names of packages
// of other repositories are not checked.
func checkDocLinks(repo repository) (checked int, problems []string, err error) {
	set := token.NewFileSet()
	packages, err := documentedPackages(repo, set)
	if err != nil {
		return 0, nil, err
	}
	for _, pkg := range packages {
		for name, file := range pkg.files {
			for _, group := range docComments(file) {
				checked++
				for _, link := range deadLinks(packages, pkg, group.Text()) {
					problems = append(problems, fmt.Sprintf("%s:%d: the comment's %s leads nowhere", name, set.Position(group.Pos()).Line, link))
				}
			}
		}
	}
	slices.Sort(problems) // the packages are a map, which has no order
	return checked, problems, nil
}

// documentedPackages reads the packages of all modules. It returns them by import path.
func documentedPackages(repo repository, set *token.FileSet) (map[string]documented, error) {
	byFolder := map[string]map[string]*ast.File{}
	for _, name := range repo.source() {
		folder := path.Dir(name)
		file, err := parser.ParseFile(set, repo.path(name), nil, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		if byFolder[folder] == nil {
			byFolder[folder] = map[string]*ast.File{}
		}
		byFolder[folder][name] = file
	}
	packages := map[string]documented{}
	for folder, files := range byFolder {
		importPath := path.Join("github.com/kubegrace/kubegrace", folder)
		var list []*ast.File
		for _, file := range files {
			list = append(list, file)
		}
		pkg, err := doc.NewFromFiles(set, list, importPath, doc.AllDecls|doc.PreserveAST)
		if err != nil {
			return nil, err
		}
		packages[importPath] = documented{pkg, files}
	}
	return packages, nil
}

// docComments returns the comments of the package clause and of the declarations of a file, with
// those of fields and of methods of interfaces.
func docComments(file *ast.File) []*ast.CommentGroup {
	var groups []*ast.CommentGroup
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.File:
			groups = append(groups, node.Doc)
		case *ast.GenDecl:
			groups = append(groups, node.Doc)
		case *ast.FuncDecl:
			groups = append(groups, node.Doc)
			return false
		case *ast.TypeSpec:
			groups = append(groups, node.Doc)
		case *ast.ValueSpec:
			groups = append(groups, node.Doc)
		case *ast.Field:
			groups = append(groups, node.Doc)
		}
		return true
	})
	return slices.DeleteFunc(groups, func(group *ast.CommentGroup) bool { return group == nil })
}

// deadLinks returns the links of a comment to names that are not declared, with their brackets. The parser makes a
// link only of a name that it knows, and leaves any other name in brackets as plain text, which is searched here. A
// name of another package of this repository is a link in any case, and is looked up here.
func deadLinks(packages map[string]documented, pkg documented, text string) []string {
	var dead []string
	visit := func(piece comment.Text) {
		switch piece := piece.(type) {
		case comment.Plain:
			dead = append(dead, undeclared(pkg, string(piece))...)
		case *comment.DocLink:
			to, ours := packages[piece.ImportPath]
			if ours && piece.Name != "" && !to.Parser().LookupSym(piece.Recv, piece.Name) {
				dead = append(dead, "["+strings.TrimSuffix(piece.ImportPath+"."+piece.Recv, ".")+"."+piece.Name+"]")
			}
		}
	}
	for _, block := range pkg.Parser().Parse(text).Content {
		visitText(block, visit)
	}
	return dead
}

// undeclared returns the names in square brackets in a text that the package does not declare, with their brackets. No page
// links to an unexported name, but it counts as declared.
func undeclared(pkg documented, text string) (names []string) {
	for _, match := range regexp.MustCompile(`\B\[\*?([A-Za-z]\w+(?:[./]\w+)*)\]`).FindAllStringSubmatch(text, -1) {
		inBrackets, name := match[0], match[1]
		recv, symbol, isMember := strings.Cut(name, ".")
		if !isMember {
			recv, symbol = "", name
		}
		if !pkg.Parser().LookupSym(recv, symbol) {
			names = append(names, inBrackets)
		}
	}
	return names
}

// visitText calls visit for each piece of text in a block of a comment, but not for code.
func visitText(block comment.Block, visit func(comment.Text)) {
	var pieces []comment.Text
	switch block := block.(type) {
	case *comment.Heading:
		pieces = block.Text
	case *comment.Paragraph:
		pieces = block.Text
	case *comment.List:
		for _, item := range block.Items {
			for _, inner := range item.Content {
				visitText(inner, visit)
			}
		}
	}
	for _, piece := range pieces {
		visit(piece)
	}
}
