package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// testedModule is a module of the repository whose copy is tested.
type testedModule struct {
	name       string   // its folder in the repository
	folder     string   // of the copy
	goMod      []byte   // the content of go.mod in the repository
	kubernetes []string // the required modules that are released with Kubernetes
}

// readModule reads the go.mod of a module.
func readModule(name, folder string) (testedModule, error) {
	m := testedModule{name: name, folder: folder}
	var err error
	if m.goMod, err = os.ReadFile(filepath.Join(folder, "go.mod")); err != nil {
		return m, fmt.Errorf("module %s: %w", name, err)
	}
	file, err := modfile.Parse("go.mod", m.goMod, nil)
	if err != nil {
		return m, fmt.Errorf("module %s: %w", name, err)
	}
	if m.kubernetes, err = kubernetesModules(file); err != nil {
		return m, fmt.Errorf("module %s: %w", name, err)
	}
	return m, nil
}
