// Package gitfiles lists the files of a git repository.
package gitfiles

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// List returns the files of the git repository in the folder root that are tracked or that git add
// would add. The names are relative to root, with slashes, and sorted. Files that git ignores are
// left out, and tracked files that were removed. With patterns, which are those of git ls-files,
// only the matching files are returned.
func List(ctx context.Context, root string, patterns ...string) ([]string, error) {
	args := append([]string{"ls-files", "-z", "--cached", "--others", "--exclude-standard", "--"}, patterns...)
	cmd := exec.CommandContext(ctx, "git", args...)
	cmd.Dir = root
	out, err := cmd.Output()
	if exit, failed := errors.AsType[*exec.ExitError](err); failed {
		return nil, fmt.Errorf("failed to list the files of %s: %w: %s", root, err, exit.Stderr)
	}
	if err != nil {
		return nil, fmt.Errorf("failed to list the files of %s: %w", root, err)
	}
	var names []string
	for name := range strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == 0 }) {
		_, err := os.Lstat(filepath.Join(root, filepath.FromSlash(name)))
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("failed to list the files of %s: %w", root, err)
		}
		names = append(names, name)
	}
	slices.Sort(names)
	return slices.Compact(names), nil // a file with conflicts is listed more than once
}
