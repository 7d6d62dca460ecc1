package readme_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source has the files of a package without its tests, and its string constants, including those in
// functions.
type source struct {
	path      string // within the repository
	files     []*ast.File
	constants map[string]string
}

// library parses the packages of the library, including internal ones.
func library(t *testing.T) []source {
	t.Helper()
	var all []source
	for _, top := range []string{"graceperiod", "lifecycle", "metrics", "shutdown", "validation"} {
		all = append(all, packagesBelow(t, top)...)
	}
	return all
}

// packagesBelow parses the package in a folder of the repository and those below it.
func packagesBelow(t *testing.T, folder string) []source {
	t.Helper()
	var all []source
	require.NoError(t, filepath.WalkDir(filepath.Join("../..", folder), func(path string, entry fs.DirEntry, err error) error {
		if err != nil || !entry.IsDir() {
			return err
		}
		if entry.Name() == "testdata" {
			return filepath.SkipDir
		}
		all = append(all, parsePackage(t, path))
		return nil
	}))
	return all
}

func parsePackage(t *testing.T, folder string) source {
	t.Helper()
	path, err := filepath.Rel("../..", folder)
	require.NoError(t, err)
	s := source{path: filepath.ToSlash(path), constants: map[string]string{}}
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	require.NoError(t, err)
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		require.NoError(t, err)
		s.files = append(s.files, file)
	}
	inspect(s, func(spec *ast.ValueSpec) {
		for i, name := range spec.Names {
			if i < len(spec.Values) {
				if value, ok := literal(spec.Values[i]); ok {
					s.constants[name.Name] = value
				}
			}
		}
	})
	return s
}

// inspect calls f for each node of one kind in a package.
func inspect[N ast.Node](s source, f func(N)) {
	for _, file := range s.files {
		ast.Inspect(file, func(node ast.Node) bool {
			if n, ok := node.(N); ok {
				f(n)
			}
			return true
		})
	}
}

// literal returns the value of a string literal.
func literal(expr ast.Expr) (string, bool) {
	basic, ok := expr.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(basic.Value)
	return value, err == nil
}

// value returns the value of a string literal or of a string constant of the package.
func (s source) value(expr ast.Expr) (string, bool) {
	if name, ok := expr.(*ast.Ident); ok {
		value, ok := s.constants[name.Name]
		return value, ok
	}
	return literal(expr)
}

// calledName returns the name of the function or method of a call, without package and receiver.
func calledName(call *ast.CallExpr) string {
	switch f := call.Fun.(type) {
	case *ast.Ident:
		return f.Name
	case *ast.SelectorExpr:
		return f.Sel.Name
	default:
		return ""
	}
}

// verbosity returns the level of a call of Info: that of V(1) or V(2), also if the variable of the
// logger is defined so in the same function; or 1 for the wrapper logV1.
func (s source) verbosity(call *ast.CallExpr) string {
	level := "0"
	findV := func(node ast.Node) bool {
		if inner, ok := node.(*ast.CallExpr); ok && calledName(inner) == "V" {
			level = inner.Args[0].(*ast.BasicLit).Value
		}
		return true
	}
	ast.Inspect(call.Fun, findV)
	inspect(s, func(function *ast.FuncDecl) {
		logger, isName := call.Fun.(*ast.SelectorExpr).X.(*ast.Ident)
		if !isName || call.Pos() < function.Pos() || function.End() < call.End() {
			return
		}
		ast.Inspect(function, func(node ast.Node) bool {
			assignment, ok := node.(*ast.AssignStmt)
			if !ok || assignment.Tok != token.DEFINE {
				return true
			}
			if name, ok := assignment.Lhs[0].(*ast.Ident); ok && name.Name == logger.Name {
				ast.Inspect(assignment.Rhs[0], findV)
			}
			return true
		})
	})
	inspect(s, func(outer *ast.CallExpr) {
		if wrapper := regexp.MustCompile(`^logV(\d)$`).FindStringSubmatch(calledName(outer)); wrapper != nil &&
			outer.Pos() <= call.Pos() && call.End() <= outer.End() {
			level = wrapper[1]
		}
	})
	return level
}
