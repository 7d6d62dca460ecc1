package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// copyRepository copies what is in a git repository, or would be added to it, into a
// folder: tracked files as they are now, and others that are not ignored.
func copyRepository(ctx context.Context, root, into string) error {
	cmd := exec.CommandContext(ctx, "git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
	cmd.Dir = root
	out, err := cmd.Output()
	if err != nil {
		if exit, ok := errors.AsType[*exec.ExitError](err); ok {
			return fmt.Errorf("failed to list the files of %s: %w: %s", root, err, exit.Stderr)
		}
		return fmt.Errorf("failed to list the files of %s: %w", root, err)
	}
	for name := range strings.FieldsFuncSeq(string(out), func(r rune) bool { return r == 0 }) {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("failed to copy %s: %w", root, context.Cause(ctx))
		}
		if err := copyFile(filepath.Join(root, name), filepath.Join(into, name)); err != nil {
			return fmt.Errorf("failed to copy %s: %w", root, err)
		}
	}
	return nil
}

// copyFile copies a file with its mode, or a symbolic link. One that is tracked and was
// removed is left out.
func copyFile(from, to string) error {
	info, err := os.Lstat(from)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
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
