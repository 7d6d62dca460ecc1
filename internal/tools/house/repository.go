package main

import (
	"context"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/kubegrace/kubegrace/internal/tools/gitfiles"
)

// repository is a folder with the source of kubegrace.
type repository struct {
	root  string
	files []string // those of gitfiles.List
}

// open lists the files of a repository.
func open(ctx context.Context, root string) (repository, error) {
	files, err := gitfiles.List(ctx, root)
	return repository{root: root, files: files}, err
}

// match returns the files at any depth below a folder ("" is the top folder) whose base name matches
// a pattern of path.Match.
func (r repository) match(folder, pattern string) []string {
	return slices.DeleteFunc(slices.Clone(r.files), func(name string) bool {
		matched, _ := path.Match(pattern, path.Base(name)) // the patterns are constants of this program
		return !matched || folder != "" && !strings.HasPrefix(name, folder+"/")
	})
}

// read returns the content of a file.
func (r repository) read(name string) ([]byte, error) {
	return os.ReadFile(filepath.Join(r.root, filepath.FromSlash(name)))
}

// exists reports whether a file or folder that git does not ignore has this name. "." is the top
// folder.
func (r repository) exists(name string) bool {
	return name == "." || slices.ContainsFunc(r.files, func(file string) bool {
		return file == name || strings.HasPrefix(file, name+"/")
	})
}
