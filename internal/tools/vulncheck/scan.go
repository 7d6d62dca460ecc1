package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os/exec"
	"path/filepath"
)

// vulnerable is the exit status of govulncheck if it has found a vulnerability.
const vulnerable = 3

// errVulnerable is the error for a module that uses vulnerable code.
var errVulnerable = errors.New("vulnerabilities were found, see above")

// scanner examines modules, one after the other.
type scanner struct {
	root, db, tags string
	stdout, stderr io.Writer
}

// module examines a module: its packages with their tests or, if it has none, its tools.
func (s scanner) module(ctx context.Context, name string) error {
	folder, err := filepath.Abs(filepath.Join(s.root, name))
	if err != nil {
		return err
	}
	tools, err := filepath.Abs(filepath.Join(s.root, "internal/tools/go.mod"))
	if err != nil {
		return err
	}
	hasPackages, err := s.hasPackages(ctx, folder)
	if err != nil {
		return err
	}
	args := []string{"tool", "-modfile=" + tools, "govulncheck", "-db", s.db, "-test", "-tags", s.tags}
	if hasPackages {
		args = append(args, "./...")
	} else {
		args = append(args, "tool")
	}
	command := exec.CommandContext(ctx, "go", args...)
	command.Dir, command.Stdout, command.Stderr = folder, s.stdout, s.stderr
	err = command.Run()
	if ended := (*exec.ExitError)(nil); errors.As(err, &ended) && ended.ExitCode() == vulnerable {
		return errVulnerable
	}
	return err
}

// hasPackages reports whether a module has packages.
func (s scanner) hasPackages(ctx context.Context, folder string) (bool, error) {
	command := exec.CommandContext(ctx, "go", "list", "-tags", s.tags, "./...")
	var list bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = folder, &list, io.Discard // it warns that there is none
	if err := command.Run(); err != nil {
		return false, fmt.Errorf("failed to list its packages: %w", err)
	}
	return len(bytes.TrimSpace(list.Bytes())) > 0, nil
}
