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
	var packages []goPackage
	var edits []edit
	root, err := filepath.Abs(root)
	// List the packages, collect the edits of those that belong to the library, and judge n of them.
	for _, module := range []string{".", "lifecycle/virtualkubelet", "lifecycle/criruntime"} {
		command := exec.Command("go", "list", "-json", "./...")
		command.Dir, command.Stderr = filepath.Join(root, module), progress
		out, errList := command.Output()
		err = errors.Join(err, errList)
		for decoder := json.NewDecoder(bytes.NewReader(out)); err == nil && decoder.More(); {
			packages = append(packages, goPackage{})
			err = decoder.Decode(&packages[len(packages)-1])
		}
	}
	for _, p := range packages {
		// A package belongs to the library if users import it, or if one that they import needs it. Packages below internal,
		// and those for tests, are not imported by users.
		isOfLibrary := slices.ContainsFunc(packages, func(by goPackage) bool {
			isForTests := strings.Contains(by.ImportPath, "kubegrace/internal/") || strings.HasSuffix(by.ImportPath, "test")
			return !isForTests && slices.Contains(append(by.Deps, by.ImportPath), p.ImportPath)
		})
		if !isOfLibrary {
			continue
		}
		for _, name := range p.GoFiles {
			if err == nil {
				edits, err = collect(p, filepath.Join(p.Dir, name), edits)
			}
		}
	}
	count := map[string]int{} // by result
	order := rand.New(rand.NewPCG(uint64(seed), 0)).Perm(len(edits))
	for i := 0; err == nil && i < min(n+count[uncompilable], len(order)); i++ { // edits that do not compile are not among the n
		drawn := edits[order[i]]
		fmt.Fprintf(progress, "%d: %s\n", i-count[uncompilable]+1, drawn.what)
		var result string
		result, err = judge(packages, drawn, filepath.Join(root, ".cache/edits"))
		count[result]++
		fmt.Fprintf(results, "%s: %s\n", result, drawn.what)
	}
	if count[survived] > 0 {
		err = errors.Join(err, fmt.Errorf("%d edits survived", count[survived]))
	}
	return err
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
	// The first and the last are the edited package. Only for the last one the tests are not short.
	for i, p := range slices.Concat([]goPackage{e.in}, packages, []goPackage{e.in}) {
		isTester := p.Dir == e.in.Dir || slices.Contains(slices.Concat(p.Imports, p.TestImports, p.XTestImports), e.in.ImportPath)
		if isTester && !passes(p, "test", fmt.Sprintf("-short=%t", i <= len(packages)), "-failfast", "-vet=off", "-timeout=10m") {
			return "killed by " + p.ImportPath, nil
		}
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
