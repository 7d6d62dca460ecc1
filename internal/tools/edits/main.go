// Command edits breaks the library on purpose, one edit at a time, and prints which tests notice. It runs the
// short tests of the edited package, those of each package that imports it, and then the long ones of the
// edited package, until one fails. An edit that survives shows a missing test or superfluous code, unless no
// caller can observe it. The go command reads edits as overlays: the files stay as they are. The tests have
// to pass without an edit.
package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// uncompilable and survived are results of an edit. The other one is "killed by" and a package.
const uncompilable, survived = "does not compile", "SURVIVED"

// main draws other edits every day, and the same ones with the same --seed.
func main() {
	year, month, day := time.Now().Date()
	root := flag.String("root", ".", "the repository")
	seed := flag.Int("seed", year*10000+int(month)*100+day, "a number that draws the edits")
	n := flag.Int("n", 200, "how many edits to draw, without those that do not compile")
	flag.Parse()
	if err := run(*root, *seed, *n, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintf(os.Stderr, "edits: %v\n", err)
		os.Exit(1)
	}
}

// run prints what becomes of n edits of the library in root. It returns an error if one survives.
func run(root string, seed, n int, results, progress io.Writer) error {
	root, err := filepath.Abs(root)
	if err != nil {
		return err
	}
	packages, err := listPackages(root, progress)
	if err != nil {
		return err
	}
	edits, err := libraryEdits(packages)
	if err != nil {
		return err
	}
	judged, survivors := 0, 0
	for _, i := range rand.New(rand.NewPCG(uint64(seed), 0)).Perm(len(edits)) {
		if judged == n {
			break
		}
		drawn := edits[i]
		fmt.Fprintf(progress, "%d: %s\n", judged+1, drawn.what)
		result, err := judge(packages, drawn, filepath.Join(root, ".cache/edits"))
		if err != nil {
			return err
		}
		fmt.Fprintf(results, "%s: %s\n", result, drawn.what)
		switch result {
		case uncompilable:
			continue
		case survived:
			survivors++
		}
		judged++
	}
	if survivors > 0 {
		return fmt.Errorf("%d edits survived", survivors)
	}
	return nil
}

// listPackages returns the packages of the repository's modules that users import.
func listPackages(root string, stderr io.Writer) (packages []goPackage, err error) {
	for _, module := range []string{".", "lifecycle/virtualkubelet", "lifecycle/criruntime"} {
		command := exec.Command("go", "list", "-json", "./...")
		command.Dir, command.Stderr = filepath.Join(root, module), stderr
		out, err := command.Output()
		if err != nil {
			return nil, err
		}
		for decoder := json.NewDecoder(bytes.NewReader(out)); decoder.More(); {
			var p goPackage
			if err := decoder.Decode(&p); err != nil {
				return nil, err
			}
			packages = append(packages, p)
		}
	}
	return packages, nil
}

// libraryEdits returns the edits of all packages that belong to the library: users import them, or a package that they import
// needs them. Users do not import packages below internal, or those for tests.
func libraryEdits(packages []goPackage) (edits []edit, err error) {
	for _, p := range packages {
		isOfLibrary := slices.ContainsFunc(packages, func(user goPackage) bool {
			isForTests := strings.Contains(user.ImportPath, "kubegrace/internal/") || strings.HasSuffix(user.ImportPath, "test")
			return !isForTests && slices.Contains(append(user.Deps, user.ImportPath), p.ImportPath)
		})
		if !isOfLibrary {
			continue
		}
		for _, name := range p.GoFiles {
			if edits, err = collect(p, filepath.Join(p.Dir, name), edits); err != nil {
				return nil, err
			}
		}
	}
	return edits, nil
}

// goPackage is a package as go list describes it.
type goPackage struct {
	ImportPath, Dir                                   string
	GoFiles, Imports, TestImports, XTestImports, Deps []string
}

// judge returns what becomes of an edit: uncompilable, survived, or which package's tests kill it. It runs the tests
// of the edited package and of all that import it. It writes the edited file and the overlay, with which the go
// command reads that file, into a folder.
func judge(packages []goPackage, e edit, folder string) (result string, err error) {
	edited, overlay := filepath.Join(folder, "edited.go"), filepath.Join(folder, "overlay.json")
	table := fmt.Appendf(nil, `{"Replace": {%q: %q}}`, e.file, edited)
	err = errors.Join(os.MkdirAll(folder, 0o700), os.WriteFile(edited, e.source, 0o600), os.WriteFile(overlay, table, 0o600))
	passes := func(p goPackage, args ...string) bool {
		command := exec.Command("go", append(args, "-overlay", overlay, ".")...)
		command.Dir = p.Dir
		return command.Run() == nil
	}
	if err != nil || !passes(e.in, "build") {
		return uncompilable, err
	}
	passesTests := func(p goPackage, short string) bool {
		return passes(p, "test", short, "-failfast", "-vet=off", "-timeout=10m")
	}
	for _, p := range slices.Concat([]goPackage{e.in}, packages) {
		isTester := p.Dir == e.in.Dir || slices.Contains(slices.Concat(p.Imports, p.TestImports, p.XTestImports), e.in.ImportPath)
		if isTester && !passesTests(p, "-short=true") {
			return "killed by " + p.ImportPath, nil
		}
	}
	if !passesTests(e.in, "-short=false") {
		return "killed by " + e.in.ImportPath, nil
	}
	return survived, nil
}

// edit is one change of a file of a package.
type edit struct {
	in         goPackage
	file, what string // what: FILE:LINE: OLD -> NEW
	source     []byte // the whole file after the change
}

// collect appends the edits of a file. It negates conditions, shifts comparisons, swaps && and ||, deletes
// statements that are calls or assignments, adds 1 to integers, and returns nil instead of errors.
func collect(in goPackage, file string, edits []edit) ([]edit, error) {
	files := token.NewFileSet()
	src, errRead := os.ReadFile(file)
	tree, errParse := parser.ParseFile(files, file, src, parser.SkipObjectResolution)
	offset := func(p token.Pos) int { return files.Position(p).Offset }
	text := func(n ast.Node) string { return string(src[offset(n.Pos()):offset(n.End())]) }
	replace := func(n ast.Node, by string) {
		what := strings.Join(strings.Fields(fmt.Sprintf("%s:%d: %s -> %s", file, files.Position(n.Pos()).Line, text(n), by)), " ")
		source := slices.Concat(src[:offset(n.Pos())], []byte(by), src[offset(n.End()):])
		edits = append(edits, edit{in: in, file: file, what: what, source: source})
	}
	swap := map[token.Token]string{token.LSS: "<=", token.LEQ: "<", token.GTR: ">=", token.GEQ: ">", token.LAND: "||", token.LOR: "&&", token.EQL: "!=", token.NEQ: "=="}
	ast.Inspect(tree, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.IfStmt:
			replace(n.Cond, "!("+text(n.Cond)+")")
		case *ast.BinaryExpr:
			if by, isKnown := swap[n.Op]; isKnown {
				replace(n, text(n.X)+" "+by+" "+text(n.Y))
			}
		case *ast.ExprStmt, *ast.IncDecStmt, *ast.AssignStmt:
			if assign, isAssign := n.(*ast.AssignStmt); !isAssign || assign.Tok != token.DEFINE {
				replace(n, "/* deleted */")
			}
		case *ast.BasicLit:
			if n.Kind == token.INT {
				replace(n, "("+n.Value+" + 1)")
			}
		case *ast.ReturnStmt:
			if last := len(n.Results) - 1; last >= 0 && strings.Contains(strings.ToLower(text(n.Results[last])), "err") {
				replace(n.Results[last], "nil")
			}
		}
		return true
	})
	return edits, errors.Join(errRead, errParse)
}
