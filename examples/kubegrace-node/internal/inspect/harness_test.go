package inspect_test

import (
	"bytes"
	"context"
	"errors"
	"strings"
	"testing"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

// result is what a command has written to standard output (out) and standard error (log), and what it returned.
type result struct {
	out, log string
	err      error
}

// run runs the command plan, or status if that is the first argument. If in is not empty, the command reads it
// as standard input, and "-" is added to the arguments.
func run(t *testing.T, in string, args ...string) result {
	t.Helper()
	var out, log bytes.Buffer
	if in != "" {
		args = append(args, "-")
	}
	c := newCommand(args...)
	c.SetIn(strings.NewReader(in))
	c.SetOut(&out)
	c.SetErr(&log)
	err := c.ExecuteContext(t.Context())
	return result{out.String(), log.String(), err}
}

// newCommand returns a root command that executes plan, or status if that is the first argument. It has no agent
// to ask: plan without an argument fails with "the agent is asked".
func newCommand(args ...string) *cobra.Command {
	c := &cobra.Command{Use: "kubegrace-node", SilenceUsage: true, SilenceErrors: true}
	c.SetUsageTemplate(strings.ReplaceAll(c.UsageTemplate(), ".FlagUsages", ".FlagUsagesWrapped 80"))
	c.AddCommand(inspect.NewPlan(func(context.Context) (d nodeplan.Document, err error) { return d, errors.New("the agent is asked") }), inspect.NewStatus())
	if len(args) == 0 || args[0] != "status" {
		args = append([]string{"plan"}, args...)
	}
	c.SetArgs(args)
	return c
}
