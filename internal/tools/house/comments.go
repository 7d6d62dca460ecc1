package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// checkComments checks the exported names that no linter checks, in the packages that others import:
// fields of structs, methods of interfaces, constants and variables of a group, and functions for
// other systems than Linux. Each must have a comment, or be on the line after one that has, because
// one comment may be about several names. The comment of a type counts for the first lines of its
// fields or methods, but not for types whose names end in Options or Config: the comment of an option
// has to say what its zero value means.
func checkComments(repo repository) ([]string, error) {
	var problems []string
	for _, name := range repo.match("", "*.go") {
		if strings.HasSuffix(name, "_test.go") || !public(name) {
			continue
		}
		files, file, err := parse(repo, name)
		if err != nil {
			return nil, err
		}
		for _, declaration := range file.Decls {
			switch declaration := declaration.(type) {
			case *ast.FuncDecl:
				if declaration.Doc == nil && declaration.Name.IsExported() && ofExported(declaration) {
					problems = append(problems, fmt.Sprintf("%s:%d: %s has no comment", name, files.Position(declaration.Pos()).Line, declaration.Name))
				}
			case *ast.GenDecl:
				for _, list := range members(declaration) {
					problems = append(problems, list.uncommented(files)...)
				}
			}
		}
	}
	return problems, nil
}

// ofExported reports whether a declaration is a function, or a method of an exported type.
func ofExported(declaration *ast.FuncDecl) bool {
	if declaration.Recv == nil {
		return true
	}
	receiver := declaration.Recv.List[0].Type
	if pointer, isPointer := receiver.(*ast.StarExpr); isPointer {
		receiver = pointer.X
	}
	name, isName := receiver.(*ast.Ident)
	return isName && name.IsExported()
}

// parse reads a Go file with its comments.
func parse(repo repository, name string) (*token.FileSet, *ast.File, error) {
	content, err := repo.read(name)
	if err != nil {
		return nil, nil, err
	}
	files := token.NewFileSet()
	file, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
	return files, file, err
}

// public reports whether a file is in a package that others import.
func public(name string) bool {
	return !strings.HasPrefix(name, "examples/") && !strings.Contains("/"+name, "/internal/") && !strings.Contains(name, "/testdata/")
}

// memberList has the fields or methods of a type, or the constants or variables of a group.
type memberList struct {
	of        string    // "Options." or ""
	commented token.Pos // a member on the line after it needs no comment
	members   []member
}

type member struct {
	ast.Node
	names    []*ast.Ident
	comments []*ast.CommentGroup // the one above and the one after it; nil if there is none
}

// members returns the lists of a declaration.
func members(declaration *ast.GenDecl) []memberList {
	var group memberList
	var lists []memberList
	for _, spec := range declaration.Specs {
		switch spec := spec.(type) {
		case *ast.ValueSpec:
			group.members = append(group.members, member{spec, spec.Names, []*ast.CommentGroup{spec.Doc, spec.Comment}})
		case *ast.TypeSpec:
			if !spec.Name.IsExported() {
				continue
			}
			var fields *ast.FieldList
			switch kind := spec.Type.(type) {
			case *ast.StructType:
				fields = kind.Fields
			case *ast.InterfaceType:
				fields = kind.Methods
			default:
				continue
			}
			list := memberList{of: spec.Name.Name + "."}
			if !strings.HasSuffix(spec.Name.Name, "Options") && !strings.HasSuffix(spec.Name.Name, "Config") {
				list.commented = fields.Opening
			}
			for _, field := range fields.List {
				list.members = append(list.members, member{field, field.Names, []*ast.CommentGroup{field.Doc, field.Comment}})
			}
			lists = append(lists, list)
		}
	}
	if declaration.Lparen.IsValid() { // a linter checks single constants and variables
		lists = append(lists, group)
	}
	return lists
}

// uncommented returns a problem for each member that lacks a comment.
func (l memberList) uncommented(files *token.FileSet) []string {
	var problems []string
	commented := -1 // the last line that has a comment
	if l.commented.IsValid() {
		commented = files.Position(l.commented).Line
	}
	for _, member := range l.members {
		from, to := files.Position(member.Pos()), files.Position(member.End()).Line
		if from.Line <= commented+1 || slices.ContainsFunc(member.comments, func(c *ast.CommentGroup) bool { return c != nil }) {
			commented = to
			continue
		}
		for _, name := range member.names {
			if name.IsExported() {
				problems = append(problems, fmt.Sprintf("%s:%d: %s%s has no comment", from.Filename, from.Line, l.of, name))
			}
		}
	}
	return problems
}
