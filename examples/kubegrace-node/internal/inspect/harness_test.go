package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/creack/pty"
	"github.com/spf13/cobra"
	"github.com/stretchr/testify/require"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// result is what a command has written to standard output (out) and standard error (log), and what it returned.
type result struct {
	out, log string
	err      error
}

// run runs kubegrace-node without a terminal: the command plan, or status if that is the first argument. If in
// is not empty, the command reads it as standard input, and "-" is added to the arguments.
func run(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, log bytes.Buffer
	if in != "" {
		args = append(args, "-")
	}
	err := execute(t, inspect.Streams{In: strings.NewReader(in), Out: &out, Err: &log, Getenv: func(string) string { return "" }}, args)
	return result{out.String(), log.String(), err}
}

// newCommand returns a root command with plan and status, as the program has it. It has no agent to ask: plan
// without an argument fails with "the agent is asked".
func newCommand(streams inspect.Streams) *cobra.Command {
	c := &cobra.Command{Use: "kubegrace-node", SilenceUsage: true, SilenceErrors: true}
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	c.SetIn(streams.In)
	c.SetOut(streams.Out)
	c.SetErr(streams.Err)
	c.AddCommand(inspect.NewPlan(streams, func(context.Context) (d nodeplan.Document, err error) { return d, errors.New("the agent is asked") }), inspect.NewStatus(streams))
	return c
}

// execute runs plan, or status if that is the first argument.
func execute(t *testing.T, streams inspect.Streams, args []string) error {
	t.Helper()
	c := newCommand(streams)
	if len(args) == 0 || args[0] != "status" {
		args = append([]string{"plan"}, args...)
	}
	c.SetArgs(args)
	return c.ExecuteContext(t.Context())
}

// runOnTerminal runs the command on a pseudo-terminal with this number of columns. In the result out is what
// the terminal shows.
func runOnTerminal(t *testing.T, columns uint16, args ...string) result {
	t.Helper()
	screen, terminal, err := pty.Open()
	require.NoError(t, err)
	defer screen.Close() //nolint:errcheck // it is only read
	require.NoError(t, pty.Setsize(terminal, &pty.Winsize{Rows: 24, Cols: columns}))
	shown := make(chan string)
	go func() {
		text, _ := io.ReadAll(screen) // ends with EIO when the terminal is closed
		shown <- strings.ReplaceAll(string(text), "\r\n", "\n")
	}()
	var log bytes.Buffer
	runErr := execute(t, inspect.Streams{In: terminal, Out: terminal, Err: &log, Getenv: func(string) string { return "" }}, args)
	require.NoError(t, terminal.Close())
	return result{<-shown, log.String(), runErr}
}

// writeFile writes a file and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}
