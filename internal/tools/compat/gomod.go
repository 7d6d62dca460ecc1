package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"
)

const (
	// kubegrace is the path of the module that is tested.
	kubegrace = "github.com/kubegrace/kubegrace"
	// api is the module whose version is that of the Kubernetes libraries.
	api = "k8s.io/api"
)

// kubernetesVersion returns the version of the Kubernetes libraries that a go.mod requires.
func kubernetesVersion(file *modfile.File) (string, error) {
	for _, require := range file.Require {
		if require.Mod.Path == api {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s: requires no %s", file.Syntax.Name, api)
}

// kubernetesModules returns the modules in a go.mod that are released with Kubernetes: those of
// k8s.io that have the same minor as k8s.io/api. k8s.io/klog and k8s.io/utils, for example, have
// versions of their own.
func kubernetesModules(file *modfile.File) ([]string, error) {
	version, err := kubernetesVersion(file)
	if err != nil {
		return nil, err
	}
	var modules []string
	for _, require := range file.Require {
		if strings.HasPrefix(require.Mod.Path, "k8s.io/") && semver.MajorMinor(require.Mod.Version) == semver.MajorMinor(version) {
			modules = append(modules, require.Mod.Path)
		}
	}
	return modules, nil
}

// setKubernetes returns a go.mod that requires another version of the Kubernetes libraries.
func setKubernetes(goMod []byte, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("failed to read go.mod: %w", err)
	}
	modules, err := kubernetesModules(file)
	if err != nil {
		return nil, err
	}
	var editErr error
	for _, path := range modules {
		editErr = errors.Join(editErr, file.AddRequire(path, version))
	}
	return format(file, editErr)
}

// replaceKubernetes returns a go.mod that replaces modules of Kubernetes by another version of
// them, as a fork of the kubelet replaces them by its own.
func replaceKubernetes(goMod []byte, modules []string, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("failed to read go.mod: %w", err)
	}
	var editErr error
	for _, path := range modules {
		editErr = errors.Join(editErr, file.AddReplace(path, "", path, version))
	}
	return format(file, editErr)
}

// format returns the text of a go.mod. editErr is the error of its edits.
func format(file *modfile.File, editErr error) ([]byte, error) {
	if editErr != nil {
		return nil, fmt.Errorf("failed to edit go.mod: %w", editErr)
	}
	file.Cleanup()
	out, err := file.Format()
	if err != nil {
		return nil, fmt.Errorf("failed to write go.mod: %w", err)
	}
	return out, nil
}

// listFormat is the -f of go list that prints, for each package, the path and the version of its
// module.
const listFormat = "{{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}"

// builtWith reads the output of go list in listFormat. It returns an error unless the packages use
// at least one of the Kubernetes modules, and all those that they use have the given version.
func builtWith(list []byte, kubernetes []string, version string) error {
	used, others := false, map[string]bool{}
	for line := range strings.Lines(string(list)) {
		path, built, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case !slices.Contains(kubernetes, path):
		case built == version:
			used = true
		default:
			others[path+" "+built] = true
		}
	}
	if len(others) > 0 {
		return fmt.Errorf("%s is not what is built with: %s", version, strings.Join(slices.Sorted(maps.Keys(others)), ", "))
	}
	if !used {
		return fmt.Errorf("nothing is built with Kubernetes %s", version)
	}
	return nil
}
