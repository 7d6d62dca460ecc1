package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"slices"
	"strings"
)

// checkComments looks, in the packages that others import, at the exported names that no
// linter looks at: the fields of structs, the methods of interfaces, the constants and
// variables of a group, and the functions of other systems than Linux. Each has a comment, or follows at once on one that has, so that a
// comment can be for a few of them. The comment of a type can be for its first fields or
// methods, but not where its name ends in Options or Config: the comment of a field is where a
// user learns what its zero value means.
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

// ofExported tells whether a declaration is that of a function, or of a method of an exported
// type.
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

// public tells whether a file is one of a package that others import.
func public(name string) bool {
	return !strings.HasPrefix(name, "examples/") && !strings.Contains("/"+name, "/internal/") && !strings.Contains(name, "/testdata/")
}

// memberList has what is declared one below the other: the fields of a type, or a group.
type memberList struct {
	of        string    // "Options." or ""
	commented token.Pos // on the line after it the first member needs no comment
	members   []member
}

type member struct {
	ast.Node
	names    []*ast.Ident
	comments []*ast.CommentGroup // above it and beside it; nil where there is none
}

// members gives the lists of a declaration.
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
	if declaration.Lparen.IsValid() { // a linter looks at what stands alone
		lists = append(lists, group)
	}
	return lists
}

// uncommented gives the members that lack a comment.
func (l memberList) uncommented(files *token.FileSet) []string {
	var problems []string
	commented := -1 // the last line that a comment is for
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
