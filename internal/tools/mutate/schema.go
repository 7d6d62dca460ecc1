package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"strings"
)

// selectorName is the name of a function that is added to the mutated package. It reports whether
// this process runs the mutant with a number. The numbers begin with 1; the environment variable of
// the same name chooses one.
const selectorName = "kubegraceMutant"

// selectorFile returns the source file with that function.
func selectorFile(packageName string) string {
	return `package ` + packageName + `

import (
	"os"
	"strconv"
)

var kubegraceMutantChosen, _ = strconv.Atoi(os.Getenv("` + selectorName + `"))

func ` + selectorName + `(n int) bool { return n == kubegraceMutantChosen }
`
}

// schema writes many mutants of a file into one text, so that they are compiled once (mutant
// schemata). A statement with mutants becomes
//
//	if kubegraceMutant(1) { mutated } else if kubegraceMutant(2) { mutated } else { original }
//
// If the statement declares variables, each branch also contains the statements that follow it in
// the block.
type schema struct {
	text     []byte
	position func(token.Pos) token.Position
	lists    []list
	numbers  map[int][]numbered // by the offset of the statement that contains the mutations, see host
}

// list has the statements of a block or of a case.
type list []ast.Stmt

// numbered is a mutation and its number.
type numbered struct {
	mutation mutation
	number   int
}

// instrument returns the text with all mutants that can share a binary, and the other mutants: those
// outside of functions, and those in statements that contain a label or a fallthrough.
func instrument(file string, text []byte, mutants []numbered) (schemaText string, alone []numbered, err error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return "", nil, err
	}
	s := &schema{text: text, position: set.Position, numbers: map[int][]numbered{}}
	ast.Inspect(tree, func(n ast.Node) bool {
		s.lists = append(s.lists, listsOf(n)...)
		return true
	})
	for _, m := range mutants {
		if host, ok := s.host(m.mutation); ok {
			s.numbers[host] = append(s.numbers[host], m)
		} else {
			alone = append(alone, m)
		}
	}
	return s.render(tree, 0, len(text)), alone, nil
}

// listsOf returns the lists of statements that are directly in a node: one or none.
func listsOf(n ast.Node) []list {
	switch n := n.(type) {
	case *ast.BlockStmt:
		if len(n.List) == 0 {
			return nil
		}
		switch n.List[0].(type) {
		case *ast.CaseClause, *ast.CommClause:
			return nil
		}
		return []list{n.List}
	case *ast.CaseClause:
		return []list{n.Body}
	case *ast.CommClause:
		return []list{n.Body}
	default:
		return nil
	}
}

func (s *schema) offsets(n ast.Node) (start, end int) {
	return s.position(n.Pos()).Offset, s.position(n.End()).Offset
}

// host returns the offset of the innermost statement of a list that contains a mutation. It returns
// false if there is none, or if the statement cannot be copied.
func (s *schema) host(m mutation) (offset int, ok bool) {
	smallest := len(s.text) + 1
	for _, l := range s.lists {
		for i, statement := range l {
			start, end := s.offsets(statement)
			if m.start < start || end < m.end || end-start >= smallest {
				continue
			}
			smallest, offset = end-start, start
			ok = true
			copied := l[i : i+1]
			if declares(statement) {
				copied = l[i:]
			}
			for _, c := range copied {
				ok = ok && !hasLabel(c)
			}
		}
	}
	return offset, ok
}

// declares reports whether a statement declares names that the statements after it may use.
func declares(statement ast.Stmt) bool {
	switch statement := statement.(type) {
	case *ast.DeclStmt:
		return true
	case *ast.AssignStmt:
		return statement.Tok == token.DEFINE
	default:
		return false
	}
}

// hasLabel reports whether a statement contains a label, which cannot be copied, or a fallthrough,
// which cannot be in an if.
func hasLabel(statement ast.Stmt) bool {
	found := false
	ast.Inspect(statement, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.LabeledStmt:
			found = true
		case *ast.BranchStmt:
			found = found || n.Tok == token.FALLTHROUGH
		}
		return !found
	})
	return found
}

// render returns the text of a node from one offset to another, with instrumented lists.
func (s *schema) render(n ast.Node, from, to int) string {
	var out strings.Builder
	ast.Inspect(n, func(inner ast.Node) bool {
		if inner == nil {
			return false
		}
		lists := listsOf(inner)
		if len(lists) == 0 || len(lists[0]) == 0 {
			return true
		}
		l := lists[0]
		// The communication of a case may contain a function with statements.
		if clause, ok := inner.(*ast.CommClause); ok && clause.Comm != nil {
			start, end := s.offsets(clause.Comm)
			out.Write(s.text[from:start])
			out.WriteString(s.render(clause.Comm, start, end))
			from = end
		}
		start, _ := s.offsets(l[0])
		_, end := s.offsets(l[len(l)-1])
		out.Write(s.text[from:start])
		out.WriteString(s.renderList(l))
		from = end
		return false
	})
	out.Write(s.text[from:to])
	return out.String()
}

// renderList returns the instrumented text of a list.
func (s *schema) renderList(l list) string {
	if len(l) == 0 {
		return ""
	}
	start, end := s.offsets(l[0])
	original := s.render(l[0], start, end)
	mutants := s.numbers[start]
	if len(mutants) == 0 {
		return original + "\n" + s.renderList(l[1:])
	}
	following := s.renderList(l[1:])
	if declares(l[0]) {
		_, end = s.offsets(l[len(l)-1])
		original, following = original+"\n"+following, ""
	}
	var out strings.Builder
	for _, m := range mutants {
		fmt.Fprintf(&out, "if %s(%d) {\n%s%s%s\n} else ", selectorName, m.number, s.text[start:m.mutation.start], m.mutation.text, s.text[m.mutation.end:end])
	}
	return out.String() + "{\n" + original + "\n}\n" + following
}
