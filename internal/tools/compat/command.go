package main

import (
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"time"
)

// grace is how long a command that was told to end has for it.
const grace = 10 * time.Second

// command is a call of the go command.
type command struct {
	dir  string
	env  []string // beside that of this program
	args []string
}

func (c command) String() string { return "go " + strings.Join(c.args, " ") }

// failure is a command that has failed, with all that it has printed.
type failure struct {
	command command
	output  []byte
	err     error
}

// Error implements error. It does not give the output, which may be long.
func (f *failure) Error() string { return f.command.String() + ": " + f.err.Error() }

// Unwrap is the error of the process.
func (f *failure) Unwrap() error { return f.err }

// run gives the standard output of a command. When ctx ends, the command and its
// children are interrupted, and killed when they do not heed that; the error is then the
// cause of ctx. Another error is a *failure.
func run(ctx context.Context, c command) ([]byte, error) {
	var out, diagnostics bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "PWD="+c.dir), c.env...)
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	cmd.WaitDelay = grace
	group(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		killGroup(cmd)
		return nil, fmt.Errorf("%s: %w", c, context.Cause(ctx))
	}
	if err != nil {
		return nil, &failure{command: c, output: append(diagnostics.Bytes(), out.Bytes()...), err: err}
	}
	return out.Bytes(), nil
}
