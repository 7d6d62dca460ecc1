package readme_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"io/fs"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// source has the files of a package, without its tests, and all its string constants.
type source struct {
	path      string // relative to the repository
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

// packagesBelow parses the packages in and below a folder of the repository.
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

// parsePackage parses the files of a package, without its tests, and collects its string constants.
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

// inspect calls f for each node of type N in a package.
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

// literal returns the value of a string literal. ok is false for another expression.
func literal(expr ast.Expr) (value string, ok bool) {
	basic, ok := expr.(*ast.BasicLit)
	if !ok || basic.Kind != token.STRING {
		return "", false
	}
	value, err := strconv.Unquote(basic.Value)
	return value, err == nil
}

// value returns the value of a string literal or of a string constant of the package. ok is false for another
// expression.
func (s source) value(expr ast.Expr) (value string, ok bool) {
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
