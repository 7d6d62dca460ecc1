package main

import (
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// mutation is one change of one file.
type mutation struct {
	pkg        mutated
	file       string // from the root of the repository
	function   string // "Type.Method" or "function"; "-" outside of functions
	was, is    string // the line without and with the mutation, for people; a part of its name
	start, end int    // the offsets of the source that text replaces
	text       string
	at         token.Position // the position whose coverage counts
	line       int
}

// name returns a name that does not change when lines before the mutation do. Mutations in equal
// lines of one function have the same name.
func (m mutation) name() name {
	return name{file: m.file, function: m.function, was: m.was, is: m.is}
}

// name identifies a mutation in survivors.yaml.
type name struct{ file, function, was, is string }

// String returns the text that --match is matched with.
func (n name) String() string { return fmt.Sprintf("%s %s: %s -> %s", n.file, n.function, n.was, n.is) }

// sourceFile collects the mutations of a file.
type sourceFile struct {
	pkg      mutated
	file     string
	text     []byte
	position func(token.Pos) token.Position
	function string    // the function that is searched
	anchor   token.Pos // if valid, the position whose coverage counts: see cases
	found    []mutation
}

// mutations returns all mutations of files of a package, in the order of the source. The names of
// the files have no folder.
func mutations(root string, pkg mutated, files []string) ([]mutation, error) {
	var all []mutation
	for _, file := range files {
		text, err := os.ReadFile(filepath.Join(root, pkg.folder, file))
		if err != nil {
			return nil, err
		}
		found, err := mutationsOf(pkg, path.Join(pkg.folder, file), text)
		if err != nil {
			return nil, err
		}
		all = append(all, found...)
	}
	return all, nil
}

// mutationsOf returns the mutations of one file, in the order of the source.
func mutationsOf(pkg mutated, file string, text []byte) ([]mutation, error) {
	set := token.NewFileSet()
	tree, err := parser.ParseFile(set, file, text, parser.SkipObjectResolution)
	if err != nil {
		return nil, err
	}
	s := &sourceFile{pkg: pkg, file: file, text: text, position: set.Position}
	for _, declaration := range tree.Decls {
		s.function = "-"
		if f, ok := declaration.(*ast.FuncDecl); ok {
			s.function = functionName(f)
			if isLogName(f.Name.Name) {
				continue
			}
		}
		s.walk(declaration, nil)
	}
	slices.SortStableFunc(s.found, func(a, b mutation) int { return a.start - b.start })
	return s.found, nil
}

// functionName returns the name of a function, or "Type.Method".
func functionName(f *ast.FuncDecl) string {
	if f.Recv == nil {
		return f.Name.Name
	}
	receiver := f.Recv.List[0].Type
	if star, ok := receiver.(*ast.StarExpr); ok {
		receiver = star.X
	}
	if generic, ok := receiver.(*ast.IndexExpr); ok {
		receiver = generic.X
	}
	if id, ok := receiver.(*ast.Ident); ok {
		return id.Name + "." + f.Name.Name
	}
	return f.Name.Name
}

// source returns the text of a node.
func (s *sourceFile) source(n ast.Node) string {
	return string(s.text[s.position(n.Pos()).Offset:s.position(n.End()).Offset])
}

// replace adds the mutation that replaces the source from from to end by text. In the line for
// people shown stands for text.
func (s *sourceFile) replace(from, end token.Pos, text, shown string) {
	at := from
	if s.anchor.IsValid() {
		at = s.anchor
	}
	start, stop := s.position(from).Offset, s.position(end).Offset
	lineStart := strings.LastIndexByte(string(s.text[:start]), '\n') + 1
	lineEnd := len(s.text)
	if i := strings.IndexByte(string(s.text[stop:]), '\n'); i >= 0 {
		lineEnd = stop + i
	}
	before, after := string(s.text[lineStart:start]), string(s.text[stop:lineEnd])
	s.found = append(s.found, mutation{
		pkg: s.pkg, file: s.file, function: s.function,
		was: oneLine(before + string(s.text[start:stop]) + after), is: oneLine(before + shown + after),
		start: start, end: stop, text: text,
		at: s.position(at), line: s.position(from).Line,
	})
}

// apply returns the text of a file with the mutation.
func (m mutation) apply(text []byte) []byte {
	return slices.Concat(text[:m.start], []byte(m.text), text[m.end:])
}

// oneLine returns source as one line without comments, which is cut off after 160 characters.
func oneLine(source string) string {
	const most = 160
	var parts []string
	for line := range strings.Lines(source) {
		if i := strings.Index(line, "// "); i >= 0 {
			line = line[:i]
		}
		parts = append(parts, strings.Fields(line)...)
	}
	line := strings.Join(parts, " ")
	if line == "" {
		return "(nothing)"
	}
	if runes := []rune(line); len(runes) > most {
		return string(runes[:most]) + "..."
	}
	return line
}
