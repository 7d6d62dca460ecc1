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
// fields of structs, methods of interfaces, and constants and variables of a group. Each must have a comment.
// One comment may be about several names, so a name on the line after one with a comment needs none. The
// comment of a type counts for the fields that follow it directly. It does not count if the name of the type
// ends in Options or Config: the comment of an option has to say what its zero value means.
func checkComments(repo repository) (checked int, problems []string, err error) {
	for _, name := range repo.source() {
		if strings.HasPrefix(name, "examples/") || strings.Contains("/"+name, "/internal/") {
			continue
		}
		content, err := repo.read(name)
		if err != nil {
			return checked, problems, err
		}
		files := token.NewFileSet()
		file, err := parser.ParseFile(files, name, content, parser.ParseComments|parser.SkipObjectResolution)
		if err != nil {
			return checked, problems, err
		}
		for _, list := range memberLists(file) {
			checked += len(list.members)
			problems = append(problems, list.uncommented(files)...)
		}
	}
	return checked, problems, nil
}

// memberList has the fields or methods of a type, or the constants or variables of a group.
type memberList struct {
	prefix         string    // of the members' names in a problem: "Options." or ""
	commentedUntil token.Pos // a member on the line after it needs no comment
	members        []member
}

// member is a field, a method, or a line of a group.
type member struct {
	ast.Node

	names    []*ast.Ident
	comments []*ast.CommentGroup // the one above and the one after it; nil if there is none
}

// memberLists returns a list for each exported struct or interface of a file, with its fields or methods, and for
// each group of constants or variables in parentheses. The first members of a type, up to a blank line, need no comments
// of their own, because the comment of the type is about them too; unless its name ends in Options or Config.
func memberLists(file *ast.File) []memberList {
	var lists []memberList
	ast.Inspect(file, func(node ast.Node) bool {
		switch node := node.(type) {
		case *ast.FuncDecl:
			return false
		case *ast.GenDecl:
			var group memberList
			for _, spec := range node.Specs {
				if values, isValues := spec.(*ast.ValueSpec); isValues && node.Lparen.IsValid() {
					group.members = append(group.members, member{values, values.Names, []*ast.CommentGroup{values.Doc, values.Comment}})
				}
			}
			lists = append(lists, group)
		case *ast.TypeSpec:
			if node.Name.IsExported() {
				lists = append(lists, membersOf(node))
			}
		}
		return true
	})
	return lists
}

// membersOf returns the fields of a struct or the methods of an interface.
func membersOf(declared *ast.TypeSpec) memberList {
	name, fields := declared.Name.Name, &ast.FieldList{}
	switch kind := declared.Type.(type) {
	case *ast.StructType:
		fields = kind.Fields
	case *ast.InterfaceType:
		fields = kind.Methods
	}
	list := memberList{prefix: name + "."}
	if !strings.HasSuffix(name, "Options") && !strings.HasSuffix(name, "Config") {
		list.commentedUntil = fields.Opening
	}
	for _, field := range fields.List {
		list.members = append(list.members, member{field, field.Names, []*ast.CommentGroup{field.Doc, field.Comment}})
	}
	return list
}

// uncommented returns a problem for each exported name of the list that lacks a comment. A member on the line after
// one with a comment counts as commented, as long as no blank line comes between.
func (l memberList) uncommented(files *token.FileSet) []string {
	var problems []string
	commented := -1 // the last line that has a comment
	if l.commentedUntil.IsValid() {
		commented = files.Position(l.commentedUntil).Line
	}
	for _, member := range l.members {
		from, to := files.Position(member.Pos()), files.Position(member.End()).Line
		isNext := from.Line <= commented+1
		if isNext || slices.ContainsFunc(member.comments, func(c *ast.CommentGroup) bool { return c != nil }) {
			commented = to
			continue
		}
		for _, name := range member.names {
			if name.IsExported() {
				problems = append(problems, fmt.Sprintf("%s:%d: %s%s has no comment", from.Filename, from.Line, l.prefix, name))
			}
		}
	}
	return problems
}
