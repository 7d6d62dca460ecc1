package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// runTool runs a command that ends by itself, and returns its output and exit status.
func runTool(t *testing.T, args ...string) (out, stderr string, status int) {
	t.Helper()
	p := start(t, args...)
	status = p.waitExit()
	return p.out.String(), p.stderr.String(), status
}

// --version prints the versions of the program and of Go, and the platform.
func TestVersion(t *testing.T) {
	t.Parallel()
	out, _, status := runTool(t, "--version")
	require.Zero(t, status)
	require.Regexp(t, `^kubegrace-node \S+ \(go1\.\d+.*, linux/\w+\)\n$`, out)
}
