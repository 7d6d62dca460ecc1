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

// vulnerable is the status with which govulncheck ends where it has found something.
const vulnerable = 3

// errVulnerable is of a module that uses what is vulnerable.
var errVulnerable = errors.New("vulnerabilities were found, see above")

// scanner examines modules, one after the other.
type scanner struct {
	root, db, tags string
	stdout, stderr io.Writer
}

// module examines one: its packages with their tests, or, where it has none, its tools.
func (s scanner) module(ctx context.Context, name string) error {
	folder, err := filepath.Abs(filepath.Join(s.root, name))
	if err != nil {
		return err
	}
	tools, err := filepath.Abs(filepath.Join(s.root, "internal/tools/go.mod"))
	if err != nil {
		return err
	}
	packages, err := s.packages(ctx, folder)
	if err != nil {
		return err
	}
	args := []string{"tool", "-modfile=" + tools, "govulncheck", "-db", s.db, "-test", "-tags", s.tags}
	if packages {
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

// packages tells whether a module has any.
func (s scanner) packages(ctx context.Context, folder string) (bool, error) {
	command := exec.CommandContext(ctx, "go", "list", "-tags", s.tags, "./...")
	var list bytes.Buffer
	command.Dir, command.Stdout, command.Stderr = folder, &list, io.Discard // it warns that there is none
	if err := command.Run(); err != nil {
		return false, fmt.Errorf("failed to list its packages: %w", err)
	}
	return len(bytes.TrimSpace(list.Bytes())) > 0, nil
}
