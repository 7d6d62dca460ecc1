package main

import (
	"fmt"
	"os"
	"path/filepath"

	"golang.org/x/mod/modfile"
	modversion "golang.org/x/mod/module"
	"golang.org/x/mod/semver"
)

// module is a module of the repository.
type module struct {
	name     string               // its folder in the repository
	folder   string               // the path of that folder
	goNeeded string               // the Go version in go.mod, for example 1.25.0
	requires []modversion.Version // the direct dependencies that are not replaced
}

// readModule reads the go.mod of a module.
func readModule(root, name string) (module, error) {
	m := module{name: name, folder: filepath.Join(root, name)}
	path := filepath.Join(m.folder, "go.mod")
	text, err := os.ReadFile(path)
	if err != nil {
		return m, fmt.Errorf("module %s: %w", name, err)
	}
	file, err := modfile.Parse(path, text, nil)
	if err != nil {
		return m, fmt.Errorf("module %s: %w", name, err)
	}
	if file.Go != nil {
		m.goNeeded = file.Go.Version
	}
	replaced := map[string]bool{}
	for _, r := range file.Replace {
		replaced[r.Old.Path] = true
	}
	tools := map[string]bool{} // the modules of tools: they count as direct, though go.mod marks them as indirect
	for _, r := range file.Require {
		for _, tool := range file.Tool {
			tools[r.Mod.Path] = tools[r.Mod.Path] || within(tool.Path, r.Mod.Path)
		}
		if (!r.Indirect || tools[r.Mod.Path]) && !replaced[r.Mod.Path] {
			m.requires = append(m.requires, r.Mod)
		}
	}
	return m, nil
}

// within reports whether a package is in a module, judging by their paths.
func within(pkg, path string) bool {
	return pkg == path || len(pkg) > len(path) && pkg[:len(path)+1] == path+"/"
}

// newer returns the patch releases after a version, the newest first.
func newer(current string, versions []string) []string {
	var found []string
	for _, v := range versions {
		if semver.MajorMinor(v) == semver.MajorMinor(current) && semver.Prerelease(v) == "" && semver.Compare(v, current) > 0 {
			found = append(found, v)
		}
	}
	semver.Sort(found)
	for i, j := 0, len(found)-1; i < j; i, j = i+1, j-1 {
		found[i], found[j] = found[j], found[i]
	}
	return found
}
