package command_test

import (
	"testing"

	"github.com/stretchr/testify/require"
)

// runTool runs a command that is not an agent, and returns its output and status.
func runTool(t *testing.T, args ...string) (out, stderr string, status int) {
	t.Helper()
	p := start(t, args...)
	status = p.waitExit()
	return p.out.String(), p.stderr.String(), status
}

func TestVersion(t *testing.T) {
	t.Parallel()
	out, _, status := runTool(t, "--version")
	require.Zero(t, status)
	require.Regexp(t, `^kubegrace-node \S+ \(go1\.\d+.*, linux/\w+\)\n$`, out)
}
