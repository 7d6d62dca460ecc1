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

// grace is how long a command that was interrupted has to end.
const grace = 10 * time.Second

// command is a call of the go command.
type command struct {
	dir  string
	env  []string // in addition to the environment of this program
	args []string
}

func (c command) String() string { return "go " + strings.Join(c.args, " ") }

// failure is the error of a command, with all that the command has printed.
type failure struct {
	command command
	output  []byte
	err     error
}

// Error implements error. It leaves out the output, which may be long.
func (f *failure) Error() string { return f.command.String() + ": " + f.err.Error() }

// Unwrap returns the error of the process.
func (f *failure) Unwrap() error { return f.err }

// run runs a command and returns its standard output. When ctx ends, the command and its
// children are interrupted, and killed if they do not end; the error then wraps the cause of
// ctx. Other errors are of type *failure.
func run(ctx context.Context, c command) ([]byte, error) {
	var out, diagnostics bytes.Buffer
	cmd := exec.CommandContext(ctx, "go", c.args...)
	cmd.Dir = c.dir
	cmd.Env = append(append(os.Environ(), "GOWORK=off", "PWD="+c.dir), c.env...)
	cmd.Stdout, cmd.Stderr = &out, &diagnostics
	cmd.WaitDelay = grace
	setProcessGroup(cmd)
	err := cmd.Run()
	if ctx.Err() != nil {
		killProcessGroup(cmd)
		return nil, fmt.Errorf("%s: %w", c, context.Cause(ctx))
	}
	if err != nil {
		return nil, &failure{command: c, output: append(diagnostics.Bytes(), out.Bytes()...), err: err}
	}
	return out.Bytes(), nil
}
