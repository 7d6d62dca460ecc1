package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// memoryLimit bounds the address space of a test, in kibibytes: a mutant that allocates
// without an end must not take the machine with it.
const memoryLimit = 8 << 20

// place is where a program runs.
type place struct {
	dir, temp string
	env       []string // beside that of this program
}

// command runs a program in dir and gives all that it prints.
func (r *run) command(ctx context.Context, dir, program string, args ...string) (string, error) {
	return r.commandIn(ctx, place{dir: dir, temp: r.temp}, program, args...)
}

// commandIn is command with a folder for temporary files, which is made. When ctx ends, the program
// is killed, and always what it has left running.
func (r *run) commandIn(ctx context.Context, in place, program string, args ...string) (string, error) {
	if err := os.MkdirAll(in.temp, 0o755); err != nil {
		return "", err
	}
	var out bytes.Buffer
	cmd := exec.CommandContext(ctx, program, args...)
	if strings.HasSuffix(program, ".test") {
		limitMemory(cmd)
	}
	cmd.Dir = in.dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "PWD="+in.dir, "TMPDIR="+in.temp), in.env...)
	cmd.Stdout, cmd.Stderr = &out, &out
	cmd.WaitDelay = time.Second // children may hold the pipes
	setProcessGroup(cmd)
	err := cmd.Run()
	killProcessGroup(cmd)
	if err != nil {
		return out.String(), fmt.Errorf("%s: %w\n%s", filepath.Base(program), err, tail(out.String()))
	}
	return out.String(), nil
}

// openFolder makes a temporary folder into which other users may look: some tests do so as one.
func openFolder(in, prefix string) (string, error) {
	dir, err := os.MkdirTemp(in, prefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// tail is the end of an output.
func tail(out string) string {
	const most = 4000
	return strings.TrimSpace(out[max(0, len(out)-most):])
}
