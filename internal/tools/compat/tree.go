package main

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/kubegrace/kubegrace/internal/tools/gitfiles"
)

// copyRepository copies the files of a git repository into a folder: the tracked ones as they are
// in the working tree, and the untracked ones that are not ignored.
func copyRepository(ctx context.Context, root, into string) error {
	names, err := gitfiles.List(ctx, root)
	if err != nil {
		return err
	}
	for _, name := range names {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("failed to copy %s: %w", root, context.Cause(ctx))
		}
		if err := copyFile(filepath.Join(root, name), filepath.Join(into, name)); err != nil {
			return fmt.Errorf("failed to copy %s: %w", root, err)
		}
	}
	return nil
}

// copyFile copies a file with its mode, or a symbolic link.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Dir(to), 0o755); err != nil {
		return err
	}
	if info.Mode()&fs.ModeSymlink != 0 {
		target, err := os.Readlink(from)
		if err != nil {
			return err
		}
		return os.Symlink(target, to)
	}
	if !info.Mode().IsRegular() {
		return fmt.Errorf("%s: is no regular file", from)
	}
	content, err := os.ReadFile(from)
	if err != nil {
		return err
	}
	return os.WriteFile(to, content, info.Mode().Perm()|0o200)
}
