package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"golang.org/x/mod/modfile"
	"golang.org/x/mod/semver"

	"github.com/kubegrace/kubegrace/internal/tools/gitfiles"
)

// repository is a git repository with modules.
type repository struct {
	root    string
	modules []module
}

// module is one folder with a go.mod.
type module struct {
	folder string // relative to the repository, with slashes; "." is the top folder
	mod    *modfile.File
}

// open reads every go.mod that git tracks or would add.
func open(ctx context.Context, root string) (repository, error) {
	repo := repository{root: root}
	names, err := gitfiles.List(ctx, root, "go.mod", "**/go.mod")
	if err != nil {
		return repository{}, err
	}
	for _, name := range names {
		if strings.Contains(name, "testdata/") {
			continue
		}
		content, err := repo.read(name)
		if err != nil {
			return repository{}, err
		}
		mod, err := modfile.Parse(name, content, nil)
		if err != nil {
			return repository{}, err
		}
		if mod.Module == nil {
			return repository{}, fmt.Errorf("%s: names no module", name)
		}
		repo.modules = append(repo.modules, module{folder: path.Dir(name), mod: mod})
	}
	return repo, nil
}

// git runs a git command and returns its standard output.
func (r repository) git(ctx context.Context, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = r.root
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return "", fmt.Errorf("git %s: %w: %s", args[0], err, exit.Stderr)
		}
		return "", fmt.Errorf("git %s: %w", args[0], err)
	}
	return string(out), nil
}

// read returns the content of a file.
func (r repository) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.root, filepath.FromSlash(name)))
}

// importable reports whether other repositories may import a module.
func (m module) importable() bool {
	top, _, _ := strings.Cut(m.folder, "/")
	return top != "internal" && top != "examples"
}

// tag returns the git tag of a version.
func (m module) tag(version string) string { return path.Join(m.folder, version) }

// versions returns the versions that have a tag of a module, the oldest first.
func (r repository) versions(ctx context.Context, m module) ([]string, error) {
	out, err := r.git(ctx, "tag", "--list", m.tag("v*"))
	if err != nil {
		return nil, err
	}
	versions := slices.DeleteFunc(strings.Fields(out), func(tag string) bool {
		return !semver.IsValid(path.Base(tag)) || m.tag(path.Base(tag)) != tag
	})
	for i, tag := range versions {
		versions[i] = path.Base(tag)
	}
	semver.Sort(versions)
	return versions, nil
}
