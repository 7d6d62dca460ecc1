package docprogram_test

import (
	"go/ast"
	"go/doc/comment"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// mostWords is how long the documentation of a package may be, besides its program.
const mostWords = 400

// The documentation of a package is a program and a page of text. What only some readers need belongs into the
// comments of the exported names, or into a README.md beside the package.
func TestDocumentationOfAPackageIsShort(t *testing.T) {
	root := filepath.Join("..", "..")
	count := 0
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if entry.IsDir() && path != root && (strings.HasPrefix(entry.Name(), ".") || entry.Name() == "testdata") {
			return filepath.SkipDir
		}
		if entry.Name() != "doc.go" {
			return nil
		}
		source, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, source, parser.ParseComments|parser.PackageClauseOnly)
		if err != nil {
			return err
		}
		count++
		if n := wordsOf(file); n > mostWords {
			t.Errorf("%s has %d words, more than %d", path, n, mostWords)
		}
		return nil
	}))
	require.Greater(t, count, 20, "the walk finds the doc.go files")
}

// wordsOf returns the number of words of a package's documentation. Programs do not count, tables do.
func wordsOf(file *ast.File) int {
	var parser comment.Parser
	var printer comment.Printer
	doc := parser.Parse(file.Doc.Text())
	var text []comment.Block
	for _, block := range doc.Content {
		if code, is := block.(*comment.Code); is && strings.HasPrefix(code.Text, "package main") {
			continue
		}
		text = append(text, block)
	}
	doc.Content = text
	return len(strings.Fields(string(printer.Text(doc))))
}
