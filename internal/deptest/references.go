package deptest

import (
	"errors"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"maps"
	"path/filepath"
	"slices"
	"strings"
)

// References returns, for each declaration of the package in a folder, the other declarations
// of that package that it uses, sorted. Methods and fields count as parts of their type, so
// that the names are those of types, functions, variables and constants. Test files are left
// out.
//
// The package is not built, and its imports are not read. Uses through a type of another
// package, by embedding or in a result, are therefore not found.
func References(folder string) (map[string][]string, error) {
	names, err := filepath.Glob(filepath.Join(folder, "*.go"))
	if err != nil {
		return nil, err
	}
	set := token.NewFileSet()
	var files []*ast.File
	for _, name := range names {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(set, name, nil, parser.SkipObjectResolution)
		if err != nil {
			return nil, err
		}
		files = append(files, file)
	}
	if len(files) == 0 {
		return nil, fmt.Errorf("%s: has no Go files", folder)
	}
	info := &types.Info{Uses: map[*ast.Ident]types.Object{}, Selections: map[*ast.SelectorExpr]*types.Selection{}}
	// The type checker reports errors about the imports, which are not read. They are ignored.
	config := types.Config{Importer: noImports{}, Error: func(error) {}}
	pkg, _ := config.Check(folder, set, files, info)
	owners := fieldOwners(pkg)
	found := map[string]map[string]bool{}
	for _, file := range files {
		for _, declaration := range file.Decls {
			for from, node := range declared(declaration) {
				if found[from] == nil {
					found[from] = map[string]bool{}
				}
				ast.Inspect(node, func(node ast.Node) bool {
					if name, isName := node.(*ast.Ident); isName {
						if to := owner(pkg, owners, info.Uses[name]); to != "" && to != from {
							found[from][to] = true
						}
					}
					return true
				})
			}
		}
	}
	references := map[string][]string{}
	for from, to := range found {
		references[from] = slices.Sorted(maps.Keys(to))
	}
	return references, nil
}

// noImports is an importer that finds no package.
type noImports struct{}

func (noImports) Import(string) (*types.Package, error) {
	return nil, errors.New("imports are not read")
}

// declared returns the names of a declaration, each with its part of the source. The name of
// a method is that of its type.
func declared(declaration ast.Decl) map[string]ast.Node {
	names := map[string]ast.Node{}
	switch declaration := declaration.(type) {
	case *ast.FuncDecl:
		name := declaration.Name.Name
		if declaration.Recv != nil {
			name = receiver(declaration.Recv.List[0].Type)
		}
		names[name] = declaration
	case *ast.GenDecl:
		for _, spec := range declaration.Specs {
			switch spec := spec.(type) {
			case *ast.TypeSpec:
				names[spec.Name.Name] = spec
			case *ast.ValueSpec:
				for _, name := range spec.Names {
					names[name.Name] = spec
				}
			}
		}
	}
	return names
}

// receiver returns the name of the type of a receiver.
func receiver(expression ast.Expr) string {
	switch expression := expression.(type) {
	case *ast.StarExpr:
		return receiver(expression.X)
	case *ast.IndexExpr:
		return receiver(expression.X)
	case *ast.Ident:
		return expression.Name
	}
	return ""
}

// fieldOwners returns the type that each field belongs to.
func fieldOwners(pkg *types.Package) map[types.Object]string {
	owners := map[types.Object]string{}
	for _, name := range pkg.Scope().Names() {
		if structure, isStruct := pkg.Scope().Lookup(name).Type().Underlying().(*types.Struct); isStruct {
			for field := range structure.Fields() {
				if _, known := owners[field]; !known {
					owners[field] = name
				}
			}
		}
	}
	return owners
}

// owner returns the name of the declaration in pkg that an object belongs to, "" if there is
// none.
func owner(pkg *types.Package, fields map[types.Object]string, object types.Object) string {
	switch {
	case object == nil || object.Pkg() != pkg:
		return ""
	case object.Parent() == pkg.Scope():
		return object.Name()
	}
	switch object := object.(type) {
	case *types.Var:
		return fields[object.Origin()]
	case *types.Func:
		if recv := object.Signature().Recv(); recv != nil {
			kind := recv.Type()
			if pointer, isPointer := kind.(*types.Pointer); isPointer {
				kind = pointer.Elem()
			}
			if named, isNamed := kind.(*types.Named); isNamed {
				return named.Obj().Name()
			}
		}
	}
	return ""
}
