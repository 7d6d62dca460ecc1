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
	// kubegrace is the module that is tested.
	kubegrace = "github.com/kubegrace/kubegrace"
	// api is the module whose version is that of the Kubernetes libraries.
	api = "k8s.io/api"
)

// kubernetesVersion is the version of the Kubernetes libraries that a go.mod requires.
func kubernetesVersion(file *modfile.File) (string, error) {
	for _, require := range file.Require {
		if require.Mod.Path == api {
			return require.Mod.Version, nil
		}
	}
	return "", fmt.Errorf("%s: requires no %s", file.Syntax.Name, api)
}

// kubernetesModules are the modules that a go.mod requires and that are released with
// Kubernetes: those of k8s.io at the minor of k8s.io/api. klog and utils, for example, go
// their own way.
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

// setKubernetes gives a go.mod that requires another version of the Kubernetes libraries.
func setKubernetes(goMod []byte, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("failed to read go.mod: %w", err)
	}
	modules, err := kubernetesModules(file)
	if err != nil {
		return nil, err
	}
	var edits error
	for _, path := range modules {
		edits = errors.Join(edits, file.AddRequire(path, version))
	}
	return format(file, edits)
}

// replaceKubernetes gives a go.mod that replaces modules of Kubernetes by another version of
// them, as a fork of the kubelet replaces them by its own.
func replaceKubernetes(goMod []byte, modules []string, version string) ([]byte, error) {
	file, err := modfile.Parse("go.mod", goMod, nil)
	if err != nil {
		return nil, fmt.Errorf("failed to read go.mod: %w", err)
	}
	var edits error
	for _, path := range modules {
		edits = errors.Join(edits, file.AddReplace(path, "", path, version))
	}
	return format(file, edits)
}

// format writes a go.mod, unless one of its edits has failed: edits is the error of all.
func format(file *modfile.File, edits error) ([]byte, error) {
	if edits != nil {
		return nil, fmt.Errorf("failed to edit go.mod: %w", edits)
	}
	file.Cleanup()
	out, err := file.Format()
	if err != nil {
		return nil, fmt.Errorf("failed to write go.mod: %w", err)
	}
	return out, nil
}

// listFormat has go list print, for each package, its module and the version of that.
const listFormat = "{{with .Module}}{{.Path}} {{with .Replace}}{{.Version}}{{else}}{{.Version}}{{end}}{{end}}"

// builtWith reads what go list prints in listFormat, and gives an error unless the
// packages are built with a version of the Kubernetes modules, all of those that they use.
func builtWith(list []byte, kubernetes []string, version string) error {
	used, others := false, map[string]bool{}
	for line := range strings.Lines(string(list)) {
		path, has, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch {
		case !slices.Contains(kubernetes, path):
		case has == version:
			used = true
		default:
			others[path+" "+has] = true
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
