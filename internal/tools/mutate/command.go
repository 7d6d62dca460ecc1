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

// memoryLimit is the largest address space of a test in kibibytes. A mutant that allocates without
// end must not use up the memory of the machine.
const memoryLimit = 8 << 20

// surroundings are the folders and the environment that a program runs with.
type surroundings struct {
	dir, temp string   // the working directory, and the folder for temporary files
	env       []string // in addition to the environment of this program
}

// command runs a program in dir and returns all that it prints.
func (r *run) command(ctx context.Context, dir, program string, args ...string) (string, error) {
	return r.commandIn(ctx, surroundings{dir: dir, temp: r.temp}, program, args...)
}

// commandIn is command in other surroundings. It makes the folder for temporary files. When ctx
// ends, the program is killed. Processes that the program leaves behind are always killed.
func (r *run) commandIn(ctx context.Context, in surroundings, program string, args ...string) (string, error) {
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

// openFolder makes a temporary folder that other users may read, because some tests run programs
// as another user.
func openFolder(in, prefix string) (string, error) {
	dir, err := os.MkdirTemp(in, prefix)
	if err != nil {
		return "", err
	}
	return dir, os.Chmod(dir, 0o755)
}

// tail returns the end of an output.
func tail(out string) string {
	const most = 4000
	return strings.TrimSpace(out[max(0, len(out)-most):])
}
