package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
)

// testedModule is a module of the copy, as it is in the repository.
type testedModule struct {
	name       string // its folder in the repository
	folder     string
	goMod      []byte
	kubernetes []string // the modules of Kubernetes that it requires
}

// readModule reads what is edited in a module.
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
