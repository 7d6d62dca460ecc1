package command_test

import (
	"encoding/json"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// runTool runs a command that is not an agent, and returns its output and status.
func runTool(t *testing.T, args ...string) (out, stderr string, status int) {
	t.Helper()
	p := &process{t: t}
	p.command = exec.CommandContext(t.Context(), program, args...)
	p.command.Stdout, p.command.Stderr = &p.out, &p.stderr
	require.NoError(t, p.command.Start())
	status = p.waitExit()
	return p.out.String(), p.stderr.String(), status
}

// decode decodes the JSON output of a command. Unknown fields are an error.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var value T
	decoder := json.NewDecoder(strings.NewReader(text))
	decoder.DisallowUnknownFields()
	require.NoError(t, decoder.Decode(&value), text)
	return value
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, _, status := runTool(t, "--version")
	require.Zero(t, status)
	require.Regexp(t, `^kubegrace-node \S+ \(go1\.\d+.*, linux/\w+\)\n$`, out)
}
