package docprogram

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// Compile compiles the programs in the package documentation of the module at root, each as the main.go of
// its own folder. A program is a code block that begins with "package main". If a program does not compile,
// the test fails. Compile returns the folders of the packages with a program, relative to root.
func Compile(t testing.TB, root string) (packages []string) {
	t.Helper()
	root, err := filepath.Abs(root)
	if err != nil {
		t.Fatal(err)
	}
	programs, err := findPrograms(root)
	if err != nil {
		t.Fatal(err)
	}
	if err := goList(t, root, programs); err != nil {
		t.Error(err)
	}
	for name := range programs {
		packages = append(packages, name)
	}
	slices.Sort(packages)
	return packages
}

// goList compiles programs in the module at root without linking them ("go list -export"). It writes no file into
// the module: an overlay makes the go command see each program in a folder of its own.
func goList(t testing.TB, root string, programs map[string][]byte) error {
	t.Helper()
	dir := t.TempDir()
	overlay := map[string]string{}
	file := filepath.Join(dir, "overlay.json")
	args := []string{"list", "-export", "-overlay", file}
	for name, program := range programs {
		folder := "program-of-" + strings.NewReplacer("/", "-", ".", "module").Replace(name) // ".": the root has a program
		source := filepath.Join(dir, folder+".go")
		if err := os.WriteFile(source, program, 0o600); err != nil {
			return err
		}
		overlay[filepath.Join(root, folder, "main.go")] = source
		args = append(args, "./"+folder)
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	if err != nil {
		return err
	}
	if err := os.WriteFile(file, data, 0o600); err != nil {
		return err
	}
	list := exec.CommandContext(t.Context(), "go", args...)
	list.Dir = root
	if out, err := list.CombinedOutput(); err != nil {
		return fmt.Errorf("the programs in the package documentation do not compile: %w\n%s", err, out)
	}
	return nil
}

// findPrograms returns the programs in the package documentation of the module at root, by folder. It leaves out
// tests, and folders that do not belong to the module (isOutside).
func findPrograms(root string) (map[string][]byte, error) {
	programs := map[string][]byte{}
	err := filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
		switch {
		case err != nil:
			return err
		case entry.IsDir() && path != root && isOutside(path, entry.Name()):
			return fs.SkipDir
		case entry.IsDir() || !strings.HasSuffix(path, ".go") || strings.HasSuffix(path, "_test.go"):
			return nil
		}
		file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.PackageClauseOnly|parser.ParseComments)
		if err != nil {
			return err
		}
		if program := programIn(file.Doc.Text()); program != nil {
			name, err := filepath.Rel(root, filepath.Dir(path))
			programs[filepath.ToSlash(name)] = program
			return err
		}
		return nil
	})
	return programs, err
}

// isOutside reports whether a folder does not belong to the module: it has a go.mod of its own, its name begins with a
// dot, or it has test data.
func isOutside(path, name string) bool {
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil || strings.HasPrefix(name, ".") || name == "testdata"
}

// programIn returns the program in a package's documentation: the indented lines from "package main" on; nil: there
// is none.
func programIn(doc string) []byte {
	lines := strings.SplitAfter(doc, "\n")
	start := slices.Index(lines, "\tpackage main\n")
	if start < 0 {
		return nil
	}
	var program bytes.Buffer
	for _, line := range lines[start:] {
		code, indented := strings.CutPrefix(line, "\t")
		if !indented && line != "\n" {
			break
		}
		program.WriteString(code)
	}
	return program.Bytes()
}
