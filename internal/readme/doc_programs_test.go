package readme_test

import (
	"bytes"
	"encoding/json"
	"go/parser"
	"go/token"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestDocProgramsCompile compiles the programs in the documentation of this module's
// packages, each as if it were the main.go of a folder in this module. "go list -export"
// compiles them without linking.
func TestDocProgramsCompile(t *testing.T) {
	programs := docPrograms(t)
	for _, name := range []string{
		"graceperiod", "metrics", "lifecycle", "lifecycle/stopsignal", "shutdown", "shutdown/plan", "validation", "validation/featuregates",
	} {
		require.NotNil(t, programs[name], "the documentation of %s has a program", name)
	}
	dir := t.TempDir()
	overlay := map[string]string{}
	args := []string{"list", "-export", "-overlay", filepath.Join(dir, "overlay.json")}
	for name, program := range programs {
		folder := "program-" + strings.ReplaceAll(name, "/", "-")
		source := filepath.Join(dir, folder+".go")
		require.NoError(t, os.WriteFile(source, program, 0o600))
		path, err := filepath.Abs(filepath.Join(folder, "main.go"))
		require.NoError(t, err)
		overlay[path] = source
		args = append(args, "./"+folder)
	}
	data, err := json.Marshal(map[string]any{"Replace": overlay})
	require.NoError(t, err)
	require.NoError(t, os.WriteFile(filepath.Join(dir, "overlay.json"), data, 0o600))
	out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// docPrograms returns the programs in the documentation of this module's packages, by the
// folder of the package.
func docPrograms(t *testing.T) map[string][]byte {
	t.Helper()
	const root = "../.."
	programs := map[string][]byte{}
	require.NoError(t, filepath.WalkDir(root, func(path string, entry fs.DirEntry, err error) error {
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
	}))
	return programs
}

// isOutside tells whether a folder is not a part of this module.
func isOutside(path, name string) bool {
	_, err := os.Stat(filepath.Join(path, "go.mod"))
	return err == nil || strings.HasPrefix(name, ".") || name == "testdata"
}

// programIn returns the code block of a package's documentation that begins with "package
// main", nil if there is none.
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
