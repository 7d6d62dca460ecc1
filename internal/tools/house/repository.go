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
)

// repository is a folder with the source of kubegrace.
type repository struct {
	root  string
	files []string // relative to root, with slashes, sorted
}

// open lists the files of a git repository that are tracked or that git add would add. Files that git
// ignores are left out, and tracked files that were removed.
func open(ctx context.Context, root string) (repository, error) {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		err = fmt.Errorf("%w: %s", err, exit.Stderr)
	}
	if err != nil {
		return repository{}, fmt.Errorf("failed to list the files of %s: %w", root, err)
	}
	repo := repository{root: root}
	for name := range strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == 0 }) {
		if _, err := os.Lstat(repo.path(name)); err == nil {
			repo.files = append(repo.files, name)
		}
	}
	slices.Sort(repo.files)
	repo.files = slices.Compact(repo.files) // a file with conflicts is listed more than once
	return repo, nil
}

// match returns the files at any depth below a folder ("" is the top folder) whose base name matches
// a pattern of path.Match.
func (r repository) match(folder, pattern string) []string {
	var found []string
	for _, name := range r.files {
		matches, _ := path.Match(pattern, path.Base(name)) // the patterns are constants of this program
		isBelow := folder == "" || strings.HasPrefix(name, folder+"/")
		if matches && isBelow {
			found = append(found, name)
		}
	}
	return found
}

// source returns the Go files of packages, without tests and test data.
func (r repository) source() []string {
	return slices.DeleteFunc(r.match("", "*.go"), func(name string) bool {
		return strings.HasSuffix(name, "_test.go") || strings.Contains("/"+name, "/testdata/")
	})
}

// path returns the path of a file for the os package.
func (r repository) path(name string) string { return filepath.Join(r.root, filepath.FromSlash(name)) }

// read returns the content of a file.
func (r repository) read(name string) ([]byte, error) { return os.ReadFile(r.path(name)) }

// exists reports whether a file or folder that git does not ignore has this name. "." is the top
// folder.
func (r repository) exists(name string) bool {
	return name == "." || slices.ContainsFunc(r.files, func(file string) bool {
		return file == name || strings.HasPrefix(file, name+"/")
	})
}
