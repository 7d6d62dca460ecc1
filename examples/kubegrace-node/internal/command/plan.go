package command

import (
	"context"
	"net/http"

	"github.com/spf13/cobra"

	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/inspect"
	"github.com/kubegrace/kubegrace/examples/kubegrace-node/internal/nodeplan"
)

func (c commands) newPlan() *cobra.Command {
	t := &tool{commands: c}
	command := inspect.NewPlan(c.streams, func(ctx context.Context) (planned nodeplan.Document, err error) {
		err = t.request(ctx, http.MethodGet, "/plan", &planned)
		return planned, err
	})
	t.addSocket(command.Flags())
	run := command.RunE
	command.RunE = func(command *cobra.Command, args []string) error {
		return t.interruptible(func(ctx context.Context) error {
			command.SetContext(ctx)
			return run(command, args)
		})(command, args)
	}
	return command
}
